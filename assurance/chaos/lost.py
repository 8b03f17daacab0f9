"""A worker is killed at each statement of a job in turn; another one goes on from what was released.

After each death the journal is read. What it holds must be the beginning of the transcript in the end.
"""

from __future__ import annotations

import os
import signal

from sqlalchemy import event, select

from assurance.chaos.scene import Scene
from assurance.chaos.stage import LaterClock, Stage, Tally, drain, fork, reap
from service.http.wire import JobKind
from service.operations.database import Database
from service.operations.tables import Job
from service.workers.worker import Worker
from tests.support import journals

__all__ = ["kill_at_every_statement_of_a_job"]

#: More than any of the jobs has.
MOST_STATEMENTS = 400
_KINDS: tuple[JobKind, ...] = ("cluster", "summary")


def kill_at_every_statement_of_a_job(stage: Stage, tally: Tally, *, first: int = 0, stride: int = 1) -> None:
    """From the claim to the end of a clustering and of a question; commits count as statements."""
    scene = Scene(stage.database(), stage.folder, max_queued_jobs=10**6)
    dataset = scene.dataset("sum", "1000", caps=("1000",))
    for kind in _KINDS:
        for number in range(first, MOST_STATEMENTS, stride):
            if not _kill_at(scene, tally, dataset, kind, number):
                break
        else:
            tally.check(False, f"a {kind} job never survived")
    scene.close()


def _kill_at(scene: Scene, tally: Tally, dataset: str, kind: JobKind, number: int) -> bool:
    """Kill a worker before its statement of this number; False when the job has fewer."""
    where = f"{scene.url.split(':')[0]}, {kind}, worker killed at statement {number}"
    job = scene.queued(dataset, "0.5", kind=kind)
    scene.database.dispose()
    killed = reap(fork(lambda: _work_and_die(scene, number)))
    kept = journals.entries(scene.database, job)
    tally.audit(scene.database, where)
    scene.database.dispose()
    drain(scene.settings, ahead=60.0)
    with scene.database.read() as session:
        state = session.scalars(select(Job.state).where(Job.id == job)).one()
    tally.check(state == "succeeded", f"{where}: the job {state}")
    if state == "succeeded":
        followed = journals.goes_on(kept, journals.transcript(scene.database, job))
        tally.check(followed, f"{where}: a released value was lost, and measured again")
    tally.audit(scene.database, f"{where}, after the job ended")
    tally.add("processes killed at a statement", int(killed))
    tally.add("released values that another worker went on from", len(kept))
    return killed


def _work_and_die(scene: Scene, number: int) -> None:
    database = Database(scene.url, pool=3)
    database.engine.connect().close()  # so that setting up a connection is not counted
    left = number

    def step(*_: object) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    event.listen(database.engine, "before_cursor_execute", step)
    event.listen(database.engine, "commit", step)
    worker = Worker(scene.settings, database, LaterClock(0.0), name="first")
    held = worker.claim()
    assert held is not None
    worker.carry_out(held)
