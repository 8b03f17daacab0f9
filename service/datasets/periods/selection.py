"""The periods that a job reads: chosen by public labels, and what follows for its domain and its accounts."""

from collections.abc import Mapping, Sequence
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

    unit: Unit
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
            "unit": self.unit.value,
            "read": [each.to_json() for each in self.read],
            "rows": self.rows,
            "charged": list(self.charged),
            "bounds": self.bounds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        read = tuple(PeriodRead(**each) for each in data["read"])
        return cls(Unit(data["unit"]), read, data["rows"], data["bounds"])


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
    stored = (PeriodsRead.from_json(each) for each in session.scalars(query) if each is not None)
    return any(label in each.labels for each in stored)


def charged(periods: PeriodsRead | None) -> tuple[str, ...]:
    """Return the labels of the accounts of a job; one that is empty in a dataset without periods."""
    return (WHOLE,) if periods is None else periods.charged


def choose(
    session: Session, dataset: Dataset, asked: Sequence[str] | PeriodRange | None
) -> PeriodsRead | None:
    """Return the periods that a request asks for, all that are sealed by default.

    None in a dataset without periods, and in one that has no rows: nothing can be planned on it.
    """
    if dataset.unit is None:
        if asked is not None:
            raise InvalidRequest(f"{dataset.name} has no periods", next_step="Leave `periods` out.")
        return None
    if dataset.state != DatasetState.SEALED:
        return None
    found = sealed(session, dataset.id)
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


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= 3 else f"{labels[0]} to {labels[-1]}"


def present(session: Session, dataset_id: int, planned: Mapping[str, Any]) -> PeriodsRead:
    """Return the periods of a stored job in the versions that are sealed now, or as planned once retired."""
    stored = PeriodsRead.from_json(planned)
    found = sealed(session, dataset_id, stored.labels)
    if len(found) < len(stored.read):
        return stored
    return replace(stored, read=tuple(PeriodRead.of(each) for each in found))
