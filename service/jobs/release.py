"""Release of what happens to a job: which callers may see it, and when.

How long a run takes may depend on rows, so nothing that an analyst can see follows it. The end of a job is
shown at a planned time after its claim, which was estimated from public numbers when it was submitted; phases
are shown by planned time too. Only a run that takes longer than planned is shown later, at the next of the
ticks 1, 2, 4, 8, ... seconds after the claim.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, select, true
from sqlalchemy.orm import Session, defer

from service.errors import Forbidden, NotFound
from service.jobs.filters import JobFilter
from service.operations.states import EndReason, JobState, Role
from service.operations.tables import Dataset, Grant, Job, Principal
from service.people.authentication import Caller, Reached

LATEST = "latest"
_SECOND = timedelta(seconds=1)
_INSTANT = timedelta(microseconds=1)
#: Time to store the end of a run: it must be in the database before anybody may see it.
_STORING = timedelta(milliseconds=100)
#: Seconds after which somebody who waits should look again: phases change before the end.
_LONGEST_WAIT = 10
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


def next_tick(elapsed: timedelta) -> timedelta:
    """Return the first tick that is not before `elapsed`."""
    tick = _SECOND
    while tick < elapsed:
        tick *= 2
    return tick


def release_time(claimed_at: datetime, planned: timedelta, ended_at: datetime) -> datetime:
    """Return when the end of a run may be seen: at its planned time or, if it took longer, at a tick."""
    needed = ended_at - claimed_at + _STORING
    return claimed_at + (planned if needed <= planned else next_tick(needed))


@dataclass(frozen=True)
class VisibleState:
    """The state of a job as a caller may see it at one moment."""

    state: JobState
    phase: str | None = None
    progress: dict[str, int] | None = None
    #: While the job runs: when its end will be shown.
    due_at: datetime | None = None
    finished_at: datetime | None = None
    message: str | None = None
    retry_after: int | None = None


@dataclass(frozen=True)
class VisibleJob:
    """A job that a caller may see, with its dataset and its analyst's name."""

    job: Job
    dataset: Dataset
    analyst: str
    caller: Caller

    def at(self, now: datetime) -> VisibleState:
        """Return the state at a moment: an analyst sees the end when it is released, the owner at once."""
        return state_at(self.job, now, held=not self.caller.is_curator)


def state_at(job: Job, now: datetime, *, held: bool) -> VisibleState:
    """Return a job's state at a moment, with its end held back until it is released, or as it is."""
    if job.finished_at is not None and (not held or _released_at(job) <= now):
        message = _MESSAGES.get((job.state, job.reason)) or _MESSAGES.get(job.reason)
        shown = _released_at(job) if held else job.finished_at
        return VisibleState(job.state, finished_at=shown, message=message)
    if job.claimed_at is None:
        return VisibleState(JobState.QUEUED, retry_after=1)
    planned = job.claimed_at + job.planned
    due = planned if now < planned else job.claimed_at + next_tick(now - job.claimed_at + _INSTANT)
    phase, progress = _phase(job, now)
    wait = min(_LONGEST_WAIT, max(1, -(-(due - now) // _SECOND)))
    return VisibleState(JobState.RUNNING, phase, progress, due, retry_after=wait)


def _released_at(job: Job) -> datetime:
    assert job.released_at is not None, "a job that ended has a time of release"
    return job.released_at


def _phase(job: Job, now: datetime) -> tuple[str | None, dict[str, int] | None]:
    """Return the phase of a running job and how many measurements are due, as if all took equally long."""
    phases: list[tuple[str, int]] = job.progress.get("phases", [])
    names = [name for name, repeats in phases for _ in range(repeats)]
    if job.claimed_at is None or not names:
        return None, None
    due = min(len(names), max(0, (now - job.claimed_at) * len(names) // max(job.planned, _INSTANT)))
    return names[min(due, len(names) - 1)], {"measured": due, "planned": len(names)}


def find(session: Session, job_id: str, caller: Caller) -> VisibleJob:
    """Return a job that the caller may see, or raise NotFound.

    `latest` names the newest one.
    """
    if job_id == LATEST:
        newest = session.execute(_visible(caller).order_by(Job.number.desc()).limit(1)).one_or_none()
        if newest is None:
            raise NotFound("you have no jobs yet; submit one with POST /v1/jobs")
        return _seen(session, caller, *newest)
    found = session.execute(_visible(caller).where(Job.id == job_id)).one_or_none()
    if found is None:
        caller.reached.append(Reached(job=job_id))
        raise NotFound("there is no such job, or it is not yours")
    return _seen(session, caller, *found)


def _seen(session: Session, caller: Caller, job: Job, analyst: str) -> VisibleJob:
    caller.reached.append(Reached(job.dataset_id, job=job.id))
    return VisibleJob(job, session.get_one(Dataset, job.dataset_id), analyst, caller)


def find_own(session: Session, job_id: str, caller: Caller) -> VisibleJob:
    """Return a job that the caller submitted; Forbidden for an analyst's, on the caller's dataset."""
    found = find(session, job_id, caller)
    if found.job.principal_id != caller.id:
        raise Forbidden(f"only {found.analyst}, who submitted this job, may do this; you can end it")
    return found


def require_readable(session: Session, found: VisibleJob, now: datetime) -> None:
    """Raise NotFound when the grant has ended and keeps no results for its analyst."""
    grant = None if found.job.grant_id is None else session.get_one(Grant, found.job.grant_id)
    if grant is None or found.caller.id == found.job.owner_id:
        return
    if grant.has_ended(now) and not grant.keeps_results:
        raise NotFound(
            "your grant has ended, and with it your right to read results",
            next_step="Ask the dataset's curator; the receipt can still be read.",
        )


def page(
    session: Session, caller: Caller, wanted: JobFilter, *, before: str | None, limit: int, now: datetime
) -> list[VisibleJob]:
    """Return jobs that the caller may see and wants, newest first."""
    query = _visible(caller, wanted.dataset).where(*wanted.conditions(now, held=not caller.is_curator))
    if before is not None:
        query = query.where(Job.number < select(Job.number).where(Job.id == before).scalar_subquery())
    query = wanted.search_in(query).order_by(Job.number.desc()).limit(limit)
    found = session.execute(query).all()
    # Not joined: each row would carry the whole dataset, and its domain be parsed again.
    datasets = session.scalars(select(Dataset).where(Dataset.id.in_({job.dataset_id for job, _ in found})))
    named = {dataset.id: dataset for dataset in datasets}
    return [VisibleJob(job, named[job.dataset_id], analyst, caller) for job, analyst in found]


def _visible(caller: Caller, dataset: str | None = None) -> Select[Job, str]:
    """Select the jobs that a caller may see: on a curator's datasets, an analyst's own, an auditor all.

    Each condition is on one column of jobs, whose index has them in order.
    """
    query = select(Job, Principal.name).join(Principal, Job.principal_id == Principal.id)
    if caller.datasets is not None:
        within = select(Dataset.id).where(Dataset.name.in_(caller.datasets))
        query = query.where(Job.dataset_id.in_(within))
    return query.where(_mine(caller, dataset)).options(
        defer(Job.plan, raiseload=True)  # up to 64 KiB, which no list shows
    )


def _mine(caller: Caller, dataset: str | None) -> ColumnElement[bool]:
    everywhere = {
        Role.CURATOR: Job.owner_id == caller.id,
        Role.ANALYST: Job.principal_id == caller.id,
        Role.AUDITOR: true(),
    }
    if dataset is None:
        return everywhere[caller.role]
    if caller.role == Role.ANALYST:
        granted = select(Grant.id).join(Dataset, Dataset.id == Grant.dataset_id)
        granted = granted.where(Dataset.name == dataset, Grant.principal_id == caller.id)
        return Job.grant_id == granted.scalar_subquery()
    named = select(Dataset.id).where(Dataset.name == dataset)
    if caller.is_curator:
        named = named.where(Dataset.owner_id == caller.id)
    return Job.dataset_id == named.scalar_subquery()
