"""Jobs on a real Dask cluster: the same integers, no password in a task; a lost worker costs time alone."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from sqlalchemy.engine import make_url

from benchmarks.harness.postgres import Server
from core.algorithms import registry
from core.algorithms.base import Clustering
from core.plan import Request
from core.privacy import Budget
from core.views import clear_cache
from service.operations.database import Database
from service.operations.settings import Settings
from service.workers import execution, executors
from service.workers.executors import ClusterExecutor, make_executor
from service.workers.rows import ChunkCache, DatabaseSource
from tests.support.bits import inject_bytes
from tests.support.service import House

#: 2 columns of int16: 1024 rows in a chunk of the smallest size.
ROWS, CHUNK_BYTES = 6000, 4096


def csv_rows() -> bytes:
    draw = np.random.default_rng(4)
    middles = np.array([[2.0, 1.0], [8.0, 3.0], [5.0, 2.0]])
    rows = np.clip(middles[draw.integers(0, 3, ROWS)] + draw.normal(0, 0.3, (ROWS, 2)), 0, [10, 4])
    return ("a,b\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in rows)).encode()


@pytest.fixture(scope="module")
def url(postgres: Server, postgres_template: str) -> Iterator[str]:
    """A database that asks for a password in its address, whether or not the server checks it."""
    name = postgres.create(template=postgres_template)
    yield make_url(postgres.url(name)).set(password="pass-of-the-database").render_as_string(False)
    postgres.drop(name)


@pytest.fixture(scope="module")
def cluster(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A scheduler and two worker processes, which know the database from their own environment."""
    environment = {
        "CAIRN_DATABASE_URL": url,
        "CAIRN_CACHE_DIRECTORY": str(tmp_path_factory.mktemp("cluster") / "cache"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, env=environment) as processes,
        Client(processes, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def house(url: str, cluster: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service whose jobs run on the cluster, with a dataset of several chunks."""
    assert cluster.scheduler is not None
    address = cluster.scheduler.address
    made = House(url, tmp_path_factory.mktemp("house"), cluster=address, chunk_bytes=CHUNK_BYTES)
    assert made.create(size=ROWS, budget={"epsilon": "5", "delta": "0.00001"}).status_code == 201
    assert made.upload(csv_rows()).status_code == 200
    assert made.grant(epsilon="5", delta="0.00001").status_code == 200
    yield made
    made.close()


def source_of(house: House) -> DatabaseSource:
    return DatabaseSource(house.database, 1, ChunkCache(house.settings.cache_directory, 1 << 30))


def outcome(source: DatabaseSource, algorithm: str, executor: Executor | None) -> Clustering:
    clear_cache()
    budget = Budget.of("1", "0.000001")
    options = {"rounds": 2} if algorithm == "sulq" else {}
    plan = registry.plan(source.domain, Request(3, budget, algorithm=algorithm, options=options))
    return registry.run(plan, source, executor)


@pytest.mark.parametrize("algorithm", ["summit", "chaturvedi", "sulq"])
def test_a_cluster_gives_the_same_result_to_the_last_bit(
    algorithm: str, house: House, cluster: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the noise of the job's own process repeated, which no task draws."""
    source = source_of(house)
    assert len(source.loaders()) == 6
    inject_bytes(monkeypatch, 7)
    inline = outcome(source, algorithm, None)
    inject_bytes(monkeypatch, 7)
    spread = outcome(source, algorithm, ClusterExecutor(cluster, sorted(cluster.nthreads()), 60))
    assert np.array_equal(inline.centres, spread.centres)
    assert inline.draws == spread.draws


def test_a_task_carries_neither_password_nor_folder(house: House, url: str) -> None:
    for loader in source_of(house).loaders():
        sent = pickle.dumps(loader)
        assert b"pass-of-the-database" in url.encode()
        assert b"pass-of-the-database" not in sent
        assert str(house.settings.cache_directory).encode() not in sent


def test_chunks_return_to_the_worker_that_has_them_cached(house: House, cluster: Client) -> None:
    executor, loaders = ClusterExecutor(cluster, sorted(cluster.nthreads()), 60), source_of(house).loaders()

    def homes() -> list[int]:
        asked = [executor.submit(lambda _: os.getpid(), loader) for loader in loaders]
        return [future.result() for future in asked]

    first = homes()
    assert len(set(first)) == 2
    assert first == homes()


def test_tasks_of_a_worker_travel_together(house: House, cluster: Client) -> None:
    executor, loaders = ClusterExecutor(cluster, sorted(cluster.nthreads()), 60), source_of(house).loaders()
    before = set(cluster.futures)
    asked = [executor.submit(lambda loader: len(loader()), loader) for loader in loaders]
    assert sum(future.result() for future in asked) == ROWS
    assert len(set(cluster.futures) - before) == 2


def test_a_job_waits_for_the_cluster_as_long_as_it_is_planned_for(house: House, cluster: Client) -> None:
    def rest(_: object) -> int:
        time.sleep(1)
        return os.getpid()

    impatient = house.settings.model_copy(update={"cluster_seconds": 0.1})
    for planned, here in ((0.0, True), (120.0, False)):
        with make_executor(impatient, planned) as executor:
            assert executor is not None
            process = executor.submit(rest, None).result()
        assert (process == os.getpid()) is here


def test_a_worker_killed_in_the_middle_of_a_job_costs_time_and_one_charge(
    house: House, cluster: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker process stands still with tasks on its hands, and is then killed with signal 9."""
    address = sorted(cluster.nthreads())[0]
    victim = cluster.run(os.getpid)[address]
    killers: list[threading.Thread] = []

    def kill_once_busy() -> None:
        limit = time.monotonic() + 60
        while not cluster.processing()[address]:
            assert time.monotonic() < limit, "no task reached the worker"
        os.kill(victim, signal.SIGKILL)

    real: Callable[..., Any] = execution.execute

    def watched(*arguments: Any) -> Any:
        *rest, listener = arguments

        def listen(*facts: Any) -> None:
            listener(*facts)
            if not killers and facts[1] == 3:  # after the third measurement
                os.kill(victim, signal.SIGSTOP)
                killers.append(threading.Thread(target=kill_once_busy))
                killers[0].start()

        return real(*rest, listen)

    monkeypatch.setattr(execution, "execute", watched)
    job = house.submit("1", algorithm="summit", k=3, delta="0.000001").json()["id"]
    assert house.work()
    killers[0].join()
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)
    house.clock.move(3600)
    assert house.ada.get(f"/v1/jobs/{job}").json()["state"] == "succeeded"
    entries = house.carla.get("/v1/datasets/flowers/ledger").json()["items"]
    mine = [entry["kind"] for entry in entries if entry["job"] == job]
    assert sorted(mine) == ["charge", "reserve"]
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_a_cluster_that_does_not_answer_leaves_the_work_to_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0.5)
    with make_executor(Settings(cluster="tcp://127.0.0.1:1")) as executor:
        assert executor is None


# --- the chunk cache ----------------------------------------------------------------------------------------


def digest(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def test_a_dataset_larger_than_the_cache_keeps_what_the_next_pass_needs_first(tmp_path: Path) -> None:
    cache = ChunkCache(tmp_path / "cache", 250)
    own, other = [bytes([number]) * 100 for number in range(4)], bytes(200)
    for payload in own:
        cache.put(1, digest(payload), payload)
    found = [cache.get(1, digest(payload), "source") for payload in own]
    assert [payload is not None for payload in found] == [True, True, False, False]
    cache.put(2, digest(other), other)
    assert cache.get(2, digest(other), "source") is not None
    assert [cache.get(1, digest(payload), "source") for payload in own[:2]] == [None, None]


def test_an_empty_chunk_is_kept_like_any_other(tmp_path: Path) -> None:
    cache = ChunkCache(tmp_path / "cache", 250)
    cache.put(1, digest(b""), b"")
    assert cache.get(1, digest(b""), "source") == b""


def test_chunks_are_read_again_where_nothing_is_cached(house: House) -> None:
    database = Database(house.settings.database_url)
    source = DatabaseSource(database, 1, ChunkCache(Path("nowhere"), 0))
    assert sum(len(loader()) for loader in source.loaders()) == ROWS
    assert not Path("nowhere").exists()
    database.dispose()
