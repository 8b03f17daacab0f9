"""The compose file is valid, and gives each container no more than it needs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent


def test_compose_file_follows_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(ROOT / "docker-compose.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def services() -> dict[str, Any]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    found: dict[str, Any] = compose["services"]
    return found


@pytest.mark.parametrize("name", services())
def test_container_has_a_read_only_root_and_no_capabilities(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged", False)


@pytest.mark.parametrize("name", services())
def test_container_runs_as_an_ordinary_user(name: str) -> None:
    service = services()[name]
    user = str(service.get("user", "cairn" if "cairn" in service["image"] else "root"))
    assert user.split(":")[0] not in ("root", "0")


@pytest.mark.parametrize("name", services())
def test_container_writes_to_its_volumes_and_to_memory_alone(name: str) -> None:
    service = services()[name]
    for volume in service.get("volumes", []):
        source, _, rest = volume.partition(":")
        assert not source.startswith((".", "/")), "nothing of the machine is mounted"
        if source == "secrets" and name != "secrets":
            assert rest.endswith(":ro")


def test_only_the_api_is_reachable_and_only_from_this_machine() -> None:
    ports = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert ports == {"api": ["127.0.0.1:8000:8000"]}


def test_services_run_in_production_mode_without_a_secret_in_the_environment() -> None:
    for name, service in services().items():
        given = service.get("environment", {})
        assert [
            key for key in given if re.search("PASSWORD|TOKEN|KEY", key) and not key.endswith("_FILE")
        ] == []
        if name in ("setup", "api", "worker"):
            assert given["CAIRN_MODE"] == "production"


def test_secrets_are_made_once_and_readable_by_those_who_need_them(tmp_path: Path) -> None:
    (program,) = services()["secrets"]["command"]
    program = program.replace("/run/cairn", str(tmp_path))
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], check=True)
        made = {path.name: path.read_text() for path in tmp_path.iterdir()}
        assert set(made) == {"database-password", "metrics-token"}
        assert all(len(secret) >= 43 for secret in made.values())
        assert all(path.stat().st_mode & 0o777 == 0o440 for path in tmp_path.iterdir())
    assert len({*made.values()}) == 2


def test_the_profile_cluster_adds_a_scheduler_and_workers_that_know_the_database_themselves() -> None:
    cluster = {name for name, service in services().items() if service.get("profiles") == ["cluster"]}
    assert cluster == {"scheduler", "cluster-worker"}
    assert services()["scheduler"]["environment"] == {}  # it hands out tasks and needs no password
    assert "CAIRN_DATABASE_PASSWORD_FILE" in services()["cluster-worker"]["environment"]
    assert services()["worker"]["environment"]["CAIRN_CLUSTER"] == "${CAIRN_CLUSTER:-}"
    for name in cluster:
        assert services()[name]["read_only"]
        assert services()[name]["cap_drop"] == ["ALL"]
        assert "--no-dashboard" in services()[name]["command"]  # it would show how many chunks there are
