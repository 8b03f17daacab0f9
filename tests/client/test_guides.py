"""The guides tell the truth: their blocks, and the first script, run against a real service."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cairn_client.cli import app
from tests.markdown import ROOT, fences, pages
from tests.support.live import Live

pytestmark = pytest.mark.xdist_group("live")

TOLD = [page for page in pages() if any(fence.role for fence in fences(page))]


@pytest.mark.parametrize("page", TOLD)
def test_blocks_for_a_service_run_in_order(
    page: str, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python of a page shares one namespace, and all its blocks one empty directory."""
    keys = {"analyst": live.analyst_key, "curator": live.curator_key}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAIRN_URL", live.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    namespace: dict[str, object] = {}
    for fence in fences(page):
        if fence.role is None:
            continue
        monkeypatch.setenv("CAIRN_KEY", keys[fence.role])
        if fence.language == "python":
            exec(compile(fence.code, fence.place, "exec"), namespace)
            continue
        for line in re.sub(r"\\\n\s*", " ", fence.code).splitlines():
            program, *words = shlex.split(line)
            assert program.removeprefix(".venv/bin/") == "cairn", (
                f"{fence.place}: only `cairn` may be used here: {line}"
            )
            done = CliRunner().invoke(app, words)
            assert done.exit_code == 0, f"{fence.place}: {line}: {done.output}"


def test_getting_started_gets_to_a_first_result(live: Live, tmp_path: Path) -> None:
    script = ROOT / "examples" / "getting_started.py"
    command = [sys.executable, "-W", "error", str(script), live.url, live.analyst_key]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "centres.csv").read_text().startswith("minutes,hour,size\n")
    assert "Refused: 9 asked" in run.stdout
