"""A scheduler that dies or falls silent in the middle of a job: the job's own process does the rest, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from distributed import Client

from benchmarks.harness.processes import free_port
from core.algorithms import registry
from core.plan import Request
from core.privacy import Budget
from core.views import clear_cache
from service.workers import execution
from service.workers.executors import make_executor
from service.workers.rows import ChunkCache, DatabaseSource
from tests.support import journals
from tests.support.bits import inject_bytes
from tests.support.service import House

#: 2 columns of int16: 1024 rows in a chunk of the smallest size.
ROWS, CHUNK_BYTES = 5000, 4096
LIMIT = 3.0
#: What the service promises: a job ends within a minute after the limit.
PROMISE = LIMIT + 60


class Cluster:
    """A scheduler and one worker, each a process of its own as in a deployment."""

    def __init__(self, folder: Path, database: str):
        self.address = f"tcp://127.0.0.1:{free_port()}"
        environment = {
            **os.environ,
            "CAIRN_DATABASE_URL": database,
            "CAIRN_CACHE_DIRECTORY": str(folder / "cache"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        port = self.address.rsplit(":", 1)[1]
        commands = (
            ("scheduler", "--host", "127.0.0.1", "--port", port, "--dashboard-address", "127.0.0.1:0"),
            ("worker", self.address, "--nthreads", "1", "--local-directory", str(folder)),
        )
        self._log = (folder / "cluster.log").open("wb")
        self.scheduler, self.worker = (
            subprocess.Popen(
                [sys.executable, "-m", "dask", *command, "--no-dashboard"],
                env=environment,
                stdout=self._log,
                stderr=self._log,
            )
            for command in commands
        )
        with Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)

    def close(self) -> None:
        for process in (self.scheduler, self.worker):
            family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            for each in family:
                each.kill()
            process.kill()
            process.wait()
        self._log.close()


@pytest.fixture
def cluster(sqlite_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, sqlite_url)) as started:
        yield started


@pytest.fixture
def house(sqlite_url: str, tmp_path: Path, cluster: Cluster) -> Iterator[House]:
    """A service whose jobs run on the cluster, with a dataset of several chunks."""
    settings: dict[str, Any] = {"cluster": cluster.address, "cluster_seconds": LIMIT}
    with closing(House(sqlite_url, tmp_path, chunk_bytes=CHUNK_BYTES, **settings)) as made:
        made.ready(rows=ROWS, size=ROWS)
        yield made


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_job_outlives_its_scheduler_and_is_charged_once(
    how: signal.Signals, house: House, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL: its connections break. SIGSTOP: they stay open, as those of a machine without power."""
    hit: list[float] = []

    real: Callable[..., Any] = execution.execute

    def watched(*arguments: Any) -> Any:
        *rest, listener = arguments

        def listen(*facts: Any) -> None:
            listener(*facts)
            if not hit and facts[1] == 3:  # after the third measurement
                hit.append(time.monotonic())
                cluster.scheduler.send_signal(how)

        return real(*rest, listen)

    monkeypatch.setattr(execution, "execute", watched)
    job = house.submit("0.5", options={"rounds": 10}).json()["id"]
    assert house.work()
    assert time.monotonic() - hit[0] < PROMISE
    house.clock.move(3600)
    assert house.ada.get(f"/v1/jobs/{job}").json()["state"] == "succeeded"
    entries = house.carla.get("/v1/datasets/flowers/ledger").json()["items"]
    assert sorted(each["kind"] for each in entries if each["job"] == job) == ["charge", "reserve"]
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_a_job_on_the_cluster_goes_on_from_what_a_killed_worker_released(
    house: House, cluster: Cluster
) -> None:
    job = house.submit("0.5", options={"rounds": 3}).json()["id"]
    work = "import os; from service.workers.worker import main; main(os.getppid(), 0)"
    environment = house.settings.as_environment() | {"CAIRN_TEST_FAULT": "execute.measured:kill:3:"}
    killed = subprocess.run([sys.executable, "-c", work], env=environment, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = journals.entries(house.database)
    assert len(journals.releases(before)) == 4
    house.clock.move(3600)
    assert house.work()
    after = journals.transcript(house.database, job)
    assert journals.goes_on(before, after)
    assert len(after.releases) == 6
    entries = house.carla.get("/v1/datasets/flowers/ledger").json()["items"]
    assert [each["kind"] for each in entries if each["job"] == job].count("charge") == 1


def test_the_next_job_after_a_lost_scheduler_runs_too(house: House, cluster: Cluster) -> None:
    cluster.scheduler.send_signal(signal.SIGSTOP)
    job = house.submit("0.1").json()["id"]
    started = time.monotonic()
    assert house.work()
    assert time.monotonic() - started < PROMISE
    house.clock.move(3600)
    assert house.ada.get(f"/v1/jobs/{job}").json()["state"] == "succeeded"


def test_what_this_process_takes_over_is_the_same_to_the_last_bit(
    house: House, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DatabaseSource(house.database, 1, ChunkCache(house.settings.cache_directory, 1 << 30))
    request = Request(3, Budget.of("1"), algorithm="sulq", options={"rounds": 3})
    plan = registry.plan(source.domain, request)

    def stop_the_scheduler(_step: str, measured: int, _planned: int) -> None:
        if measured == 3:
            cluster.scheduler.send_signal(signal.SIGSTOP)

    clear_cache()
    inject_bytes(monkeypatch, 11)
    inline = registry.run(plan, source, None)
    clear_cache()
    inject_bytes(monkeypatch, 11)
    with make_executor(house.settings) as executor:
        assert executor is not None
        spread = registry.run(plan, source, executor, stop_the_scheduler)
    assert np.array_equal(inline.centres, spread.centres)
    assert inline.draws == spread.draws
