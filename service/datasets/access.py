"""Access to datasets: who may use one, as its owner or under a grant, and who may read about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, false, func, or_, select
from sqlalchemy.orm import Session, aliased

from core.data import Stored, domain_from_json
from service.errors import Forbidden, NotFound
from service.ledger import accountants
from service.ledger.accountants import Accountant
from service.operations.states import DatasetState, Role
from service.operations.tables import Dataset, Grant, Principal, allowed_kinds
from service.people.authentication import Caller, Reached

#: First character of the placeholder for the name that a discarded draft gave up; no name begins with it.
NAMELESS = "~"

# Built once: every submission, and the last every claim, needs them.
_GRANTED = (
    select(Dataset, Grant)
    .join(Grant, Grant.dataset_id == Dataset.id)
    .where(
        Grant.principal_id == bindparam("caller"),
        Grant.revoked_at.is_(None),
        or_(Grant.ends_at.is_(None), Grant.ends_at > bindparam("now")),
    )
)
_EVERY = select(Dataset, Grant).outerjoin(Grant, false())
_OWNED = _EVERY.where(Dataset.owner_id == bindparam("caller"))
_VISIBLE = {Role.CURATOR: _OWNED, Role.ANALYST: _GRANTED, Role.AUDITOR: _EVERY}
_NAMED = Dataset.name == bindparam("name")
_BY_NAME = {
    role: query.where(_NAMED).execution_options(populate_existing=True) for role, query in _VISIBLE.items()
}
_Owner = aliased(Principal)
_STATE = (
    select(
        Dataset.state,
        Grant.revoked_at,
        func.coalesce(Principal.disabled_at, _Owner.disabled_at).label("disabled_at"),
        Grant.kinds,
        Grant.ends_at,
    )
    .join(Grant, Grant.dataset_id == Dataset.id)
    .join(Principal, Principal.id == Grant.principal_id)
    .join(_Owner, _Owner.id == Dataset.owner_id)
    .where(Grant.id == bindparam("grant"))
)
_OWNERS_STATE = (
    select(Dataset.state, Principal.disabled_at)
    .join(Principal, Principal.id == Dataset.owner_id)
    .where(Dataset.id == bindparam("dataset"))
)


@dataclass(frozen=True)
class Right:
    """A caller's right to a dataset: as its owner, whom only the total limits, under a grant, or to audit it.

    Whoever may use a dataset is its owner or has a grant: routes that use it let no auditor in.
    """

    caller: Caller
    dataset: Dataset
    grant: Grant | None = None

    @property
    def is_owner(self) -> bool:
        """Whether the dataset is the caller's own."""
        return self.dataset.owner_id == self.caller.id

    @property
    def grant_id(self) -> int | None:
        """The id of the grant; None for the owner."""
        return self.grant.id if self.grant else None

    @property
    def accountant(self) -> Accountant:
        """The accountant of the dataset's own account."""
        return accountants.of(self.dataset)

    @property
    def offers_delta(self) -> bool:
        """Whether dataset, grant and population were declared with a delta."""
        declared = (self.dataset, self.grant, self.dataset.population)
        return all(each is None or each.delta_units > 0 for each in declared)

    def allows(self, kind: str) -> bool:
        """Return True if jobs of this kind may be submitted; the owner may submit every kind."""
        return self.is_owner if self.grant is None else kind in self.grant.allowed_kinds


def find(session: Session, name: str, caller: Caller) -> Right:
    """Return the caller's right to a dataset, or raise NotFound."""
    found = None
    if caller.role in _BY_NAME and caller.reaches(name):
        found = session.execute(
            _BY_NAME[caller.role], {"caller": caller.id, "now": caller.asked_at, "name": name}
        ).one_or_none()
    if found is None:
        caller.reached.append(Reached(dataset=name))
        raise NotFound(f"there is no dataset named {name}, or you have no grant for it")
    dataset, grant = found
    caller.reached.append(Reached(dataset.id))
    return Right(caller, dataset, grant)


def is_open(session: Session, dataset_id: int, grant_id: int | None, kind: str, now: datetime) -> bool:
    """Return True when the dataset is sealed, and neither the right to such a job nor its holder withdrawn.

    A grant that has ended is withdrawn. Without a grant, the right is that of the dataset's owner. Nobody has
    one while the owner's account is disabled. The caller holds the account's lock.
    """
    if grant_id is None:
        state, disabled_at = session.connection().execute(_OWNERS_STATE, {"dataset": dataset_id}).one()
        return state == DatasetState.SEALED and disabled_at is None
    found = session.connection().execute(_STATE, {"grant": grant_id}).one()
    withdrawn = found.revoked_at is not None or found.disabled_at is not None
    ended = found.ends_at is not None and found.ends_at <= now
    return (
        found.state == DatasetState.SEALED
        and not withdrawn
        and not ended
        and kind in allowed_kinds(found.kinds)
    )


def page(
    session: Session, caller: Caller, *, after: str, limit: int, state: DatasetState | None = None
) -> list[Right]:
    """Return the caller's rights to datasets, by the datasets' names; only to those in a state, if named."""
    named = ~Dataset.name.startswith(NAMELESS)
    if caller.datasets is not None:
        named &= Dataset.name.in_(caller.datasets)
    if state is not None:
        named &= Dataset.state == state
    query = _VISIBLE[caller.role].where(Dataset.name > after, named).order_by(Dataset.name).limit(limit)
    return [
        Right(caller, dataset, grant)
        for dataset, grant in session.execute(query, {"caller": caller.id, "now": caller.asked_at})
    ]


def accessible(session: Session, caller: Caller, dataset_ids: Sequence[int]) -> set[int]:
    """Return those of these datasets that are the caller's own, granted to them, or theirs to audit."""
    query = _VISIBLE[caller.role].where(Dataset.id.in_(dataset_ids)).with_only_columns(Dataset.id)
    return set(session.scalars(query, {"caller": caller.id, "now": caller.asked_at}))


def require_owner(session: Session, dataset: Dataset) -> None:
    """Raise Forbidden while the account of the dataset's owner is disabled: nobody could stop its jobs."""
    owner = session.get_one(Principal, dataset.owner_id)
    if owner.disabled_at is not None:
        raise Forbidden(
            f"the account of {owner.name}, who owns {dataset.name}, is disabled; no jobs run on it",
            next_step="Ask an operator to hand the dataset over to another curator.",
        )


def domain_of(dataset: Dataset) -> Stored:
    """Return the public domain of a dataset."""
    return domain_from_json(dataset.domain)
