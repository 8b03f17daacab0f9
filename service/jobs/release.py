"""Release of what happens to a job: which callers may see it, and when.

A running job's events are shown only at the release ticks, 1, 2, 4, 8, ... seconds after its claim. A watcher
then learns at most the order of magnitude of the run time, which may depend on rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, defer

from service.errors import NotFound
from service.jobs.wire import JobFacts
from service.ledger import accountants
from service.ledger.units import Cost
from service.operations.states import EndReason, JobState
from service.operations.tables import Dataset, Job, Principal
from service.people.authentication import Caller

LATEST = "latest"
_SECOND = timedelta(seconds=1)
_AFTER_CHARGE = "the job ended without a result; its charge stands"
_MESSAGES: dict[EndReason | tuple[JobState, EndReason], str] = {
    EndReason.CANCELLED: "cancelled by the analyst; nothing was charged",
    EndReason.WITHDRAWN: "withdrawn because the grant or the dataset was withdrawn; nothing was charged",
    EndReason.CANNOT_RUN: "no worker could run this plan; nothing was charged; submit it again",
    # One text for every failure after the charge: which of them it was might depend on rows.
    EndReason.ERROR: _AFTER_CHARGE,
    EndReason.LOST: _AFTER_CHARGE,
    EndReason.ENDED: "ended by the dataset's curator; its charge stands",
    (JobState.CANCELLED, EndReason.ENDED): "ended by the dataset's curator; nothing was charged",
}


def tick_number(elapsed: timedelta) -> int:
    """Return the number j of the first tick, at 2**j seconds, that is not before `elapsed`."""
    number = 0
    while _SECOND * 2**number < elapsed:
        number += 1
    return number


def next_tick(elapsed: timedelta) -> timedelta:
    """Return the first tick that is not before `elapsed`."""
    return _SECOND * int(2 ** tick_number(elapsed))


def last_tick(elapsed: timedelta) -> timedelta:
    """Return the last tick that is not after `elapsed`; zero before the first."""
    if elapsed < _SECOND:
        return timedelta(0)
    upper = next_tick(elapsed)
    return upper if upper == elapsed else upper / 2


class Progress:
    """The newest event before each tick, and the newest of all: a few numbers, however long the job."""

    def __init__(self) -> None:
        self._ticks: dict[str, list[Any]] = {}
        self._latest: list[Any] | None = None

    def note(self, elapsed: timedelta, step: str, measured: int, planned: int) -> None:
        """Note a measurement that was made `elapsed` after the claim."""
        self._latest = [step, measured, planned]
        self._ticks[str(tick_number(elapsed))] = self._latest

    def to_json(self) -> dict[str, Any]:
        """Return what the job's row stores."""
        return {"ticks": dict(self._ticks), "latest": self._latest}


def visible_progress(stored: Mapping[str, Any], elapsed: timedelta | None) -> list[Any] | None:
    """Return the newest event that may be seen `elapsed` after the claim; of all events when None."""
    if elapsed is None:
        latest: list[Any] | None = stored.get("latest")
        return latest
    horizon = last_tick(elapsed)
    ticks = stored.get("ticks", {})
    past = [int(number) for number in ticks if horizon and _SECOND * 2 ** int(number) <= horizon]
    visible: list[Any] | None = ticks[str(max(past))] if past else None
    return visible


@dataclass(frozen=True)
class VisibleState:
    """The state of a job as a caller may see it at one moment."""

    state: JobState
    phase: str | None
    progress: dict[str, int] | None
    finished_at: datetime | None
    message: str | None
    retry_after: int | None


def visible_state(job: Job, dataset: Dataset, caller: Caller, now: datetime) -> VisibleState:
    """Return a job's state through the release ticks, unless they are off or the caller is the owner."""
    return state_at(job, now, ticked=dataset.release_ticks and not caller.is_curator)


def state_at(job: Job, now: datetime, *, ticked: bool) -> VisibleState:
    """Return a job's state at a moment, as it is or through the release ticks."""
    message = _MESSAGES.get((job.state, job.reason)) or _MESSAGES.get(job.reason)
    if job.reason == EndReason.ENDED:  # shown from the curator's order on, which tells nothing of the run
        return VisibleState(job.state, None, None, job.finished_at, message, None)
    if job.claimed_at is None:
        retry = 1 if job.state == JobState.QUEUED else None
        return VisibleState(job.state, None, None, job.finished_at, message, retry)
    elapsed = max(now - job.claimed_at, timedelta(0))
    shown_until = last_tick(elapsed) if ticked else elapsed
    finished = job.finished_at
    if finished is not None and finished - job.claimed_at <= shown_until:
        shown = job.claimed_at + next_tick(finished - job.claimed_at) if ticked else finished
        return VisibleState(job.state, None, None, shown, message, None)
    event = visible_progress(job.progress, elapsed if ticked else None)
    wait = next_tick(elapsed + timedelta(microseconds=1)) - elapsed if ticked else _SECOND
    return VisibleState(
        JobState.RUNNING,
        event[0] if event else None,
        {"measured": event[1], "planned": event[2]} if event else None,
        None,
        None,
        max(1, -(-wait // _SECOND)),
    )


def find(session: Session, job_id: str, caller: Caller) -> tuple[Job, Dataset, str]:
    """Return a job that the caller may see, its dataset and its analyst's name, or raise NotFound.

    `latest` names the newest one.
    """
    if job_id == LATEST:
        newest = page(session, caller, before=None, limit=1, dataset=None)
        if not newest:
            raise NotFound("you have no jobs yet; submit one with POST /v1/jobs")
        return newest[0]
    found = session.execute(_visible(caller).where(Job.id == job_id)).one_or_none()
    if found is None:
        raise NotFound("there is no such job, or it is not yours")
    job, dataset, analyst = found
    return job, dataset, analyst


def page(
    session: Session, caller: Caller, *, before: str | None, limit: int, dataset: str | None
) -> list[tuple[Job, Dataset, str]]:
    """Return jobs that the caller may see as `find` does, newest first."""
    query = _visible(caller)
    if dataset is not None:
        query = query.where(Dataset.name == dataset)
    if before is not None:
        query = query.where(Job.number < select(Job.number).where(Job.id == before).scalar_subquery())
    found = session.execute(query.order_by(Job.number.desc()).limit(limit))
    return [(job, owned, analyst) for job, owned, analyst in found]


def _visible(caller: Caller) -> Select[Job, Dataset, str]:
    """Select the jobs that a caller may see: a curator those on their datasets, an analyst their own."""
    mine = Dataset.owner_id == caller.id if caller.is_curator else Job.principal_id == caller.id
    return (
        select(Job, Dataset, Principal.name)
        .join(Dataset, Job.dataset_id == Dataset.id)
        .join(Principal, Job.principal_id == Principal.id)
        .where(mine)
        .options(defer(Job.plan, raiseload=True))  # up to 64 KiB, which no list shows
    )


def facts(job: Job, dataset: Dataset, analyst: str, caller: Caller, now: datetime) -> JobFacts:
    """Describe a job as the caller may see it now."""
    visible = visible_state(job, dataset, caller, now)
    place = f"/v1/jobs/{job.id}"
    cost = Cost(job.loss_units, job.delta_units)
    return JobFacts.model_validate(
        {
            "id": job.id,
            "dataset": dataset.name,
            "analyst": analyst,
            "state": visible.state,
            "rehearsal": job.rehearsal,
            "request": job.request,
            "algorithm": job.algorithm,
            "cost": accountants.amount(dataset.accountant, cost, dataset.delta_units),
            "plan_digest": job.plan_digest,
            "phase": visible.phase,
            "progress": visible.progress,
            "queued_at": job.queued_at,
            "claimed_at": job.claimed_at,
            "finished_at": visible.finished_at,
            "message": visible.message,
            "links": {"self": place, "result": f"{place}/result", "receipt": f"{place}/receipt"},
        }
    )
