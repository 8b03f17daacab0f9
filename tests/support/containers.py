"""The compose deployment on a real container engine, under a project name and a port of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.harness.processes import RemotePerson, free_port

ROOT = Path(__file__).parent.parent.parent
PROJECT = "cairn-image-test"
#: How long a job waits for the cluster here: short enough to be tested.
CLUSTER_SECONDS = 10
_READY_SECONDS = 180
_LISTENING = "0A"  # the state's number in /proc/net/tcp


def run(*command: str, **options: Any) -> str:
    """The output of a command that must succeed."""
    done: subprocess.CompletedProcess[str]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """What the condition answers once that is true."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.2)  # waiting for another program, which offers nothing to wait on
    return answer


@dataclass(frozen=True)
class Container:
    """A container of the deployment as the engine describes it."""

    id: str
    service: str
    facts: dict[str, Any]

    @property
    def addresses(self) -> list[str]:
        networks = self.facts["NetworkSettings"]["Networks"].values()
        return [network["IPAddress"] for network in networks if network["IPAddress"]]

    def ports(self) -> list[int]:
        """Ports on which it takes connections, but for those on its own loopback."""
        text = run("docker", "exec", self.id, "cat", "/proc/net/tcp", "/proc/net/tcp6")
        found = re.findall(rf"(?m)^\s*\d+: ([0-9A-F]+):([0-9A-F]{{4}}) \S+ {_LISTENING} ", text)
        return sorted({int(port, 16) for host, port in found if not host.endswith("7F")})

    def state(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(run("docker", "inspect", self.id))[0]["State"]
        return answer


class Deployment:
    """API, workers, PostgreSQL and a cluster with two workers, from docker-compose.yml as it is."""

    def __init__(self) -> None:
        self.address = f"http://127.0.0.1:{free_port()}"
        self.environment = {
            **os.environ,
            "COMPOSE_PROJECT_NAME": PROJECT,
            "COMPOSE_PROFILES": "cluster",
            "CAIRN_HTTP_PORT": self.address.rsplit(":", 1)[1],
            "CAIRN_CLUSTER": "tls://scheduler:8786",
            "CAIRN_CLUSTER_SECONDS": str(CLUSTER_SECONDS),
            "CAIRN_CHUNK_BYTES": str(1 << 20),  # so that a job has several tasks at a time
            "CAIRN_FORWARDED_ALLOW_IPS": "*",
        }
        self._people: list[RemotePerson] = []

    def compose(self, *words: str) -> str:
        return run("docker", "compose", *words, env=self.environment)

    def script(self, name: str, *words: str) -> str:
        """Run one of the scripts in deploy/."""
        return run(str(ROOT / "deploy" / name), *words, env=self.environment)

    def up(self) -> None:
        self.compose("up", "-d", "--no-build", "--scale", "cluster-worker=2")
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            try:
                return httpx.get(f"{self.address}/readyz", timeout=5).status_code == 200
            except httpx.TransportError:
                return False

        until(ready, _READY_SECONDS, "the API is ready")

    def wait_for_cluster(self, workers: int = 2) -> None:
        """Until so many containers of cluster workers have come to the scheduler that runs now."""

        def came() -> bool:
            (scheduler,) = self.containers("scheduler")
            since = scheduler.state()["StartedAt"]
            done = subprocess.run(
                ["docker", "logs", "--since", since, scheduler.id], capture_output=True, text=True, check=True
            )
            hosts = re.findall(r"Register worker.*?tls://([\d.]+):", done.stdout + done.stderr)
            return len(set(hosts)) >= workers

        until(came, 120, f"{workers} containers work for the scheduler")

    def close(self) -> None:
        for person in self._people:
            person.close()
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "5")

    def containers(self, service: str = "", *, stopped: bool = False) -> list[Container]:
        words = [
            "docker",
            "ps",
            "-q",
            "--no-trunc",
            "--filter",
            f"label=com.docker.compose.project={PROJECT}",
        ]
        if service:
            words += ["--filter", f"label=com.docker.compose.service={service}"]
        if stopped:
            words += ["--all"]
        ids = run(*words).split()
        found = json.loads(run("docker", "inspect", *ids)) if ids else []
        label = "com.docker.compose.service"
        return [Container(each["Id"], each["Config"]["Labels"][label], each) for each in found]

    def logs(self, service: str) -> str:
        return self.compose("logs", "--no-color", service)

    # --- the interface of benchmarks.harness.processes.RunningService

    def bootstrap_key(self) -> str:
        """The key that the first start prints once."""
        (key,) = re.findall(r"cairn_[0-9a-f]{8}_[A-Za-z0-9_-]+", self.logs("setup"))
        return str(key)

    def person(self, key: str) -> RemotePerson:
        self._people.append(RemotePerson(self.address, key))
        return self._people[-1]
