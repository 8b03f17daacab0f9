"""Views of requests for access, as who asks and who decides may see them."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.datasets import grants, requests
from service.datasets import view as dataset_view
from service.ledger import accountants
from service.ledger.units import LARGEST_UNITS, Cost
from service.operations.states import RequestState, Role
from service.operations.tables import AccessRequest, Dataset, Grant, Principal
from service.people.authentication import Caller


def facts(session: Session, row: AccessRequest, caller: Caller) -> dict[str, Any]:
    """Describe a request as its caller may see it now."""
    dataset = session.get_one(Dataset, row.dataset_id)
    of_grant = row.analyst_id is not None
    return {
        "id": row.id,
        "dataset": dataset.name,
        "owner": _name(session, dataset.owner_id),
        "about": "grant" if of_grant else "total",
        "analyst": _name(session, row.analyst_id),
        "period": row.period,
        "asked_by": _name(session, row.asked_by),
        "asked_at": row.asked_at,
        "asked": _wanted(row.asked, of_grant=of_grant),
        "plan": _plan(session, row, caller),
        "state": row.state,
        "decided": row.decided and _wanted(row.decided, of_grant=of_grant),
        "decided_by": _name(session, row.decided_by),
        "decided_at": row.decided_at,
        "reason": row.reason,
        "seconded_by": _name(session, row.seconded_by),
        "seconded_at": row.seconded_at,
        "acts": requests.acts(session, row, caller),
        "standing": _standing(session, dataset, row) if caller.role != Role.ANALYST else None,
    }


def _name(session: Session, principal_id: int | None) -> str | None:
    return None if principal_id is None else session.get_one(Principal, principal_id).name


def _wanted(terms: Mapping[str, Any], *, of_grant: bool) -> dict[str, Any]:
    return {**terms, "words": requests.in_words(terms, of_grant=of_grant)}


def _plan(session: Session, row: AccessRequest, caller: Caller) -> dict[str, Any] | None:
    """Describe the plan; to somebody who has no grant, not what follows from facts of the dataset."""
    if row.plan is None:
        return None
    if caller.role == Role.ANALYST and grants.find(session, row.dataset_id, caller.id) is None:
        return {name: row.plan[name] for name in ("request", "asked_for")}
    return row.plan


def _standing(session: Session, dataset: Dataset, row: AccessRequest) -> dict[str, Any] | None:
    if row.state not in (RequestState.OPEN, RequestState.PROPOSED):
        return None
    grant = None if row.analyst_id is None else grants.find(session, dataset.id, row.analyst_id)
    held = select(Grant).where(Grant.dataset_id == dataset.id, Grant.revoked_at.is_(None))
    others = [each for each in session.scalars(held) if each.principal_id != row.analyst_id]
    caps = [accountants.of(dataset, each).total for each in others]
    added = Cost(
        min(sum(each.loss for each in caps), LARGEST_UNITS),
        min(sum(each.delta for each in caps), LARGEST_UNITS),
    )
    return {
        "budget": dataset_view.balance_view(session, dataset),
        "cap": dataset_view.balance_view(session, dataset, grant) if grant else None,
        "others": {"analysts": len(others), "caps": accountants.of(dataset).amount(added)},
    }
