"""A worker's clock is set ahead or back at each statement of a job in turn: nothing follows but its moments.

The job succeeds under one charge, its end is shown as long after its claim as planned, its worker is held for
no longer than that, and a worker whose clock is right takes the next job at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import event, select

from assurance.chaos.scene import Scene
from assurance.chaos.stage import Stage, Tally
from service.jobs import release
from service.operations.clock import SystemClock
from service.operations.tables import Dataset, Job
from service.workers.worker import Worker

__all__ = ["STEPS", "step_at_every_statement"]

#: Seconds by which the clock is set.
STEPS = tuple(sign * seconds for seconds in (1, 3600, 86_400) for sign in (1, -1))
#: More than any of the jobs has.
_MOST_STATEMENTS = 400
#: The longest run of a small job, however busy the machine is.
_LONGEST_RUN = timedelta(seconds=30)


class _SteppedClock:
    """The machine's clock, until it is set."""

    def __init__(self) -> None:
        self.set_by = timedelta()

    def now(self) -> datetime:
        return SystemClock().now() + self.set_by

    def monotonic(self) -> float:
        return SystemClock().monotonic()


def step_at_every_statement(
    stage: Stage, tally: Tally, *, first: int = 0, stride: int = 1, steps: tuple[int, ...] = STEPS
) -> None:
    """From the claim to the end of a job, for each step of the clock; commits count as statements."""
    scene = Scene(stage.database(), stage.folder, max_queued_jobs=10**6)
    dataset = scene.dataset("sum", "1000", caps=("1000",))
    with scene.database.write() as session:
        session.scalars(select(Dataset)).one().planned_release = True
    for seconds in steps:
        for number in range(first, _MOST_STATEMENTS, stride):
            if not _step_at(scene, tally, dataset, seconds, number):
                break
        else:
            tally.check(False, "a job never ended")
    tally.audit(scene.database, "after all steps of the clock")
    scene.close()


def _step_at(scene: Scene, tally: Tally, dataset: str, seconds: int, number: int) -> bool:
    """Run a job and set the clock before its statement of this number; False when the job has fewer."""
    where = f"{scene.url.split(':')[0]}, clock set by {seconds} s at statement {number}"
    job = scene.queued(dataset, "0.01")
    clock, left = _SteppedClock(), number

    def step(*_: object) -> None:
        nonlocal left
        if left == 0:
            clock.set_by = timedelta(seconds=seconds)
        left -= 1

    worker = Worker(scene.settings, scene.database, clock, name="stepped")
    pauses: list[float] = []
    worker.stop.wait = pauses.append  # type: ignore[method-assign,assignment]
    step()  # before the claim
    for name in ("before_cursor_execute", "commit"):
        event.listen(scene.database.engine, name, step)
    try:
        claim = worker.claim()
        tally.check(claim is not None and claim.job_id == job, f"{where}: the job was not claimed")
        if claim is None:
            return True
        tally.check(worker.carry_out(claim), f"{where}: the job was lost")
        worker._hold(claim)
    finally:
        for name in ("before_cursor_execute", "commit"):
            event.remove(scene.database.engine, name, step)
    with scene.database.read() as session:
        found = session.scalars(select(Job).where(Job.id == job)).one()
    assert found.claimed_at is not None
    assert found.finished_at is not None
    run = found.finished_at - found.claimed_at
    shown = release.release_time(found.claimed_at, found.planned, found.finished_at)
    tally.check(found.state == "succeeded", f"{where}: the job {found.state}")
    tally.check(timedelta() <= run < _LONGEST_RUN, f"{where}: it seems to have run for {run}")
    tally.check(found.released_at == shown, f"{where}: its end is shown at {found.released_at}")
    held = sum(pauses)
    most = (shown - found.claimed_at).total_seconds()
    tally.check(held <= most, f"{where}: the worker is held for {held} s")
    tally.add("steps of a worker's clock", int(left < 0))
    return left < 0
