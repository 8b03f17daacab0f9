"""Processes as an operator sees them: health checks, orders to stop, and a database that comes later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import ROOT, server
from service.operations import metrics
from service.operations.settings import Settings
from service.operations.supervisor import ENDED_BY_LIMIT, end_reason, worker_faults

#: Docker's own: a container that has not stopped by then is killed.
GRACE_SECONDS = 10


def command(*arguments: str, **settings: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **{f"CAIRN_{name.upper()}": value for name, value in settings.items()}}
    return subprocess.Popen(
        [sys.executable, "-m", "service.cli", *arguments],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def within(seconds: float, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)  # waiting for another program, which offers nothing to wait on


# --- health -------------------------------------------------------------------------------------------------


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        "database_url": sqlite_url,
        "cache_directory": str(tmp_path / "cache"),
        "health_directory": str(tmp_path / "health"),
        "poll_most_seconds": "0.2",
    }


@pytest.fixture
def supervisor(settings: dict[str, str]) -> Iterator[psutil.Process]:
    started = command("worker", "--processes", "1", **settings)
    process = psutil.Process(started.pid)
    within(60, process.children)
    yield process
    for child in process.children():
        child.resume()
    started.terminate()
    assert started.wait(30) == 0


def healthy(settings: dict[str, str]) -> bool:
    return command("health", "--no-api", **settings).wait(60) == 0


def complaints(settings: dict[str, str], *options: str) -> str:
    """What the health check of a machine with workers says is wrong."""
    environment = {**os.environ, **{f"CAIRN_{name.upper()}": value for name, value in settings.items()}}
    check = [sys.executable, "-m", "service.cli", "health", "--no-api", *options]
    done = subprocess.run(check, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


def grow_old(path: Path) -> float:
    """Make a file look as if nobody had touched it for an hour."""
    moment = time.time() - 3600
    os.utime(path, (moment, moment))
    return path.stat().st_mtime


def test_a_stuck_worker_is_noticed(supervisor: psutil.Process, settings: dict[str, str]) -> None:
    (worker,) = supervisor.children()
    file = Path(settings["health_directory"], f"worker-{worker.pid}")
    within(30, file.exists)
    assert healthy(settings)
    worker.suspend()
    grow_old(file)
    assert not healthy(settings)


def test_an_idle_worker_keeps_its_file_young(supervisor: psutil.Process, settings: dict[str, str]) -> None:
    (worker,) = supervisor.children()
    file = Path(settings["health_directory"], f"worker-{worker.pid}")
    within(30, file.exists)
    old = grow_old(file)
    within(60, lambda: file.stat().st_mtime > old + 1800)


def test_a_worker_that_died_is_replaced_and_leaves_no_file(
    supervisor: psutil.Process, settings: dict[str, str]
) -> None:
    (first,) = supervisor.children()
    directory = Path(settings["health_directory"])
    within(30, lambda: list(directory.iterdir()) == [directory / f"worker-{first.pid}"])
    first.kill()
    within(30, lambda: (left := os.listdir(directory)) and left != [f"worker-{first.pid}"])
    (second,) = supervisor.children()
    assert sorted(os.listdir(directory)) == ["lost-0", f"worker-{second.pid}"]


def test_a_lost_worker_is_named_by_the_health_check_for_a_while(
    supervisor: psutil.Process, settings: dict[str, str]
) -> None:
    (worker,) = supervisor.children()
    within(30, lambda: healthy(settings))
    worker.kill()
    loss = Path(settings["health_directory"], "lost-0")
    within(30, loss.exists)
    within(30, lambda: "a worker process was killed" in complaints(settings))
    assert complaints(settings, "--no-losses") == ""
    grow_old(loss)
    assert complaints(settings) == ""


@pytest.mark.parametrize(
    ("code", "out_of_memory", "reason"),
    [
        (0, False, ""),
        (ENDED_BY_LIMIT, True, ""),
        (-signal.SIGKILL, True, "memory"),
        (-signal.SIGKILL, False, "killed"),
        (-signal.SIGSEGV, True, "crashed"),
        (1, False, "crashed"),
    ],
)
def test_the_reason_of_a_loss_is_told_by_exit_code_and_kernel(
    code: int, out_of_memory: bool, reason: str
) -> None:
    assert end_reason(code, out_of_memory=out_of_memory) == reason
    assert reason in ("", *metrics.LOSSES)


def test_a_worker_that_was_last_seen_in_the_future_is_noticed(tmp_path: Path) -> None:
    seen = tmp_path / "worker-1"
    seen.touch()
    os.utime(seen, (0, time.time() + 3000))  # it waits until then
    assert worker_faults(tmp_path, longest_silence=3600) == []
    os.utime(seen, (0, time.time() + 86_400))
    (fault,) = worker_faults(tmp_path, longest_silence=3600)
    assert fault == "worker-1 was last seen in the future: the clock of this machine was set"


def test_a_machine_without_a_worker_is_noticed(settings: dict[str, str]) -> None:
    assert complaints(settings) == "Unhealthy: no worker process is running.\n"


def test_an_api_that_is_not_there_is_noticed(settings: dict[str, str]) -> None:
    assert command("health", **settings, port="1").wait(60) == 1


def test_health_checks_leave_no_lines_in_the_log(sqlite_url: str, tmp_path: Path) -> None:
    with server(sqlite_url, tmp_path, command=("serve", "--workers", "0")) as service:
        assert httpx.get(f"{service.address}/healthz").status_code == 200
        assert httpx.get(f"{service.address}/v1/whoami").status_code == 401
        port = service.address.rsplit(":", 1)[1]
        assert command("health", port=port).wait(60) == 0
    written = service.log.read_text()
    assert "/v1/whoami" in written
    assert "/healthz" not in written
    assert "/readyz" not in written


def test_workers_end_with_a_supervisor_that_was_killed(settings: dict[str, str]) -> None:
    started = command("worker", "--processes", "1", **settings)
    within(60, psutil.Process(started.pid).children)
    (worker,) = psutil.Process(started.pid).children()
    started.kill()
    started.wait()
    within(30, lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)


# --- orders to stop -----------------------------------------------------------------------------------------


def test_a_service_in_mid_job_gives_the_job_back_when_it_is_stopped(sqlite_url: str, tmp_path: Path) -> None:
    one_worker = ("serve", "--workers", "1")
    with server(sqlite_url, tmp_path, command=one_worker, stop_seconds="1") as service:
        carla = service.person(service.bootstrap_key())
        made = carla.call("POST", "/v1/principals", json={"name": "ada", "role": "analyst"}, expect=201)
        ada = service.person(made.json()["first_key"]["key"])
        facts = {
            "name": "flowers",
            "columns": ["a", "b"],
            "bounds": {"box": {"low": [0, 0], "high": [10, 4]}},
            "size": 200_000,
            "budget": {"epsilon": "1"},
        }
        carla.call("POST", "/v1/datasets", json=facts, expect=201)
        rows = "a,b\n" + "".join(f"{i % 100 / 10},{i % 7 / 2}\n" for i in range(200_000))
        carla.call("PUT", "/v1/datasets/flowers/data", content=rows.encode(), expect=200)
        carla.call("POST", "/v1/datasets/flowers/seal", json={}, expect=200)
        carla.call("PUT", "/v1/datasets/flowers/grants/ada", json={"epsilon": "1"}, expect=200)
        long = {
            "dataset": "flowers",
            "k": 1000,
            "epsilon": "1",
            "algorithm": "sulq",
            "options": {"rounds": 100},
        }
        job = ada.call("POST", "/v1/jobs", json=long, expect=202).json()["id"]
        within(60, lambda: carla.call("GET", f"/v1/jobs/{job}").json()["state"] == "running")
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0
    assert "the job is given back" in service.log.read_text()


def test_a_service_stops_before_docker_loses_patience() -> None:
    """By the limits it sets itself: what a busy machine adds to them is not measured here."""
    assert Settings.model_fields["stop_seconds"].default <= GRACE_SECONDS / 2


# --- a database that comes later ----------------------------------------------------------------------------


def test_migrate_waits_for_a_database_that_is_not_there_yet() -> None:
    postgres = Server()
    try:
        url = postgres.url(postgres.create())
        postgres.stop()
        assert command("migrate", database_url=url).wait(60) != 0
        waiting = command("migrate", "--wait", "60", database_url=url)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(3)
        postgres.start()
        assert waiting.wait(60) == 0
    finally:
        postgres.close()
