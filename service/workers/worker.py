"""Workers: claim and charge a job, execute it, store its result; heartbeats, limits, and a clean stop.

    claim + charge (one transaction) -> execute -> result + end (one transaction)

Each worker is a process with one job at a time; `supervisor` starts them.
"""

from __future__ import annotations

import gc
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from core.postprocessing import kmeans
from core.views import limit_cache
from service.datasets import drafts
from service.jobs import queue, retention
from service.jobs.claims import Claim, JobLost, StoredPlan
from service.jobs.limits import Limits
from service.ledger import heads
from service.operations import faults, metrics, tracing, workforce
from service.operations.clock import Clock, SystemClock
from service.operations.database import Database
from service.operations.logs import configure
from service.operations.settings import Settings
from service.operations.signals import stop_on_signals
from service.operations.signing import open_keys
from service.operations.states import JobState
from service.operations.supervisor import ENDED_BY_LIMIT, end_with_parent
from service.operations.tables import Job
from service.workers import execution, executors
from service.workers.interruption import Interrupted, Interruption

log = structlog.get_logger()

_PAGE = os.sysconf("SC_PAGE_SIZE")
_DELETION_SECONDS = 600.0
#: Seconds between two checks whether a rehearsal must give way, and between those of a worker after one.
_LOOK_SECONDS = 0.5
#: Shortest time between two records of the heads of a dataset by one worker.
_HEADS_SECONDS = 60.0
#: A rehearsal that goes on for this long after it should give way is ended with its process.
_GIVES_WAY_SECONDS = 1.0
#: A rehearsal may run for twice its planned time, but for this long in any case.
_SHORT_REHEARSAL_SECONDS = 10.0


class Heartbeat(threading.Thread):
    """Renews the lease, and ends what takes too long, too much, or too late."""

    def __init__(self, worker: Worker, claim: Claim):
        super().__init__(daemon=True, name="heartbeat")
        self._worker = worker
        self._claim = claim
        self._done = threading.Event()
        #: Set when the job is no longer this worker's; its execution then ends at its next step.
        self.lost = threading.Event()
        #: Set when a rehearsal gives way to a real job; its execution then ends at its next step.
        self.gives_way = threading.Event()
        self._way_asked_at = math.inf
        self._stop_seen: float | None = None
        self._started_at = time.monotonic()

    def run(self) -> None:
        pause = min(_LOOK_SECONDS if self._claim.rehearsal else 1.0, self._worker.settings.lease_seconds / 3)
        while not self._done.wait(pause):
            try:
                self.beat()
                self._worker.announce()
            except SQLAlchemyError as error:
                log.warning(
                    "heartbeat failed; trying again", job=self._claim.job_id, error=type(error).__name__
                )
            self._worker.report()

    def beat(self) -> None:
        """One beat: renew, then look at the limits and at the order to stop."""
        worker, settings = self._worker, self._worker.settings
        with worker.database.write() as session:
            still_ours = queue.beat(
                session,
                self._claim,
                now=worker.clock.now(),
                lease=timedelta(seconds=settings.lease_seconds),
            )
            faults.reach("beat.renewed")
        faults.reach("beat.committed")
        if not still_ours:
            self.lost.set()
            if worker.stop.is_set():  # there is nothing to finish or to give back
                self._leave(0)
        elif time.monotonic() - self._started_at > self._longest_seconds():
            self._end_by_limit("time")
        elif _resident_bytes() > settings.max_memory_bytes:
            self._end_by_limit("memory")
        elif worker.stop.is_set():
            self._give_back_when_late()
        elif self._claim.rehearsal:
            self._give_way()

    def _longest_seconds(self) -> float:
        settings, claim = self._worker.settings, self._claim
        if not claim.rehearsal:
            return settings.job_seconds
        planned = max(_SHORT_REHEARSAL_SECONDS, 2 * claim.planned.total_seconds())
        return min(settings.rehearsal_seconds, planned)

    def _give_way(self) -> None:
        """Interrupt a rehearsal if a real job waits for a worker."""
        worker = self._worker
        if self.gives_way.is_set():
            if time.monotonic() - self._way_asked_at > _GIVES_WAY_SECONDS:
                worker.give_back(self._claim)
                self._leave(0)
            return
        with worker.database.read() as session:
            if not queue.real_job_waits(session, worker.clock.now()):
                return
        self._way_asked_at = time.monotonic()
        self.gives_way.set()
        worker.interruption.ask()

    def _end_by_limit(self, what: str) -> None:
        log.error("job ended by a limit", job=self._claim.job_id, limit=what)
        with self._worker.database.write() as session:
            queue.finish(session, self._claim, now=self._worker.now_of_job(), result=None, by_limit=True)
            metrics.ended_by_limit(session, what)
        self._leave(ENDED_BY_LIMIT)

    def _give_back_when_late(self) -> None:
        now = time.monotonic()
        self._stop_seen = self._stop_seen or now
        if now - self._stop_seen < self._worker.settings.stop_seconds:
            return
        log.info("stopping; the job is given back", job=self._claim.job_id)
        self._worker.give_back(self._claim)
        self._leave(0)

    def _leave(self, code: int) -> None:
        self.lost.set()
        self._done.set()  # a further beat would renew the lease of a job that was given back
        self._worker.leave(code)

    def end(self) -> None:
        """Stop beating."""
        self._done.set()
        self.join()


class Worker:
    """One worker: takes jobs one after the other until it is told to stop."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        *,
        name: str | None = None,
        leave: Callable[[int], object] = lambda _code: None,
        lost: str = "",
    ):
        """`leave` ends the process with an exit code; without it, the job ends at its next step.

        `lost` is why the process ended that this one replaces, if that was not in good order.
        """
        self.settings = settings
        self.database = database
        self.clock = clock
        self.leave = leave
        self.name = (name or f"worker-{socket.gethostname()}-{os.getpid()}")[-64:]
        self.stop = threading.Event()
        self._lost = lost
        #: When heads of each dataset were recorded last.
        self._heads_at: dict[int, float] = {}
        self.interruption = Interruption()
        #: When this worker took its job: by the clock, and as durations count.
        self._took_job_at = clock.now(), clock.monotonic()
        #: When this worker may take the next rehearsal.
        self._guests_from = 0.0
        self._next_deletion = 0.0
        self._next_announcement = 0.0
        #: Most memory that a plan may need to run here.
        self.plan_bytes = Limits.of(settings).work.memory_bytes

    def run(self, alive: Callable[[], bool] = lambda: True) -> None:
        """Work until `stop` is set or `alive` is false; an empty queue is asked more and more seldom."""
        pause = self.settings.poll_seconds
        resumed = False
        while not self.stop.is_set() and alive():
            self.report()
            self.announce()
            try:
                if not resumed:
                    self._resume()
                    resumed = True
                    continue
                guests = time.monotonic() >= self._guests_from
                claim = self.claim(guests=guests)
                if claim is not None:
                    if self.carry_out(claim) or not claim.rehearsal:
                        self._hold(claim)
                    pause = self.settings.poll_seconds
                    continue
                pause = pause if guests else min(pause, _LOOK_SECONDS)
                self._delete_old()
            except SQLAlchemyError as error:
                log.warning("the database does not answer; trying again", error=type(error).__name__)
            self.stop.wait(pause)
            pause = min(self.settings.poll_most_seconds, pause * 1.5)

    def _hold(self, claim: Claim) -> None:
        """Take no other job before the end of this one is shown: that would reveal when it ended.

        After a rehearsal, no other rehearsal: real jobs do not wait for guests.
        """
        shown_at = claim.released_at(self.now_of_job())
        if claim.rehearsal:
            self._guests_from = time.monotonic() + (shown_at - self.now_of_job()).total_seconds()
        else:
            self._wait(lambda: (shown_at - self.now_of_job()).total_seconds())

    def now_of_job(self) -> datetime:
        """Return the present moment, by the clock as it was when this worker took its job and the time since.

        So a step of the clock changes neither how long a job seems to have run nor how long it is held.
        """
        took, began = self._took_job_at
        return took + timedelta(seconds=self.clock.monotonic() - began)

    def _delete_old(self) -> None:
        """Delete rows that were uploaded and never sealed, and old results of rehearsals, now and then."""
        if time.monotonic() < self._next_deletion:
            return
        self._next_deletion = time.monotonic() + _DELETION_SECONDS
        now = self.clock.now()
        with self.database.write() as session:
            drafts.delete_old_rows(session, before=now - timedelta(days=self.settings.draft_days), at=now)
        with self.database.write() as session:
            shown_before = now - timedelta(days=self.settings.rehearsal_days)
            deleted = retention.delete_old_rehearsals(session, before=shown_before)
        if deleted:
            self._next_deletion = 0.0  # there may be more

    def report(self, silent: float = 0.0) -> None:
        """Touch the health file: this process is not stuck, nor will it be while it is `silent`."""
        if path := self.settings.health_file(os.getpid()):
            moment = time.time() + silent
            with suppress(OSError):  # the supervisor makes the file; a worker on its own has none
                os.utime(path, (moment, moment))

    def announce(self, silent: float = 0.0) -> None:
        """Record now and then that this worker is at work, and will be while it is `silent`."""
        if not silent and time.monotonic() < self._next_announcement:
            return
        self._next_announcement = time.monotonic() + workforce.ANNOUNCE_SECONDS
        try:
            with self.database.write() as session:
                workforce.announce(
                    session,
                    self.name,
                    seen_at=self.clock.now() + timedelta(seconds=silent),
                    plan_bytes=int(self.plan_bytes),
                    cache=self.settings.cache_directory,
                )
        except SQLAlchemyError as error:
            log.warning("the worker cannot announce itself; trying again", error=type(error).__name__)

    def depart(self) -> None:
        """Record that this worker has stopped in good order."""
        with suppress(SQLAlchemyError), self.database.write() as session:
            workforce.leave(session, self.name)

    def claim(self, *, guests: bool = True) -> Claim | None:
        """Take a job and charge it, in one transaction, before any row is read; rehearsals only as guests."""
        now = self.clock.now()
        self._took_job_at = now, self.clock.monotonic()
        with self.database.write() as session:
            claim = queue.claim(
                session,
                worker=self.name,
                now=now,
                lease=timedelta(seconds=self.settings.lease_seconds),
                can_run=self._can_run,
                guests=guests,
            )
            if claim is not None and claim.rehearsal:
                most = self.settings.rehearsal_bytes
                retention.make_room(session, claim.principal_id, most_bytes=most, now=now)
        if claim is not None:
            faults.reach("claim.committed")
        return claim

    def give_back(self, claim: Claim) -> None:
        """Let this worker or another one take the job again."""
        with self.database.write() as session:
            queue.give_back(session, claim, now=self.clock.now())

    def _can_run(self, stored: StoredPlan) -> bool:
        """Return True if this version reads the plan back exactly, and this machine has the memory for it."""
        needed = stored.text.get("work", {}).get("memory_bytes", 0)
        if needed > self.plan_bytes:
            log.error(
                "a job needs more memory than this worker has; it is ended without a charge",
                needed=needed,
                limit=self.plan_bytes,
            )
            return False
        return execution.can_run(stored)

    def carry_out(self, claim: Claim) -> bool:
        """Run a claimed job and store how it ended; False when the job was no longer this worker's."""
        heartbeat, laps = Heartbeat(self, claim), tracing.Laps()

        def listen(step: str, _measured: int, _planned: int) -> None:
            laps.end(step)
            faults.reach("execute.measured")
            if heartbeat.lost.is_set():
                raise JobLost
            if heartbeat.gives_way.is_set():
                raise Interrupted

        heartbeat.start()
        result = None
        with structlog.contextvars.bound_contextvars(job=claim.job_id):
            try:
                span = tracing.span("job", job=claim.job_id, rehearsal=claim.rehearsal)
                with span, self.interruption.allowed(claim.rehearsal):
                    result = execution.execute(claim, self.database, self.settings, listen)
            except JobLost:
                log.info("job was ended, or taken over by another worker")
                return False
            except Exception:  # ends the job, once: running it again would be rejection sampling
                log.exception("job failed")
            except Interrupted:
                log.info("the rehearsal gives way to a job")
            finally:
                heartbeat.end()
            if result is None and heartbeat.gives_way.is_set():
                self.give_back(claim)
                return False
            return self._finish(claim, result)

    def _finish(self, claim: Claim, result: Any) -> bool:
        faults.reach("finish.begun")
        read = metrics.take_chunks_read()
        deadline = time.monotonic() + 2 * self.settings.lease_seconds
        while True:
            try:
                with self.database.write() as session:
                    stored = queue.finish(session, claim, now=self.now_of_job(), result=result)
                    metrics.count(session, read)
                faults.reach("finish.committed")
                log.info("job ended", stored=stored, rehearsal=claim.rehearsal)
                self._record_heads(claim)
                return stored
            except SQLAlchemyError:
                if time.monotonic() > deadline:
                    raise
                self.report()
                time.sleep(0.5)  # the database is away; the lease outlives short absences

    def _record_heads(self, claim: Claim) -> None:
        """Sign how far the chains of the job's dataset have come, unless that was done a minute ago."""
        if time.monotonic() - self._heads_at.get(claim.dataset_id, -math.inf) < _HEADS_SECONDS:
            return
        self._heads_at[claim.dataset_id] = time.monotonic()
        try:
            with self.database.read() as session:
                found = heads.present(session, self.clock.now(), claim.dataset_id)
            heads.record(self.settings.heads_path(), found, open_keys(self.settings))
        except (OSError, SQLAlchemyError) as error:  # verification signs them, too
            log.debug("heads were not recorded", reason=str(error))

    def _resume(self) -> None:
        """Keep the hold of a process that was lost: a free worker would show when its job ended."""
        with self.database.write() as session:
            self._report_loss(session)
            busy_until = queue.resume(session, self.name, now=self.clock.now())
        self._lost = ""
        if busy_until is not None:
            self._wait(lambda: (busy_until - self.clock.now()).total_seconds())

    def _report_loss(self, session: Session) -> None:
        """Count and log the process that this one replaces, with the job that it was running."""
        if not self._lost:
            return
        running = select(Job.id, Job.attempts).where(Job.worker == self.name, Job.state == JobState.RUNNING)
        job = session.execute(running.order_by(Job.claimed_at.desc()).limit(1)).one_or_none()
        log.error(
            "a worker process was lost",
            reason=self._lost,
            worker=self.name,
            job=job.id if job else None,
            attempts_left=queue.MOST_ATTEMPTS - job.attempts if job else None,
        )
        metrics.worker_lost(session, self._lost)

    def _wait(self, seconds_left: Callable[[], float]) -> None:
        pause = seconds_left()
        if pause > 0:
            self.report(silent=pause)
            self.announce(silent=pause)
            self.stop.wait(max(0.0, seconds_left()))  # without the time that this took


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as facts:
            return int(facts.read().split()[1]) * _PAGE
    except OSError:  # not Linux: the limit is then the plan's own estimate alone
        return 0


def main(parent: int, slot: int, lost: str = "") -> None:
    """Run one worker process, with settings from the environment, until SIGTERM or its parent's end.

    `slot` is its number among the processes of its parent; the process that replaces it has the same, and is
    told why the one before was `lost`.
    """
    settings = Settings()
    configure(settings.log_format, settings.log_level)
    tracing.configure(settings, "worker")
    limit_cache(settings.view_cache_bytes)
    kmeans.load()
    executors.load(settings)
    gc.freeze()  # what is loaded by now stays: no need to look for garbage among it
    gc.enable()
    open_keys(settings)  # they must be there before a job is charged
    database = Database(settings.database_address(), pool=3)
    name = f"worker-{socket.gethostname()}-{parent}-{slot}"
    worker = Worker(settings, database, SystemClock(), name=name, leave=os._exit, lost=lost)
    stop_on_signals(worker.stop)
    worker.interruption.install()
    end_with_parent(parent)
    log.info("worker started", worker=worker.name, memory_bytes=settings.max_memory_bytes)
    if worker.plan_bytes <= 0:
        log.error("this worker has too little memory for any job; every plan is refused")
    worker.run(alive=lambda: os.getppid() == parent)
    worker.depart()
    database.dispose()
    gc.freeze()  # else looking for garbage once more delays the end by seconds on a busy machine
