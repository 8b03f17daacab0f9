"""Hand a dataset over to another curator."""

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from service import ledger
from service.datasets.withdrawal import reopen_requests, withdraw
from service.errors import InvalidRequest, NotFound
from service.operations import audit
from service.operations.states import Role
from service.operations.tables import Dataset, Job, Principal


def hand_over(session: Session, dataset: Dataset, curator: str, *, actor: str, at: datetime) -> Principal:
    """Make another curator the owner of a dataset; what the former one asked for stays theirs to read.

    Queued jobs of the former owner's own are withdrawn.
    """
    following = session.scalars(select(Principal).where(Principal.name == curator)).one_or_none()
    if following is None or following.role != Role.CURATOR or following.disabled_at is not None:
        raise InvalidRequest(
            f"{curator} is not the name of a curator who can sign in",
            next_step="Name a curator with an account that is not disabled.",
        )
    _list_jobs_for(session, dataset, following)  # jobs are locked before accounts
    ledger.lock(session, dataset.id)
    session.refresh(dataset)
    former = session.get_one(Principal, dataset.owner_id)
    if former.id == following.id:
        return following
    dataset.owner_id = following.id
    _list_jobs_for(session, dataset, following)  # those that were submitted meanwhile
    withdraw(session, dataset.id, owners=True, actor=actor, at=at)
    reopen_requests(session, dataset.id, former_id=former.id)
    audit.record(
        session,
        "hand-over",
        actor=actor,
        at=at,
        dataset_id=dataset.id,
        former=former.name,
        owner=following.name,
    )
    return following


def find(session: Session, name: str) -> Dataset:
    """Return a dataset by its name, for operators."""
    found = session.scalars(select(Dataset).where(Dataset.name == name)).one_or_none()
    if found is None:
        raise NotFound(f"there is no dataset named {name}")
    return found


def _list_jobs_for(session: Session, dataset: Dataset, owner: Principal) -> None:
    """List the jobs of analysts for the owner."""
    analysts = (Job.dataset_id == dataset.id, Job.grant_id.is_not(None), Job.owner_id != owner.id)
    session.execute(
        update(Job).where(*analysts).values(owner_id=owner.id),
        execution_options={"synchronize_session": False},
    )
