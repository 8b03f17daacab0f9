"""Filters of the list of jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Query
from sqlalchemy import ColumnElement, Select, and_, func, not_, or_, select

from core.plan import CLUSTER
from service.http.paging import Since, Until
from service.http.wire import NAME_PATTERN, VISIBLE_PATTERN, JobKind
from service.operations.states import JobState
from service.operations.tables import Job, Principal

#: Jobs that are searched for a text.
MOST_SEARCHED = 10_000


@dataclass(frozen=True)
class JobFilter:
    """Which jobs to list; what is left out does not matter."""

    dataset: Annotated[str | None, Query(pattern=NAME_PATTERN, description="only on this dataset")] = None
    analyst: Annotated[str | None, Query(pattern=NAME_PATTERN, description="only of this person")] = None
    state: Annotated[JobState | None, Query(description="only in this state now")] = None
    kind: Annotated[JobKind | None, Query(description="only of this kind")] = None
    since: Since = None
    until: Until = None
    search: Annotated[
        str,
        Query(
            max_length=80,
            pattern=VISIBLE_PATTERN,
            description="only jobs with this in their name or note, of the newest "
            f"{MOST_SEARCHED:,} that the other filters leave: use `until` to search earlier ones",
        ),
    ] = ""

    def conditions(self, now: datetime, *, held: bool) -> Iterator[ColumnElement[bool]]:
        """Yield what the filters demand, other than dataset and search; `held` as in `release.state_at`."""
        if self.analyst is not None:
            yield Principal.name == self.analyst
        if self.state is not None:
            yield in_state(self.state, now, held=held)
        if self.kind is not None:
            yield func.coalesce(Job.request["kind"].as_string(), CLUSTER) == self.kind
        if self.since is not None:
            yield Job.queued_at >= self.since
        if self.until is not None:
            yield Job.queued_at < self.until

    def search_in(self, jobs: Select[Job, str]) -> Select[Job, str]:
        """Select the jobs that have the text that is searched for, among the newest of some jobs.

        No index finds it, so that a search among all jobs of years would take seconds.
        """
        if not self.search:
            return jobs
        newest = (
            jobs.with_only_columns(Job.number).order_by(Job.number.desc()).limit(MOST_SEARCHED).subquery()
        )
        text = or_(*(each.icontains(self.search, autoescape=True) for each in (Job.name, Job.note)))
        return jobs.where(Job.number >= select(func.min(newest.c.number)).scalar_subquery(), text)


def in_state(state: JobState, now: datetime, *, held: bool) -> ColumnElement[bool]:
    """Select the jobs that `release.state_at` shows in a state at a moment.

    The end of a job is held back from its analyst until it is released, so a filter must not show it before.
    """
    ended: ColumnElement[bool] = Job.finished_at.is_not(None)
    if held:
        ended = and_(ended, Job.released_at <= now)
    if state == JobState.QUEUED:
        return and_(not_(ended), Job.claimed_at.is_(None))
    if state == JobState.RUNNING:
        return and_(not_(ended), Job.claimed_at.is_not(None))
    return and_(ended, Job.state == state)
