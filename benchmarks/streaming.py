"""Datasets in a database, and jobs on them in a worker process of their own, as the service runs them.

Run as a program, it is that process: it claims one job, carries it out and prints what that took.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sqlalchemy import select

import migrations
from core.data import UNITS
from core.plan import Work
from core.privacy import Budget
from core.views import limit_cache
from service.datasets import access, drafts, grants, lifecycle
from service.datasets.decisions import Decision
from service.datasets.ingest.chunks import ChunkFile
from service.datasets.ingest.readers.batch import Expected
from service.datasets.wire import Ball, Bounds, DatasetBody
from service.http.wire import BudgetBody
from service.jobs import submit
from service.jobs.limits import Limits
from service.jobs.wire import JobBody
from service.operations.clock import SystemClock
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.states import Role
from service.operations.tables import Job
from service.people import principals
from service.people.authentication import Caller

__all__ = ["JobUsage", "Library", "clustered_rows"]

_PIECE = 1 << 18
_LIMITS = Limits(Work(1e15, 1e12), 100, 100)


@dataclass(frozen=True)
class JobUsage:
    """What one job took in its worker process."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


def clustered_rows(count: int, width: int, clusters: int = 16) -> Iterator[npt.NDArray[np.int16]]:
    """Encoded rows about some centres, a piece at a time; the same each time."""
    draw = np.random.default_rng(16)
    length = UNITS / (4 * np.sqrt(width))
    centres = draw.normal(scale=length, size=(clusters, width))
    for start in range(0, count, _PIECE):
        size = min(_PIECE, count - start)
        rows = centres[draw.integers(clusters, size=size)] + draw.normal(scale=length / 5, size=(size, width))
        yield np.clip(rows, -2.5 * length, 2.5 * length).astype(np.int16)


class Library:
    """A service's database with datasets of any size, and somebody who may use them."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder / 'library.sqlite3'}"
        self._database = Database(self.url)
        migrations.upgrade(self._database.engine)
        now = SystemClock().now()
        with self._database.write() as session:
            owner = principals.create(session, "curator", Role.CURATOR, by=None, at=now)
            self._owner = Caller(owner.id, owner.name, owner.role)
            reader = principals.create(session, "analyst", Role.ANALYST, by=self._owner, at=now)
            self._reader = Caller(reader.id, reader.name, reader.role)

    def add(self, rows: int, width: int) -> str:
        """A sealed dataset, written by the service's own writer; its name."""
        name, now = f"rows{rows}x{width}", SystemClock().now()
        body = DatasetBody(
            name=name,
            dimension=width,
            bounds=Bounds(ball=Ball(radius=float(UNITS))),
            size=rows,
            budget=BudgetBody(epsilon="100", delta="0.0001"),
        )
        with self._database.write() as session:
            dataset = lifecycle.create(session, body, owner=self._owner, at=now)
            chunks = ChunkFile(access.domain_of(dataset), Settings().chunk_bytes, self.folder)
            for piece in clustered_rows(rows, width):
                chunks.add(piece)
            chunks.end()
            report = {"format": "npy", "rows": rows, "sha256": "", "columns": []}
            report |= dict.fromkeys(("bad_rows", "clipped_rows", "rows_over_limit"), 0)
            expected, actor = Expected.of(dataset), self._owner.name
            drafts.store_rows(
                session, drafts.Place(dataset.id), expected, chunks.chunks(), report, actor=actor, at=now
            )
            drafts.seal(session, dataset, actor=actor, at=now)
            chunks.close()
            analyst = principals.find(session, self._reader.name)
            grants.grant(
                session, dataset, analyst, Budget.of("100", "0.0001"), by=Decision(self._owner.name, now)
            )
        return name

    def environment(self, cache: str, **settings: object) -> dict[str, str]:
        """What a process needs to know to work for this library."""
        given = {
            "database_url": self.url,
            "cache_directory": self.folder / cache,
            "signing_key_file": self.folder / "signing-key.pem",
            "log_level": "warning",
        }
        return Settings(**{**given, **settings}).as_environment()  # type: ignore[arg-type]  # environment names

    def run(self, name: str, k: int, *, cache: str, **settings: object) -> JobUsage:
        """Submit a job of `summit` and let a new worker process carry it out."""
        request = {"dataset": name, "k": k, "epsilon": "1", "delta": "0.000000001", "algorithm": "summit"}
        body = JobBody.model_validate(request)
        submit.submit(self._database, self._reader, body, key=None, limits=_LIMITS, now=SystemClock().now())
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            env=self.environment(cache, **settings),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return JobUsage(**json.loads(done.stdout.splitlines()[-1]))  # log lines may come before

    def close(self) -> None:
        self._database.dispose()


def _carry_one_out() -> None:
    from service.workers import executors
    from service.workers.worker import Worker

    settings = Settings()
    limit_cache(settings.view_cache_bytes)
    executors.load(settings)
    database = Database(settings.database_address(), pool=3)
    worker = Worker(settings, database, SystemClock())
    held = worker.claim()
    if held is None:
        raise SystemExit("there is no job to carry out")
    start, cpu = time.perf_counter(), time.process_time()
    stored = worker.carry_out(held)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    with database.read() as session:
        succeeded = session.scalar(select(Job.state).where(Job.id == held.job_id)) == "succeeded"
    database.dispose()
    if not (stored and succeeded):
        raise SystemExit("the job failed")
    # Not `ru_maxrss`, which a process takes over from the one that started it.
    status = Path("/proc/self/status").read_text()
    peak = int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mib": peak}))


if __name__ == "__main__":
    _carry_one_out()
