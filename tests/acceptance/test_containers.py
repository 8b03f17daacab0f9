"""The container files are valid, and install what `make run` installs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_compose_file_follows_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(ROOT / "docker-compose.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_image_installs_what_make_run_installs() -> None:
    dockerfile, makefile = (ROOT / "Dockerfile").read_text(), (ROOT / "Makefile").read_text()
    assert re.search(r"pip install .*-c constraints\.txt -e '\.\[server\]'", makefile)
    assert re.search(r"pip install -c constraints\.txt '\.\[server[^]]*\]'", dockerfile)
    for package in ("core", "service", "cairn_client", "migrations"):
        assert f"COPY {package} {package}" in dockerfile


def test_image_runs_as_an_ordinary_user_with_a_health_check() -> None:
    final = (ROOT / "Dockerfile").read_text().split("FROM ")[-1]
    assert "USER cairn" in final
    assert "HEALTHCHECK" in final
    assert not re.search(r"\b(pip|apt-get|curl|wget)\b", final)


def test_containers_have_a_read_only_root_and_no_capabilities() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    for line in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", "CAIRN_MODE: production"):
        assert line in compose
