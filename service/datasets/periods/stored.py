"""The stored periods of a dataset, as its owner and analysts may see them."""

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from service.datasets.access import Right
from service.errors import NotFound, NotSealed
from service.ledger.charging import WHOLE
from service.operations.states import DatasetState
from service.operations.tables import Dataset, Period

_OTHER = aliased(Period)
#: The version of a period that is shown: not the draft of a correction.
_SHOWN = (
    select(func.max(_OTHER.version))
    .where(
        _OTHER.dataset_id == Period.dataset_id,
        _OTHER.label == Period.label,
        (_OTHER.state != DatasetState.DRAFT) | (_OTHER.version == 1),
    )
    .scalar_subquery()
)


def _visible(right: Right) -> Select[Period]:
    """Return the query of the periods that the caller may see, each in one version."""
    query = select(Period).where(Period.dataset_id == right.dataset.id, Period.version == _SHOWN)
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


def of_whole(session: Session, dataset: Dataset) -> tuple[Period | None, Period | None]:
    """Return the last correction of a dataset without periods, and the draft of one, if there are any."""
    query = select(Period).where(Period.dataset_id == dataset.id, Period.label == WHOLE)
    found = session.scalars(query.order_by(Period.version.desc()).limit(2)).all()
    draft = next((each for each in found if each.state == DatasetState.DRAFT), None)
    return next((each for each in found if each is not draft), None), draft


def corrections(session: Session, dataset_id: int) -> dict[str, Period]:
    """Return the drafts of corrections, by label; it is empty in a dataset without periods."""
    drafts = select(Period).where(Period.dataset_id == dataset_id, Period.state == DatasetState.DRAFT)
    return {each.label: each for each in session.scalars(drafts.where(Period.version > 1))}


def find_draft(session: Session, right: Right, label: str) -> Period:
    """Return the draft of a period or of its correction; the sealed period, if there is no draft."""
    period = find(session, right, label)
    return corrections(session, right.dataset.id).get(label, period)


def find_sealed(session: Session, right: Right, label: str) -> Period:
    """Return a sealed period; NotSealed while it is a draft, which has no account."""
    found = find(session, right, label)
    if found.state == DatasetState.DRAFT:
        raise NotSealed(f"{label} of {right.dataset.name} is a draft", next_step="Seal it first.")
    return found
