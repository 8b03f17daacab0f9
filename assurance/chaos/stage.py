"""What every campaign stands on: fresh databases of either kind, processes to kill, and a tally."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import migrations
from assurance.chaos.invariants import faults, unfinished
from benchmarks.harness.postgres import Server
from benchmarks.harness.scratch import scratch
from service.operations.clock import SystemClock
from service.operations.database import Database
from service.operations.settings import Settings
from service.workers.rows import close_databases
from service.workers.worker import Worker

__all__ = ["LaterClock", "Stage", "Tally", "await_stop", "drain", "fork", "reap"]


@dataclass
class Tally:
    """What was tried, how often, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, what: str, number: int = 1) -> None:
        self.counts[what] += number

    def check(self, holds: bool, problem: str) -> None:
        """Note a problem unless this holds."""
        if not holds:
            self.problems.append(problem)
            sys.stderr.write(f"PROBLEM: {problem}\n")

    def audit(self, database: Database, where: str) -> None:
        """Look for whatever must never be."""
        for fault in faults(database):
            self.check(False, f"{where}: {fault}")

    def all_ended(self, database: Database, where: str) -> None:
        """No job may be left over."""
        for job in unfinished(database):
            self.check(False, f"{where}: job {job} was lost: it has not ended")

    def to_json(self) -> str:
        return json.dumps({"counts": self.counts, "problems": self.problems}, indent=1, sort_keys=True)


class LaterClock:
    """The machine's clock, put forward, so that leases of the dead have run out."""

    def __init__(self, seconds: float):
        self._ahead = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return SystemClock().now() + self._ahead

    def monotonic(self) -> float:
        return SystemClock().monotonic()


class Stage:
    """Migrated databases of one kind, as many as wanted, thrown away at the end."""

    def __init__(self, kind: str):
        self.kind = kind
        self.folder = Path(tempfile.mkdtemp(prefix="cairn-chaos-", dir=scratch()))
        self._number = 0
        self.server: Server | None = None
        if kind == "postgresql":
            self.server = Server()
            self._template = self.server.create()
            self._migrate(self.server.url(self._template))
        else:
            self._template = str(self.folder / "template.sqlite3")
            self._migrate(f"sqlite:///{self._template}")

    @staticmethod
    def _migrate(url: str) -> None:
        database = Database(url)
        migrations.upgrade(database.engine)
        if database.is_sqlite:
            with database.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        database.dispose()

    def database(self) -> str:
        """The address of a new one."""
        if self.server is not None:
            return self.server.url(self.server.create(template=self._template))
        self._number += 1
        path = self.folder / f"{self._number}.sqlite3"
        shutil.copy(self._template, path)
        return f"sqlite:///{path}"

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.server is not None:
            self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def fork(act: Callable[[], object]) -> int:
    """Do something in a process of its own; returns its id. The caller must hold no database connection."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process
    code = 3
    try:
        act()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def reap(process: int) -> bool:
    """Wait for a process's end: True when it was killed, False when it ended well."""
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if os.waitstatus_to_exitcode(status) != 0:
        raise AssertionError("a process of the campaign failed; its traceback stands above")
    return False


def await_stop(process: int) -> None:
    """Wait until a process stops at its fault point."""
    _, status = os.waitpid(process, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise AssertionError("a process ended before it came to its fault point")


def drain(settings: Settings, *, ahead: float = 0.0, most: int = 50) -> None:
    """Let a worker, whose clock may go before, end every job there is."""
    database = Database(settings.database_address(), pool=3)
    worker = Worker(settings, database, LaterClock(ahead), name="after")
    for _ in range(most):
        if not unfinished(database):
            break
        held = worker.claim()
        if held is not None:
            worker.carry_out(held)
    database.dispose()
    close_databases()
