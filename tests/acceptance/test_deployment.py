"""The image and docker-compose.yml on a real container engine: only `make image-test` runs this.

The deployment is started once; the tests follow each other in this order.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest

from benchmarks.harness.processes import RemotePerson, free_port
from tests.acceptance.test_story import tell_the_story
from tests.support.containers import CLUSTER_SECONDS, PROJECT, Container, Deployment, run, until

pytestmark = pytest.mark.containers

ROWS = 400_000
DATASET = {
    "name": "big",
    "columns": list("abcdefgh"),
    "bounds": {"box": {"low": [0] * 8, "high": [1] * 8}},
    "size": ROWS,
    "planned_release": False,
    "budget": {"epsilon": "100"},
}
#: Runs for ten seconds or more: what happens to the cluster happens meanwhile.
LONG_JOB = {"dataset": "big", "algorithm": "sulq", "k": 32, "epsilon": "10", "options": {"rounds": 50}}


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    made.close()  # whatever an earlier run left
    try:
        made.up()
        made.wait_for_cluster()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def carla(deployment: Deployment) -> RemotePerson:
    return deployment.person(deployment.bootstrap_key())


@pytest.fixture(scope="module")
def bob(deployment: Deployment, carla: RemotePerson) -> RemotePerson:
    """An analyst with a dataset whose jobs take their time."""
    made = carla.call("POST", "/v1/principals", json={"name": "bob", "role": "analyst"}, expect=201).json()
    carla.call("POST", "/v1/datasets", json=DATASET, expect=201)
    block = "\n".join(
        ",".join(f"{x:.3f}" for x in row) for row in np.random.default_rng(2).random((10_000, 8))
    )
    rows = "a,b,c,d,e,f,g,h\n" + (block + "\n") * (ROWS // 10_000)
    carla.call("PUT", "/v1/datasets/big/data", content=rows.encode(), expect=200)
    carla.call("POST", "/v1/datasets/big/seal", json={}, expect=200)
    carla.call("PUT", "/v1/datasets/big/grants/bob", json={"epsilon": "100"}, expect=200)
    return deployment.person(made["first_key"]["key"])


# --- the story ----------------------------------------------------------------------------------------------


def test_the_story_runs_on_the_cluster(deployment: Deployment) -> None:
    tell_the_story(deployment)  # type: ignore[arg-type]  # it offers what the story needs
    assert "runs in this process" not in deployment.logs("worker")
    assert "given up" not in deployment.logs("worker")


@pytest.mark.parametrize("service", ["postgres", "api", "worker"])
def test_health_checks_succeed(deployment: Deployment, service: str) -> None:
    (container,) = deployment.containers(service)
    until(lambda: container.state()["Health"]["Status"] == "healthy", 120, f"{service} is healthy")


def test_health_checks_leave_no_lines_in_the_log(deployment: Deployment) -> None:
    assert "/healthz" not in deployment.logs("api")


def test_no_container_has_a_nameless_volume(deployment: Deployment) -> None:
    names = {
        mount["Name"]
        for container in deployment.containers(stopped=True)
        for mount in container.facts["Mounts"]
        if mount["Type"] == "volume"
    }
    assert {name for name in names if not name.startswith(f"{PROJECT}_")} == set()


def test_a_proxy_is_believed_as_the_settings_say(deployment: Deployment) -> None:
    answer = httpx.get(f"{deployment.address}/healthz", headers={"X-Forwarded-Proto": "https"})
    assert "strict-transport-security" in answer.headers


# --- who answers whom ---------------------------------------------------------------------------------------

TRY = """
import json, socket, sys
answering = []
for address, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((address, port), timeout=2).close()
        answering.append([address, port])
    except OSError:
        pass
print(json.dumps(answering))
"""


def listening(deployment: Deployment) -> dict[str, list[tuple[str, int]]]:
    """Every address and port on which a container takes connections, by its service."""
    found: dict[str, list[tuple[str, int]]] = {}
    for container in deployment.containers():
        places = [(address, port) for address in container.addresses for port in container.ports()]
        found.setdefault(container.service, []).extend(places)
    return found


def test_from_the_api_only_postgresql_answers(deployment: Deployment) -> None:
    others = {name: places for name, places in listening(deployment).items() if name != "api"}
    assert {"postgres", "scheduler", "cluster-worker"} <= {name for name in others if others[name]}
    (api,) = deployment.containers("api")
    targets = json.dumps([place for places in others.values() for place in places])
    answering = json.loads(run("docker", "exec", api.id, "python", "-c", TRY, targets))
    assert [place for place in answering if tuple(place) not in others["postgres"]] == []
    assert [port for _, port in answering] == [5432]


def refuses_without_certificate(address: str, port: int) -> bool:
    """True when whoever shows no certificate gets no answer, and who speaks plainly gets none either."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address, port), timeout=10) as plain,
            context.wrap_socket(plain) as encrypted,
        ):
            silent = encrypted.recv(1) == b""
    except TimeoutError:
        silent = False  # it would listen to us
    except (ssl.SSLError, ConnectionError):
        silent = True
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://{address}:{port}/", timeout=5)
    return silent


def test_from_the_machine_nothing_but_the_api_answers_without_credentials(deployment: Deployment) -> None:
    """Any user of the machine reaches the containers' addresses."""
    for service, places in listening(deployment).items():
        for address, port in places:
            if service == "api":
                assert httpx.get(f"http://{address}:{port}/v1/whoami").status_code == 401
            elif service == "postgres":
                for given in ("", " password=cairn"):
                    with pytest.raises(psycopg.OperationalError, match="password"):
                        psycopg.connect(f"host={address} port={port} user=cairn dbname=cairn{given}")
            else:
                assert refuses_without_certificate(address, port), f"{service}: {address}:{port}"


def test_only_the_api_is_published_and_only_on_the_loopback(deployment: Deployment) -> None:
    published = {
        (container.service, binding["HostIp"])
        for container in deployment.containers()
        for bindings in (container.facts["NetworkSettings"]["Ports"] or {}).values()
        for binding in bindings or []
    }
    assert published == {("api", "127.0.0.1")}


# --- what is lost in mid-job --------------------------------------------------------------------------------


def begin_job(carla: RemotePerson, bob: RemotePerson) -> str:
    """Submit a long job, and return its id once a worker has been at it for a moment."""
    job = str(bob.call("POST", "/v1/jobs", json=LONG_JOB, expect=202).json()["id"])
    until(lambda: carla.call("GET", f"/v1/jobs/{job}").json()["state"] == "running", 60, "a worker takes it")
    time.sleep(2)  # nothing outside tells when its first tasks have reached the cluster
    return job


@contextmanager
def killed(container: Container) -> Iterator[None]:
    """Kill a container, and start it again at the end."""
    try:
        run("docker", "kill", container.id)
        yield
    finally:
        run("docker", "start", container.id)


def end_job(carla: RemotePerson, bob: RemotePerson, job: str, hit: datetime) -> dict[str, Any]:
    """Wait for a job that was hit while it ran: it has succeeded under one charge."""
    ended = bob.wait(job)
    assert ended["state"] == "succeeded"
    assert datetime.fromisoformat(ended["finished_at"]) > hit, "it ended before it was hit"
    entries = carla.call("GET", "/v1/datasets/big/ledger", params={"limit": 100}, expect=200).json()["items"]
    assert [entry["kind"] for entry in entries if entry["job"] == job] == ["reserve", "charge"]
    assert carla.call("POST", "/v1/datasets/big/ledger/verify", expect=200).json()["ok"]
    return ended


def test_a_killed_cluster_worker_costs_time_and_one_charge(
    deployment: Deployment, carla: RemotePerson, bob: RemotePerson
) -> None:
    victim, _ = deployment.containers("cluster-worker")
    job = begin_job(carla, bob)
    hit = datetime.now(UTC)
    with killed(victim):
        end_job(carla, bob, job, hit)


def test_a_killed_scheduler_costs_at_most_the_limit_and_a_minute(
    deployment: Deployment, carla: RemotePerson, bob: RemotePerson
) -> None:
    (scheduler,) = deployment.containers("scheduler")
    job = begin_job(carla, bob)
    hit = datetime.now(UTC)
    try:
        with killed(scheduler):
            ended = end_job(carla, bob, job, hit)
    finally:
        deployment.wait_for_cluster()
    taken = (datetime.fromisoformat(ended["finished_at"]) - hit).total_seconds()
    assert taken < CLUSTER_SECONDS + 60
    assert "the cluster is given up" in deployment.logs("worker")


def test_a_worker_stopped_in_mid_job_gives_it_back_and_ends_well(
    deployment: Deployment, carla: RemotePerson, bob: RemotePerson
) -> None:
    (worker,) = deployment.containers("worker")
    job = begin_job(carla, bob)
    hit = datetime.now(UTC)
    deployment.compose("stop", "worker")
    assert worker.state()["ExitCode"] == 0
    run("docker", "start", worker.id)
    end_job(carla, bob, job, hit)


# --- the scripts --------------------------------------------------------------------------------------------


def test_the_password_is_rotated_while_the_service_runs(
    deployment: Deployment, carla: RemotePerson, bob: RemotePerson
) -> None:
    deployment.script("rotate-password.sh")
    deployment.wait_until_ready()
    job = bob.call("POST", "/v1/jobs", json={**LONG_JOB, "options": {"rounds": 2}}, expect=202).json()["id"]
    assert bob.wait(job)["state"] == "succeeded"


def test_a_back_up_is_restored(
    deployment: Deployment, carla: RemotePerson, bob: RemotePerson, tmp_path: Path
) -> None:
    def entries() -> list[dict[str, Any]]:
        answer = carla.call("GET", "/v1/datasets/big/ledger", params={"limit": 100}, expect=200)
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    before = entries()
    deployment.script("backup.sh", str(tmp_path / "cairn.dump"))
    job = bob.call("POST", "/v1/jobs", json={**LONG_JOB, "options": {"rounds": 2}}, expect=202).json()["id"]
    assert bob.wait(job)["state"] == "succeeded"
    deployment.script("restore.sh", str(tmp_path / "cairn.dump"))
    deployment.up()
    assert entries() == before
    assert carla.call("POST", "/v1/datasets/big/ledger/verify", expect=200).json()["ok"]
    # Heads that were signed after the back-up are out of the way.
    assert "verify" in deployment.compose("exec", "-T", "worker", "cairn-server", "verify")


# --- one container ------------------------------------------------------------------------------------------


def test_a_single_container_stops_in_time_and_keeps_its_volume() -> None:
    name, port = f"{PROJECT}-single", free_port()
    image = run("docker", "compose", "config", "--images").split()
    (ours,) = {each for each in image if "cairn" in each}
    subprocess.run(["docker", "rm", "-fv", name], capture_output=True, check=False)
    start = ["docker", "run", "-d", "--name", name, "-v", f"{name}:/var/lib/cairn"]
    start += ["-p", f"127.0.0.1:{port}:8000", "--pull", "never", ours]

    def ready() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def key() -> str:
        done = subprocess.run(["docker", "logs", name], capture_output=True, text=True, check=True)
        (found,) = re.findall(r"cairn_[0-9a-f]{8}_[A-Za-z0-9_-]+", done.stdout + done.stderr)
        return str(found)

    try:
        run(*start)
        until(ready, 120, "the container is ready")
        curator = {"Authorization": f"Bearer {key()}"}
        run("docker", "stop", name)  # with Docker's own grace of ten seconds
        assert run("docker", "inspect", "-f", "{{.State.ExitCode}}", name).strip() == "0"
        run("docker", "rm", name)
        run(*start)
        until(ready, 120, "another container on the volume is ready")
        answer = httpx.get(f"http://127.0.0.1:{port}/v1/whoami", headers=curator)
        assert answer.json()["role"] == "curator"
    finally:
        subprocess.run(["docker", "rm", "-fv", name], capture_output=True, check=False)
        subprocess.run(["docker", "volume", "rm", name], capture_output=True, check=False)
