"""The stored periods of a dataset, as its owner and analysts may see them."""

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from service.datasets.access import Right
from service.errors import NotFound, NotSealed
from service.operations.states import DatasetState
from service.operations.tables import Period


def _visible(right: Right) -> Select[Period]:
    """Return the query of the newest version of each period that the caller may see."""
    query = select(Period).where(Period.dataset_id == right.dataset.id)
    return query if right.is_owner else query.where(Period.state != DatasetState.DRAFT)


def page(session: Session, right: Right, *, after: str, limit: int) -> list[Period]:
    """Return the periods of a dataset by their labels."""
    query = _visible(right).where(Period.label > after).order_by(Period.label).limit(limit)
    return list(session.scalars(query))


def find(session: Session, right: Right, label: str) -> Period:
    """Return a period; NotFound unless the caller may see it."""
    found = session.scalars(_visible(right).where(Period.label == label)).one_or_none()
    if found is None:
        raise NotFound(f"{right.dataset.name} has no period {label}")
    return found


def find_sealed(session: Session, right: Right, label: str) -> Period:
    """Return a sealed period; NotSealed while it is a draft, which has no account."""
    found = find(session, right, label)
    if found.state == DatasetState.DRAFT:
        raise NotSealed(f"{label} of {right.dataset.name} is a draft", next_step="Seal it first.")
    return found
