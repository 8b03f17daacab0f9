"""Working bounds: narrower than the declared ones; jobs planned from now on clip rows to them as they read.

Nothing is uploaded again and the ledger goes on. Plans name their domain by digest: earlier jobs keep theirs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import Stored, domain_from_json, narrowed
from core.errors import InvalidDomain
from service.datasets import lifecycle
from service.datasets.access import domain_of
from service.operations.tables import Dataset, WorkingBounds


@dataclass(frozen=True)
class NewBounds:
    """New bounds of one column, typed by the curator or released by a job."""

    column: str
    low: Any
    high: Any
    job: str | None = None

    @property
    def origin(self) -> str:
        """Origin of the bounds, in words."""
        return f"released by job {self.job}" if self.job else "typed by the curator"


def present_domain(dataset: Dataset) -> Stored:
    """Return the domain in which new jobs are planned."""
    return domain_of(dataset) if dataset.working is None else domain_from_json(dataset.working.domain)


def find(session: Session, dataset_id: int, digest: str) -> WorkingBounds | None:
    """Return the working bounds, present or past, whose domain has this digest; None: the declared ones."""
    query = select(WorkingBounds).where(
        WorkingBounds.dataset_id == dataset_id, WorkingBounds.digest == digest
    )
    return session.scalars(query.order_by(WorkingBounds.id.desc()).limit(1)).one_or_none()


def domain_named(session: Session, dataset: Dataset, digest: str) -> dict[str, Any]:
    """Return the domain that a plan names by its digest, as JSON."""
    found = find(session, dataset.id, digest)
    return dataset.domain if found is None else found.domain


def put(
    session: Session, dataset: Dataset, columns: Sequence[NewBounds], *, actor: str, at: datetime
) -> None:
    """Set the working bounds of a sealed dataset in place of those it has; InvalidDomain if too wide."""
    lifecycle.lock_sealed(session, dataset)
    names = [each.column for each in columns]
    if len(set(names)) != len(names):
        raise InvalidDomain("two bounds are for the same column: name each column once", parameter="columns")
    domain = narrowed(domain_of(dataset), {each.column: (each.low, each.high) for each in columns})
    described = [{**asdict(each), "origin": each.origin} for each in columns]
    following = WorkingBounds(
        dataset_id=dataset.id,
        digest=domain.fingerprint,
        domain=domain.to_json(),
        columns=described,
        set_by=actor,
        set_at=at,
    )
    lifecycle.supersede(
        session,
        dataset,
        dataset.working,
        following,
        "set-working-bounds",
        actor=actor,
        at=at,
        domain=domain.fingerprint,
        columns=described,
    )


def remove(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> None:
    """Go back to the declared bounds; jobs that were planned in others keep those."""
    lifecycle.lock_sealed(session, dataset)
    if dataset.working is not None:
        action = "remove-working-bounds"
        lifecycle.supersede(session, dataset, dataset.working, None, action, actor=actor, at=at)
