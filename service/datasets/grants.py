"""Grants: an analyst's right to use a dataset, with a cap in the dataset's own currency."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.privacy import Budget
from service import ledger
from service.datasets.decisions import Decision
from service.datasets.periods import accounts
from service.datasets.withdrawal import withdraw
from service.errors import InvalidRequest, NotFound, Retired
from service.ledger import accountants
from service.operations import audit
from service.operations.clock import rfc3339
from service.operations.states import DatasetState, Role
from service.operations.tables import Dataset, Grant, Principal, allowed_kinds


def grant(
    session: Session,
    dataset: Dataset,
    analyst: Principal,
    cap: Budget,
    *,
    terms: Mapping[str, Any] | None = None,
    by: Decision,
) -> Grant:
    """Grant a cap, change it, or renew a revoked grant; what the analyst used stays used.

    SecondNeeded for more than the curator may allow alone, unless the change only takes away.

    `terms` are columns of the grant (kinds of jobs, purpose, permit, end); those that are not given stay as
    they are: clusterings alone, and no end, in a new grant. Queued jobs that are not allowed any more are
    withdrawn.
    """
    if analyst.role != Role.ANALYST:
        raise InvalidRequest(f"{analyst.name} is a curator; grants are for analysts")
    accountant = accountants.get(dataset.accountant, cap)
    total = accountant.total
    ledger.lock(session, dataset.id)
    session.refresh(dataset)
    if dataset.state == DatasetState.RETIRED:
        raise Retired(f"{dataset.name} is retired; nobody can be granted anything on it")
    row = _find(session, dataset, analyst)
    if not (row and _only_takes_away(row, cap, terms or {}, by.at)):
        by.require(cap, "a grant")
    if row is None:
        row = Grant(dataset_id=dataset.id, principal_id=analyst.id, created_at=by.at)
        session.add(row)
    row.epsilon_units, row.delta_units, row.revoked_at = cap.epsilon_units, cap.delta_units, None
    for name, value in (terms or {}).items():
        setattr(row, name, value)
    session.flush()
    if row.has_ended(by.at):
        raise InvalidRequest("the grant's end is over; give an end that is to come, or none")
    withdraw(session, dataset.id, grant_id=row.id, kept=row.allowed_kinds, actor=by.actor, at=by.at)
    try:
        labels = accounts.labels(session, dataset)
        ledger.set_cap(session, dataset.id, row.id, total, periods=labels, actor=by.actor, at=by.at)
    except ledger.Overdrawn as error:
        used = error.balance.reserved + error.balance.spent
        raise InvalidRequest(
            "a cap cannot be less than the analyst has spent and reserved; cancel queued jobs first",
            status=409,
            used=accountant.amount(used),
        ) from error
    details: dict[str, Any] = {"analyst": analyst.name, **accountants.declared(cap)}
    details |= {name: _plain(value) for name, value in (terms or {}).items()} | by.details
    audit.record(session, "grant", actor=by.actor, at=by.at, dataset_id=dataset.id, **details)
    return row


def may_decide(
    session: Session,
    dataset: Dataset,
    analyst: Principal,
    cap: Budget,
    terms: Mapping[str, Any],
    by: Decision,
) -> bool:
    """Return True if the curator may make this grant, or this change of one, alone."""
    row = find(session, dataset.id, analyst.id)
    return by.may_allow(cap) or (row is not None and _only_takes_away(row, cap, terms, by.at))


def _only_takes_away(row: Grant, cap: Budget, terms: Mapping[str, Any], at: datetime) -> bool:
    """Return True if a grant that is in force allows nothing more, and nothing else, after a change."""
    if row.revoked_at is not None or row.has_ended(at):
        return False
    if cap.epsilon_units > row.epsilon_units or cap.delta_units > row.delta_units:
        return False
    after = {name: getattr(row, name) for name in ("kinds", "purpose", "permit", "ends_at", "keeps_results")}
    after |= terms
    sooner = row.ends_at is None or (after["ends_at"] is not None and after["ends_at"] <= row.ends_at)
    return (
        sooner
        and set(allowed_kinds(after["kinds"])) <= set(row.allowed_kinds)
        and (after["purpose"], after["permit"]) == (row.purpose, row.permit)
        and after["keeps_results"] <= row.keeps_results
    )


def _plain(value: Any) -> Any:
    return rfc3339(value) if isinstance(value, datetime) else value


def revoke(session: Session, dataset: Dataset, analyst: Principal, *, actor: str, at: datetime) -> int:
    """Revoke a grant and withdraw the analyst's queued jobs; the account stays, so nothing is reset."""
    ledger.lock(session, dataset.id)
    row = _find(session, dataset, analyst)
    if row is None or row.revoked_at is not None:
        raise NotFound(f"{analyst.name} has no grant for {dataset.name}")
    row.revoked_at = at
    withdrawn = withdraw(session, dataset.id, grant_id=row.id, actor=actor, at=at)
    audit.record(session, "revoke-grant", actor=actor, at=at, dataset_id=dataset.id, analyst=analyst.name)
    return withdrawn


def page(
    session: Session, dataset: Dataset, *, after: str, limit: int | None
) -> list[tuple[Grant, Principal]]:
    """Return the grants of a dataset, by the analysts' names."""
    query = (
        select(Grant, Principal)
        .join(Principal, Grant.principal_id == Principal.id)
        .where(Grant.dataset_id == dataset.id, Principal.name > after)
        .order_by(Principal.name)
        .limit(limit)
    )
    return [(row, principal) for row, principal in session.execute(query)]


def find(session: Session, dataset_id: int, analyst_id: int) -> Grant | None:
    """Return the grant of an analyst, revoked or ended ones included, without a lock."""
    query = select(Grant).where(Grant.dataset_id == dataset_id, Grant.principal_id == analyst_id)
    return session.scalars(query).one_or_none()


def _find(session: Session, dataset: Dataset, analyst: Principal) -> Grant | None:
    query = select(Grant).where(Grant.dataset_id == dataset.id, Grant.principal_id == analyst.id)
    # FOR NO KEY UPDATE: a submission holds a key share on the grant while it waits for the account.
    return session.scalars(query.with_for_update(key_share=True)).one_or_none()
