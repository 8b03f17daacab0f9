"""The periods that a job reads: chosen by public labels, and what follows for its domain and its accounts.

A dataset without periods is one with a single period, whose label is empty. Its first version is stored with
the dataset itself, and in jobs by None; those that correct it are rows of `periods`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from core.data import Stored
from service.datasets.periods.wire import PeriodRange
from service.errors import InvalidRequest
from service.ledger.charging import WHOLE, charged_periods, rows_protected
from service.operations.states import DatasetState, JobState, Unit
from service.operations.tables import Dataset, Job, Period

#: Most rows of one person that the noise of a job can protect.
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class PeriodRead:
    """A period that a job reads, in one of its versions."""

    label: str
    version: int
    size: int
    #: Of the stored version.
    id: int

    @classmethod
    def of(cls, period: Period) -> Self:
        return cls(period.label, period.version, period.size, period.id)

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, "version": self.version, "size": self.size, "id": self.id}

    def facts(self) -> dict[str, Any]:
        """Return what plans, jobs and receipts name."""
        return {"label": self.label, "version": self.version}


@dataclass(frozen=True)
class PeriodsRead:
    """All periods that a job reads, in the order of their labels."""

    #: None: a dataset without periods, in a later version than its first.
    unit: Unit | None
    read: tuple[PeriodRead, ...]
    #: Rows of one contributor that the noise protects.
    rows: int
    #: Fingerprint of the dataset's domain, as declared or in working bounds, that the job is planned in.
    bounds: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(each.label for each in self.read)

    @property
    def charged(self) -> tuple[str, ...]:
        """Labels of the accounts that the job is charged to."""
        return charged_periods(self.unit, self.labels)

    def domain(self, stored: Stored) -> Stored:
        """Return the domain of the job: the dataset's, with its size and the rows that noise protects."""
        return replace(stored, size=sum(each.size for each in self.read), rows_per_person=self.rows)

    def facts(self) -> list[dict[str, Any]]:
        """Return label and version of each."""
        return [each.facts() for each in self.read]

    def to_json(self) -> dict[str, Any]:
        """Return what is stored with a job."""
        return {
            "unit": self.unit and self.unit.value,
            "read": [each.to_json() for each in self.read],
            "rows": self.rows,
            "charged": list(self.charged),
            "bounds": self.bounds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        read = tuple(PeriodRead(**each) for each in data["read"])
        unit = None if data["unit"] is None else Unit(data["unit"])
        return cls(unit, read, data["rows"], data["bounds"])


def read_by(job: Job) -> PeriodsRead | None:
    """Return the periods of a job; None: a dataset without periods, in its first version."""
    return None if job.periods is None else PeriodsRead.from_json(job.periods)


def described(periods: PeriodsRead | None) -> dict[str, Any]:
    """Return what plans and jobs name: label and version of each period, or the version of all rows."""
    if periods is None:
        return {"periods": None, "version": 1}
    if periods.unit is None:
        return {"periods": None, "version": periods.read[0].version}
    return {"periods": periods.facts(), "version": None}


def sealed(session: Session, dataset_id: int, labels: Sequence[str] | None = None) -> list[Period]:
    """Return the sealed periods of a dataset, or those with these labels, by their labels."""
    query = select(Period).where(Period.dataset_id == dataset_id, Period.state == DatasetState.SEALED)
    if labels is not None:
        query = query.where(Period.label.in_(labels))
    return list(session.scalars(query.order_by(Period.label)))


def is_running(session: Session, dataset_id: int, label: str, now: datetime) -> bool:
    """Return True if a job on a period is shown as running now, whether it has ended or not."""
    shown = or_(Job.state == JobState.RUNNING, Job.released_at > now)
    query = select(Job.periods).where(
        Job.dataset_id == dataset_id, Job.rehearsal.is_(False), Job.claimed_at.is_not(None), shown
    )
    running = session.scalars(query).all()
    return any(each is None or label in PeriodsRead.from_json(each).labels for each in running)


def charged(periods: PeriodsRead | None) -> tuple[str, ...]:
    """Return the labels of the accounts of a job; one that is empty in a dataset without periods."""
    return (WHOLE,) if periods is None else periods.charged


def choose(
    session: Session, dataset: Dataset, asked: Sequence[str] | PeriodRange | None
) -> PeriodsRead | None:
    """Return the periods that a request asks for, all that are sealed by default.

    None for the first version of a dataset without periods, and in one that has no rows: nothing can be
    planned on it.
    """
    if dataset.unit is None and asked is not None:
        raise InvalidRequest(f"{dataset.name} has no periods", next_step="Leave `periods` out.")
    found = sealed(session, dataset.id)
    if not found:
        return None
    chosen = found if asked is None else _asked(dataset.name, found, asked)
    unit, labels = dataset.unit, [each.label for each in chosen]
    rows = rows_protected(unit, labels, dataset.domain["rows_per_person"])
    if rows > _MOST_ROWS:
        raise InvalidRequest(
            f"these {len(labels)} periods hold up to {rows:,} rows of one person, and noise protects at most "
            f"{_MOST_ROWS:,}",
            next_step="Ask for fewer periods.",
        )
    return PeriodsRead(unit, tuple(PeriodRead.of(each) for each in chosen), rows)


def _asked(name: str, found: Sequence[Period], asked: Sequence[str] | PeriodRange) -> list[Period]:
    labels = [each.label for each in found]
    if isinstance(asked, PeriodRange):
        first, last = asked.first or labels[0], asked.last or labels[-1]
        chosen = [each for each in found if first <= each.label <= last]
        if not chosen:
            raise InvalidRequest(
                f"{name} has no sealed period from {first} to {last}",
                next_step=f"Its periods are {_listed(labels)}.",
            )
        return chosen
    unknown = sorted(set(asked) - set(labels))
    if unknown:
        raise InvalidRequest(
            f"{name} has no sealed period {', '.join(unknown)}",
            next_step=f"Its periods are {_listed(labels)}.",
        )
    return [each for each in found if each.label in asked]


def largest_range(labels: Sequence[str], lacking: Collection[str]) -> dict[str, str] | None:
    """Return the ends of the longest run of periods of which none lacks room, if there is one."""
    runs: list[list[str]] = [[]]
    for label in labels:
        if label in lacking:
            runs.append([])
        else:
            runs[-1].append(label)
    longest = max(runs, key=len)
    return {"from": longest[0], "to": longest[-1]} if longest else None


def in_words(ends: Mapping[str, str]) -> str:
    """Return a range of periods as messages name it."""
    return ends["from"] if ends["from"] == ends["to"] else f"{ends['from']} to {ends['to']}"


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= 3 else f"{labels[0]} to {labels[-1]}"


def present(
    session: Session, dataset: Dataset, planned: PeriodsRead | None, bounds: str
) -> PeriodsRead | None:
    """Return the periods of a job in the versions that are sealed now, or as planned if there are none.

    `bounds`: those in which a job on a dataset without periods is planned.
    """
    labels = (WHOLE,) if planned is None else planned.labels
    found = tuple(PeriodRead.of(each) for each in sealed(session, dataset.id, labels))
    if len(found) < len(labels):
        return planned
    if planned is None:
        return PeriodsRead(None, found, dataset.domain["rows_per_person"], bounds)
    return replace(planned, read=found)
