"""The compose file is valid, and gives each container no more than it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml

from benchmarks.harness.processes import free_port
from service.operations.settings import Settings

ROOT = Path(__file__).parent.parent.parent


def test_compose_file_follows_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(ROOT / "docker-compose.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def services() -> dict[str, Any]:
    found: dict[str, Any] = compose()["services"]
    return found


def volumes(service: dict[str, Any]) -> dict[str, str]:
    """Where each volume is mounted."""
    return {source: rest for source, _, rest in (v.partition(":") for v in service.get("volumes", []))}


# --- what a container may do --------------------------------------------------------------------------------


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
    for source, rest in volumes(services()[name]).items():
        assert not source.startswith((".", "/")), "nothing of the machine is mounted"
        if source in ("secrets", "certificates") and name != "secrets":
            assert rest.endswith(":ro")


def test_no_container_gets_a_nameless_volume() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert not re.search(r"(?m)^VOLUME", dockerfile)
    # The image of PostgreSQL declares one, which is mounted by name.
    assert volumes(services()["postgres"])["database"] == "/var/lib/postgresql/data"


@pytest.mark.parametrize("name", ["postgres", "api", "worker", "cluster-worker"])
def test_memory_and_processors_can_be_limited(name: str) -> None:
    service = services()[name]
    assert re.fullmatch(r"\$\{CAIRN_\w+_MEMORY:-0\}", service["mem_limit"])
    assert re.fullmatch(r"\$\{CAIRN_\w+_CPUS:-0\}", service["cpus"])
    assert re.fullmatch(r"\$\{CAIRN_\w+_CORES:-\}", service["cpuset"])


def test_the_image_is_built_here_and_never_taken_from_a_registry() -> None:
    built = [service for service in services().values() if "build" in service]
    assert built
    assert {service["pull_policy"] for service in built} == {"never"}


# --- who can talk to whom -----------------------------------------------------------------------------------


def test_only_the_api_is_reachable_and_only_from_this_machine() -> None:
    ports = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert ports == {"api": ["127.0.0.1:${CAIRN_HTTP_PORT:-8000}:8000"]}


def test_the_api_shares_a_network_with_postgresql_alone() -> None:
    networks = {name: set(service.get("networks", [])) for name, service in services().items()}
    near = {name for name, those in networks.items() if those & networks["api"]}
    assert near == {"api", "postgres"}
    assert [name for name, those in networks.items() if not those] == ["secrets"]
    assert services()["secrets"]["network_mode"] == "none"


def test_every_network_but_the_published_one_is_internal() -> None:
    outer = [name for name, facts in compose()["networks"].items() if not facts.get("internal")]
    assert outer == ["front"]


def test_certificates_and_passwords_go_only_to_those_who_need_them() -> None:
    holders = {
        secret: {name for name, service in services().items() if secret in volumes(service)}
        for secret in ("secrets", "certificates")
    }
    assert holders["certificates"] == {"secrets", "worker", "scheduler", "cluster-worker"}
    readers = {"postgres", "setup", "api", "worker", "cluster-worker", "backup", "maintenance"}
    assert holders["secrets"] == {"secrets", *readers}


# --- settings -----------------------------------------------------------------------------------------------


def test_services_run_in_production_mode_without_a_secret_in_the_environment() -> None:
    for name, service in services().items():
        given = service.get("environment", {})
        assert [key for key in given if re.search("PASSWORD|TOKEN", key) and not key.endswith("_FILE")] == []
        if name in ("setup", "api", "worker", "cluster-worker"):
            assert given["CAIRN_MODE"] == "production"


def test_every_setting_can_be_passed_on_unless_the_image_or_the_file_decides_it() -> None:
    decided = {"host", "port", "database_url", "cache_directory", "spool_directory", "health_directory"}
    decided |= {"mode", "database_password_file", "metrics_token", "metrics_token_file", "stop_seconds"}
    decided |= {"signing_key_file", "heads_file"}
    passed = {
        key.removeprefix("CAIRN_").lower()
        for key, value in services()["api"]["environment"].items()
        if value is None
    }
    given = {"cluster", "log_format"}  # with values of their own
    assert passed == set(Settings.model_fields) - decided - given


def test_no_setting_of_the_image_is_lost_by_passing_it_on() -> None:
    """A variable without a value in compose, if it is not set there either, is unset in the container."""
    of_image = set(re.findall(r"\b(CAIRN_\w+)=", (ROOT / "Dockerfile").read_text()))
    passed = {
        key
        for service in services().values()
        for key, value in service.get("environment", {}).items()
        if value is None
    }
    assert of_image & passed == set()


@pytest.mark.parametrize("name", ["api", "worker", "cluster-worker"])
def test_the_number_of_containers_is_a_setting_that_the_next_up_keeps(name: str) -> None:
    assert re.fullmatch(r"\$\{CAIRN_\w+_REPLICAS:-1\}", services()[name]["scale"])
    published = services()[name].get("ports", [])
    assert all("${CAIRN_HTTP_PORT:-8000}" in port for port in published), "a range gives each its own port"


@pytest.mark.parametrize("name", services())
def test_logs_are_rotated(name: str) -> None:
    options = services()[name]["logging"]["options"]
    assert {"max-size", "max-file"} <= set(options)


def test_a_release_can_pin_postgresql_by_its_digest() -> None:
    images = {services()[name]["image"] for name in ("postgres", "backup")}
    assert images == {"${CAIRN_POSTGRES_IMAGE:-postgres:16}"}


@pytest.mark.parametrize("name", ["api", "worker"])
def test_a_container_stops_by_itself_before_it_is_killed(name: str) -> None:
    service = services()[name]
    grace = int(service["stop_grace_period"].removesuffix("s"))
    assert float(service["environment"]["CAIRN_STOP_SECONDS"]) + 5 < grace


def test_workers_record_heads_in_the_volume_where_maintenance_verifies_them() -> None:
    for name in ("worker", "maintenance"):
        folder, _, _ = services()[name]["environment"]["CAIRN_HEADS_FILE"].rpartition("/")
        assert f"${{CAIRN_LEDGERS:-ledgers}}:{folder}" in services()[name]["volumes"]


# --- secrets and the cluster --------------------------------------------------------------------------------


def make_secrets(folder: Path) -> None:
    (program,) = services()["secrets"]["command"]
    for name in ("cairn", "cairn-cluster"):
        (folder / name).mkdir(exist_ok=True)
    program = program.replace("/run/", f"{folder}/")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_secrets_are_made_once_and_readable_by_those_who_need_them(tmp_path: Path) -> None:
    first: dict[str, str] = {}
    for _ in range(2):
        make_secrets(tmp_path)
        made = {path.name: path.read_text() for path in tmp_path.glob("*/*")}
        assert set(made) == {
            "database-password",
            "metrics-token",
            "signing-key.pem",
            "key.pem",
            "certificate.pem",
        }
        first = first or made
        assert made == first
    assert len(made["database-password"]) >= 43
    assert made["database-password"] != made["metrics-token"]
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("*/*")}
    assert modes == {
        "database-password": 0o440,
        "metrics-token": 0o440,
        "signing-key.pem": 0o400,
        "key.pem": 0o400,
        "certificate.pem": 0o400,
    }


def test_a_certificate_that_was_not_finished_is_made_again(tmp_path: Path) -> None:
    make_secrets(tmp_path)
    (tmp_path / "cairn-cluster" / "certificate.pem").rename(tmp_path / "cairn-cluster" / "new.pem")
    make_secrets(tmp_path)
    assert {path.name for path in (tmp_path / "cairn-cluster").iterdir()} == {"key.pem", "certificate.pem"}


def test_the_profile_cluster_adds_a_scheduler_and_workers_that_know_the_database_themselves() -> None:
    cluster = {name for name, service in services().items() if service.get("profiles") == ["cluster"]}
    assert cluster == {"scheduler", "cluster-worker"}
    given = services()["scheduler"]["environment"]
    assert [key for key in given if key.startswith("CAIRN")] == []  # it hands out tasks, without a password
    assert "CAIRN_DATABASE_PASSWORD_FILE" in services()["cluster-worker"]["environment"]
    assert services()["worker"]["environment"]["CAIRN_CLUSTER"] == "${CAIRN_CLUSTER:+tls://scheduler:8786}"


class Cluster:
    """Scheduler and worker as the compose file starts them, on this machine, with its certificates."""

    def __init__(self, folder: Path):
        make_secrets(folder)
        self.port = free_port()
        self.environment = {
            key: str(value).replace("/run/", f"{folder}/")
            for key, value in services()["worker"]["environment"].items()
            if key.startswith("DASK")
        }
        self._processes = [
            self._start(folder, "scheduler", "--host", "127.0.0.1"),
            self._start(folder, "cluster-worker"),
        ]

    def _start(self, folder: Path, name: str, *more: str) -> subprocess.Popen[bytes]:
        service = services()[name]
        words = [*service["entrypoint"], *service["command"], *more]
        moved = {"tls://scheduler:8786": f"tls://127.0.0.1:{self.port}", "8786": str(self.port)}
        moved |= {"/tmp": str(folder), "--nworkers=-1": "--nworkers=1"}
        words = [moved.get(word, word) for word in words]
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def listening(self) -> list[tuple[str, int]]:
        """Every address on which a process of the cluster takes connections."""
        family = [psutil.Process(process.pid) for process in self._processes]
        family += [child for parent in family for child in parent.children(recursive=True)]
        return [
            (connection.laddr.ip, connection.laddr.port)
            for process in family
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.wait(30)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


ASK = """
import sys
from distributed import Client
with Client(sys.argv[1], timeout=20, set_as_default=False) as client:
    client.wait_for_workers(1, timeout=60)
    print(client.submit(pow, 2, 5).result(timeout=60))
"""


def ask(address: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASK, address],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_cluster_answers_to_its_certificate_alone_and_has_no_pages(
    cluster: Cluster, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{cluster.port}"
    assert ask(f"tls://{address}", cluster.environment).stdout == "32\n"
    (tmp_path / "stranger").mkdir()
    make_secrets(tmp_path / "stranger")
    stranger = {
        key: value.replace(str(tmp_path), str(tmp_path / "stranger"))
        for key, value in cluster.environment.items()
    }
    assert ask(f"tls://{address}", stranger).returncode != 0
    assert ask(f"tcp://{address}", {}).returncode != 0
    for host, port in cluster.listening():
        try:
            near = "127.0.0.1" if host in ("::", "0.0.0.0") else host
            answer = httpx.get(f"http://{near}:{port}/info/main/workers.html", timeout=5)
        except httpx.TransportError:
            continue  # it does not speak HTTP
        assert (host, answer.status_code) == ("127.0.0.1", 404)
