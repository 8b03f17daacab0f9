"""The pods of the manifests, run as containers of a real engine: only `make image-test` runs this.

Each container gets what Kubernetes would give it: command, settings, secrets as files, empty volumes that
belong to its group, a read-only root, the memory limit, and the variables of a service that is named `cairn`.
The tests follow each other in this order.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service.operations import signing
from tests.acceptance.test_kubernetes import pods, resources
from tests.support.containers import run, until

pytestmark = pytest.mark.containers

NAME = "cairn-pods-test"
#: What Kubernetes sets in every pod when a service is named `cairn`.
SERVICE_LINKS = {"CAIRN_PORT": "tcp://10.96.0.12:80", "CAIRN_SERVICE_HOST": "10.96.0.12"}
SETTINGS: dict[str, dict[str, str]] = {
    resource["metadata"]["name"]: resource["data"]
    for resource in resources("one-node")
    if resource["kind"] == "ConfigMap"
}
ASK = """
import json, sys, urllib.error, urllib.request
method, path, key, body = json.loads(sys.argv[1])
kind = "text/csv" if path.endswith("/data") else "application/json"
headers = {"Authorization": "Bearer " + key, "Content-Type": kind}
address = "http://127.0.0.1:8000" + path
request = urllib.request.Request(address, body.encode() or None, headers, method=method)
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        print(json.dumps([answer.status, answer.read().decode()]))
except urllib.error.HTTPError as answer:
    print(json.dumps([answer.code, answer.read().decode()]))
"""


def finish(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever that is."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Pods:
    """Containers that run what the manifests say, on a network of their own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.key = ""
        signing.make(folder / "signing-key.pem")
        for name in ("database-password", "metrics-token"):
            (folder / name).write_text(secrets.token_urlsafe(32))
        for path in folder.iterdir():
            path.chmod(0o444)  # Kubernetes gives the files to the pod's group
        folder.chmod(0o755)
        run("docker", "network", "create", "--internal", NAME)

    def command(self, name: str, *, host: str, memory: str = "") -> list[str]:
        """The command that runs a pod of the manifests."""
        (pod,) = [pod for found, pod in pods() if found == name]
        (container,) = pod["containers"]
        user = pod["securityContext"]["runAsUser"]
        words = ["docker", "run", "--network", NAME, "--name", f"{NAME}-{host}", "--network-alias", host]
        words += ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        words += [
            "--user",
            f"{user}:{user}",
            "--memory",
            memory or container["resources"]["limits"]["memory"][:-1],
        ]
        given = dict(SERVICE_LINKS)
        for source in container.get("envFrom", []):
            given |= SETTINGS.get(source["configMapRef"]["name"], {})
        given |= {each["name"]: each["value"] for each in container.get("env", [])}
        words += [word for key, value in given.items() for word in ("--env", f"{key}={value}")]
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        for mount in container["volumeMounts"]:
            if mount["name"] in ("secrets", "password"):
                words += ["--volume", f"{self.folder}:{mount['mountPath']}:ro"]
            elif not volumes.get(mount["name"], {}).get("secret", {}).get("optional"):
                words += ["--tmpfs", f"{mount['mountPath']}:uid={user},gid={user},mode=0700"]
        if "command" in container:
            words += ["--entrypoint", container["command"][0]]
        return [*words, container["image"], *container.get("command", [])[1:], *container.get("args", [])]

    def start(self, name: str, *, host: str, memory: str = "") -> None:
        run(*self.insert(self.command(name, host=host, memory=memory), "--detach"))

    @staticmethod
    def insert(command: list[str], *options: str) -> list[str]:
        return [*command[:2], *options, *command[2:]]

    def probe(self, name: str, host: str, kind: str) -> bool:
        """What a probe of the manifests says."""
        (container,) = next(pod for found, pod in pods() if found == name)["containers"]
        probe = container[kind]
        if "httpGet" in probe:
            return self.ask("GET", probe["httpGet"]["path"], host=host)[0] == 200
        done = finish(["docker", "exec", f"{NAME}-{host}", *probe["exec"]["command"]])
        return done.returncode == 0

    def ask(self, method: str, path: str, body: Any = "", *, host: str = "api") -> tuple[int, str]:
        text = body if isinstance(body, str) else json.dumps(body)
        words = json.dumps([method, path, self.key, text])
        done = finish(["docker", "exec", f"{NAME}-{host}", "python", "-c", ASK, words])
        return tuple(json.loads(done.stdout)) if done.returncode == 0 else (0, done.stderr)

    def logs(self, host: str) -> str:
        done = finish(["docker", "logs", f"{NAME}-{host}"])
        return done.stdout + done.stderr

    def close(self) -> None:
        found = run("docker", "ps", "-aq", "--filter", f"name={NAME}").split()
        if found:
            run("docker", "rm", "--force", "--volumes", *found)
        finish(["docker", "network", "rm", NAME])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    found = Pods(tmp_path_factory.mktemp("pods"))
    yield found
    found.close()


def test_the_api_ends_with_a_sentence_until_the_job_has_migrated(made: Pods) -> None:
    made.start("postgres", host="postgres")
    until(lambda: made.probe("postgres", "postgres", "readinessProbe"), 60, "PostgreSQL is ready")
    done = finish(made.command("cairn-api", host="early"))
    assert done.returncode == 1
    assert "run `cairn-server migrate`" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_job_migrates_and_prints_the_first_key(made: Pods) -> None:
    done = finish(made.command("cairn-setup", host="setup"))
    assert done.returncode == 0, done.stderr
    made.key = done.stdout.strip()
    assert made.key.startswith("cairn_")


def test_api_and_worker_become_ready_on_empty_volumes(made: Pods) -> None:
    made.start("cairn-api", host="api")
    made.start("cairn-worker", host="worker")
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        until(partial(made.probe, "cairn-api", "api", kind), 120, f"the API's {kind}")
        until(partial(made.probe, "cairn-worker", "worker", kind), 120, f"the worker's {kind}")


def test_a_job_runs_in_the_pods(made: Pods) -> None:
    dataset = {
        "name": "flowers",
        "columns": ["a", "b"],
        "bounds": {"box": {"low": [0, 0], "high": [10, 4]}},
        "size": 1000,
        "planned_release": False,
        "budget": {"epsilon": "1", "delta": "0.000001"},
    }
    assert made.ask("POST", "/v1/datasets", dataset)[0] == 201
    assert made.ask("PUT", "/v1/datasets/flowers/data", "a,b\n" + "1,2\n3,1\n" * 500)[0] == 200
    assert made.ask("POST", "/v1/datasets/flowers/seal", {})[0] == 200
    status, answer = made.ask(
        "POST", "/v1/jobs", {"dataset": "flowers", "k": 2, "epsilon": "0.5", "delta": "0"}
    )
    assert status == 202, answer
    path = f"/v1/jobs/{json.loads(answer)['id']}"
    ended = ("succeeded", "failed", "cancelled")
    until(lambda: json.loads(made.ask("GET", path)[1])["state"] in ended, 120, "the job ends")
    assert json.loads(made.ask("GET", path)[1])["state"] == "succeeded"


@pytest.mark.parametrize("name", ["cairn-backup", "cairn-maintenance"])
def test_a_cron_job_succeeds(made: Pods, name: str) -> None:
    done = finish(made.command(name, host=name))
    assert done.returncode == 0, done.stderr
    assert name == "cairn-backup" or "Every ledger, every receipt and the audit log verify." in done.stdout


@pytest.mark.parametrize("host", ["api", "worker"])
def test_a_pod_that_is_told_to_stop_ends_well(made: Pods, host: str) -> None:
    begun = time.monotonic()
    run("docker", "stop", "--time", "60", f"{NAME}-{host}")
    assert time.monotonic() - begun < 60
    state = json.loads(run("docker", "inspect", f"{NAME}-{host}"))[0]["State"]
    assert state["ExitCode"] == 0


def test_a_plan_beyond_a_workers_memory_is_refused_before_the_reservation(made: Pods) -> None:
    made.start("cairn-api", host="second-api")
    made.start("cairn-worker", host="small", memory="260m")
    until(lambda: made.probe("cairn-worker", "small", "readinessProbe"), 120, "the small worker is ready")
    until(lambda: made.probe("cairn-api", "second-api", "readinessProbe"), 120, "the API is ready")
    job = {"dataset": "flowers", "k": 2, "epsilon": "0.1", "delta": "0"}

    def ask(path: str) -> tuple[int, str]:
        return made.ask("POST", path, job, host="second-api")

    until(lambda: ask("/v1/plans")[0] == 422, 60, "the API knows of the small worker")
    status, answer = ask("/v1/jobs")
    assert (status, json.loads(answer)["type"]) == (422, "/problems/work-limit")
    ledger = json.loads(made.ask("GET", "/v1/datasets/flowers/ledger", host="second-api")[1])["items"]
    assert [entry["kind"] for entry in ledger].count("reserve") == 1
    assert "too little memory for any job" in made.logs("small")
