"""Requests for access: somebody asks for a grant or a larger one, and the owner of the dataset decides.

```text
            ask                grant, within what one curator may allow
  (nothing) ----> open ---------------------------------------------------> granted
      |             |  grant, of more                 second                  ^
      |             +---------------> proposed -------------------------------+
      |  propose (the owner)             ^
      +----------------------------------+

  open, proposed: decline (the owner; once proposed, a second curator too) ----> declined
  open, proposed: withdraw (who asked) -----------------------------------> withdrawn
```

A change above what one curator may allow is carried out when a second one agrees. Both go through
`grants.grant` and `lifecycle.raise_budget`, as every other change of a grant or a total.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select, true
from sqlalchemy.orm import Session

from core.privacy import Budget
from service import ledger
from service.datasets import access, grants, lifecycle
from service.datasets.access import Right
from service.datasets.catalogue import listings
from service.datasets.decisions import Decision
from service.datasets.periods import stored
from service.datasets.wire import WantedBody
from service.errors import AlreadyDecided, Forbidden, InvalidRequest, NotFound, Retired
from service.ledger import accountants
from service.operations import audit
from service.operations.states import DatasetState, RequestState, Role
from service.operations.tables import AccessRequest, Dataset, Grant, Principal
from service.people import principals
from service.people.authentication import Caller, Reached

_DAY = timedelta(days=1)
_PENDING = (RequestState.OPEN, RequestState.PROPOSED)
#: In which states a request can be acted on, by act.
_ACTS = {
    "grant": (RequestState.OPEN,),
    "second": (RequestState.PROPOSED,),
    "decline": _PENDING,
    "withdraw": _PENDING,
}


@dataclass(frozen=True)
class Wanted:
    """What is asked for: a grant of an analyst, or a total."""

    #: Amounts and terms; what is left out stays as it is.
    terms: dict[str, Any]
    #: Whose grant; None: a total.
    analyst: Principal | None
    #: The period whose total; None: the dataset's.
    period: str | None = None

    def in_words(self) -> str:
        """Return what is asked for as part of a sentence."""
        of_period = f" of the period {self.period}" if self.period else ""
        return f"{in_words(self.terms, of_grant=self.analyst is not None)}{of_period}"


def in_words(terms: Mapping[str, Any], *, of_grant: bool) -> str:
    """Return amounts and terms as part of a sentence."""
    amounts = ", ".join(
        f"{name} {terms[name]}" for name in ("epsilon", "delta") if terms.get(name) is not None
    )
    parts = [f"a {'cap' if of_grant else 'total'} of {amounts}" if amounts else "the cap as it is"]
    if terms.get("kinds"):
        parts.append(f"for {' and '.join(terms['kinds'])}")
    if terms.get("permit"):
        parts.append(f"by permit {terms['permit']}")
    if "ends_at" in terms:
        parts.append(f"until {terms['ends_at']}" if terms["ends_at"] else "without an end")
    return ", ".join(parts)


def requestable(session: Session, name: str, caller: Caller) -> Dataset:
    """Return a dataset that the caller may ask for; NotFound for one that they must not know of.

    Analysts know of those in the catalogue. Somebody whose grant has ended knows of it, other than somebody
    whose grant was withdrawn.
    """
    ended = select(Dataset).join(Grant, Grant.dataset_id == Dataset.id)
    ended = ended.where(Dataset.name == name, Grant.principal_id == caller.id, Grant.revoked_at.is_(None))
    found = session.scalars(ended).one_or_none() if caller.reaches(name) else None
    if found is None and caller.role == Role.ANALYST:
        found = listings.listed(session, name, caller)
    if found is None:
        return access.find(session, name, caller).dataset
    caller.reached.append(Reached(found.id))
    return found


def ask(
    session: Session,
    dataset: Dataset,
    wanted: Wanted,
    plan: dict[str, Any] | None,
    *,
    caller: Caller,
    at: datetime,
    most: int,
) -> AccessRequest:
    """Ask the owner of a dataset for a grant of one's own, or a larger one; the owner proposes to a second
    curator what is too much for one.

    `most`: requests that one person may have open or make in a day.
    """
    _require_few(session, caller, most, at)
    _lock(session, dataset)
    if dataset.state == DatasetState.RETIRED:
        raise Retired(f"{dataset.name} is retired; nobody can be granted anything on it")
    amount_of(session, dataset, wanted)
    ends_at = WantedBody.model_validate(wanted.terms).ends_at
    if ends_at is not None and ends_at <= at:
        raise InvalidRequest("the end that you ask for is over; name one that is to come, or none")
    row = AccessRequest(
        id=str(uuid.uuid4()),
        dataset_id=dataset.id,
        asked_by=caller.id,
        analyst_id=None if wanted.analyst is None else wanted.analyst.id,
        period=wanted.period,
        asked_at=at,
        asked=wanted.terms,
        plan=plan,
        state=RequestState.OPEN,
    )
    session.add(row)
    _record(session, "request", row, caller.name, at)
    session.flush()
    return row


def propose(session: Session, row: AccessRequest, *, caller: Caller, by: Decision) -> None:
    """Agree, as the owner, to what one has just asked for oneself; it then waits for a second curator."""
    dataset = session.get_one(Dataset, row.dataset_id)
    wanted = _wanted(session, row)
    if _may_decide(session, dataset, wanted, by):
        raise InvalidRequest(
            "this needs no second curator", status=409, next_step="Grant or raise it without a request."
        )
    _agree(session, dataset, row, wanted, caller, by)


def decide(
    session: Session,
    row: AccessRequest,
    changes: Mapping[str, Any],
    reason: str,
    *,
    caller: Caller,
    by: Decision,
) -> None:
    """Grant a request as its dataset's owner, all of it or with changes.

    More than the owner may allow alone then waits for a second curator. AlreadyDecided unless it is open.
    """
    dataset = _lock_both(session, row, "grant", caller)
    wanted = _wanted(session, row, changes)
    row.reason = reason
    if _may_decide(session, dataset, wanted, by):
        _carry_out(session, dataset, wanted, replace(by, request=row.id))
        row.state, row.decided = RequestState.GRANTED, _agreed(session, dataset, wanted)
        row.decided_by, row.decided_at = caller.id, by.at
        session.flush()
    else:
        _agree(session, dataset, row, wanted, caller, by)


def second(session: Session, row: AccessRequest, *, caller: Caller, by: Decision) -> None:
    """Agree as the second curator to what the owner proposes, which is then done."""
    dataset = _lock_both(session, row, "second", caller)
    owner = session.get_one(Principal, row.decided_by)
    wanted = Wanted(row.decided or {}, *_about(session, row))
    done_by = Decision(owner.name, by.at, by.alone, request=row.id, second=caller.name)
    _carry_out(session, dataset, wanted, done_by)
    row.state, row.seconded_by, row.seconded_at = RequestState.GRANTED, caller.id, by.at
    _record(session, "second", row, caller.name, by.at)
    session.flush()


def decline(session: Session, row: AccessRequest, reason: str, *, caller: Caller, at: datetime) -> None:
    """Decline a request, with a word of reason."""
    _lock_both(session, row, "decline", caller)
    row.state, row.reason = RequestState.DECLINED, reason
    row.decided_by, row.decided_at = caller.id, at
    _record(session, "decline-request", row, caller.name, at, reason=reason)
    session.flush()


def withdraw(session: Session, row: AccessRequest, *, caller: Caller, at: datetime) -> None:
    """Withdraw a request of one's own."""
    _lock_both(session, row, "withdraw", caller)
    row.state = RequestState.WITHDRAWN
    _record(session, "withdraw-request", row, caller.name, at)
    session.flush()


def find(session: Session, request_id: str, caller: Caller) -> AccessRequest:
    """Return a request that the caller may see, or raise NotFound."""
    found = session.scalars(_visible(caller).where(AccessRequest.id == request_id)).one_or_none()
    if found is None:
        raise NotFound("there is no such request, or it is not yours")
    caller.reached.append(Reached(found.dataset_id))
    return found


def page(
    session: Session, caller: Caller, *conditions: ColumnElement[bool], before: str | None, limit: int
) -> list[AccessRequest]:
    """Return requests that the caller may see, newest first."""
    query = _visible(caller).where(*conditions)
    if before is not None:
        earlier = select(AccessRequest.number).where(AccessRequest.id == before).scalar_subquery()
        query = query.where(AccessRequest.number < earlier)
    return list(session.scalars(query.order_by(AccessRequest.number.desc()).limit(limit)))


def waiting_for(caller: Caller) -> ColumnElement[bool]:
    """Return the condition on requests that wait for a curator to decide; for an analyst, on pending ones."""
    if not caller.is_curator:
        return AccessRequest.state.in_(_PENDING)
    open_here = (AccessRequest.state == RequestState.OPEN) & (Dataset.owner_id == caller.id)
    to_second = (AccessRequest.state == RequestState.PROPOSED) & (AccessRequest.decided_by != caller.id)
    return open_here | to_second


def acts(session: Session, row: AccessRequest, caller: Caller) -> list[str]:
    """Return what the caller may do with a request now."""
    return [act for act in _ACTS if row.state in _ACTS[act] and _refusal(session, row, act, caller) is None]


def amount_of(session: Session, dataset: Dataset, wanted: Wanted) -> Budget:
    """Return the cap or the total that is asked for; InvalidRequest unless it can be granted as such."""
    terms, present = wanted.terms, _present(session, dataset, wanted)
    epsilon, delta = terms.get("epsilon"), terms.get("delta")
    if epsilon is None and present is None:
        raise InvalidRequest(
            "a new grant needs an epsilon: ask for the most that may be spent",
            errors=[{"where": "epsilon", "problem": "must be given"}],
        )
    if present is not None:
        epsilon = present.epsilon_text if epsilon is None else epsilon
        delta = present.delta_text if delta is None else delta
    assert epsilon is not None
    budget = Budget.of(epsilon, delta or 0)
    accountants.get(dataset.accountant, budget).total  # noqa: B018  refuses what is not supported
    return budget


def _present(session: Session, dataset: Dataset, wanted: Wanted) -> Budget | None:
    declared: Dataset | Grant | Any = dataset
    if wanted.analyst is not None:
        declared = grants.find(session, dataset.id, wanted.analyst.id)
    else:
        period = None if wanted.period is None else _period(session, dataset, wanted.period)
        lifecycle.require_own_total(dataset, period)
        declared = period or dataset
    return None if declared is None else Budget(declared.epsilon_units, declared.delta_units)


def _period(session: Session, dataset: Dataset, label: str) -> Any:
    owner = Caller(dataset.owner_id, "", Role.CURATOR)
    return stored.find_sealed(session, Right(owner, dataset), label)


def _may_decide(session: Session, dataset: Dataset, wanted: Wanted, by: Decision) -> bool:
    budget = amount_of(session, dataset, wanted)
    if wanted.analyst is None:
        return by.may_allow(budget)
    return grants.may_decide(session, dataset, wanted.analyst, budget, _terms(wanted), by)


def _carry_out(session: Session, dataset: Dataset, wanted: Wanted, by: Decision) -> None:
    budget = amount_of(session, dataset, wanted)
    if wanted.analyst is not None:
        grants.grant(session, dataset, wanted.analyst, budget, terms=_terms(wanted), by=by)
        return
    period = None if wanted.period is None else _period(session, dataset, wanted.period)
    lifecycle.raise_budget(session, dataset, budget, period=period, by=by)


def _agree(
    session: Session, dataset: Dataset, row: AccessRequest, wanted: Wanted, caller: Caller, by: Decision
) -> None:
    """Note what the owner agrees to, which a second curator must agree to as it stands now."""
    row.state, row.decided = RequestState.PROPOSED, _agreed(session, dataset, wanted)
    row.decided_by, row.decided_at = caller.id, by.at
    _record(session, "propose", row, caller.name, by.at)
    session.flush()


def _agreed(session: Session, dataset: Dataset, wanted: Wanted) -> dict[str, Any]:
    """Return the terms with the amounts as they are now, where they were left out."""
    budget = amount_of(session, dataset, wanted)
    return wanted.terms | {"epsilon": budget.epsilon_text, "delta": budget.delta_text}


def _terms(wanted: Wanted) -> dict[str, Any]:
    return WantedBody.model_validate(wanted.terms).terms()


def _about(session: Session, row: AccessRequest) -> tuple[Principal | None, str | None]:
    analyst = None if row.analyst_id is None else session.get_one(Principal, row.analyst_id)
    return analyst, row.period


def _wanted(session: Session, row: AccessRequest, changes: Mapping[str, Any] | None = None) -> Wanted:
    return Wanted({**row.asked, **(changes or {})}, *_about(session, row))


def _record(session: Session, action: str, row: AccessRequest, actor: str, at: datetime, **more: Any) -> None:
    analyst, period = _about(session, row)
    wanted = Wanted(row.decided or row.asked, analyst, period)
    details = {"request": row.id, "wanted": wanted.in_words(), **more}
    if analyst is not None:
        details["analyst"] = analyst.name
    audit.record(session, action, actor=actor, at=at, dataset_id=row.dataset_id, **details)


def _lock(session: Session, dataset: Dataset) -> None:
    ledger.lock(session, dataset.id)
    session.refresh(dataset)


def _lock_both(session: Session, row: AccessRequest, act: str, caller: Caller) -> Dataset:
    """Lock the dataset, then the request; AlreadyDecided or Forbidden unless the caller may act on it."""
    dataset = session.get_one(Dataset, row.dataset_id)
    _lock(session, dataset)
    session.refresh(row, with_for_update=True)
    if row.state not in _ACTS[act]:
        words = {
            RequestState.PROPOSED: "waits for a second curator",
            RequestState.OPEN: "waits for the owner",
        }
        raise AlreadyDecided(
            f"this request {words.get(row.state) or f'was {row.state} already'}", state=row.state
        )
    refusal = _refusal(session, row, act, caller)
    if refusal is not None:
        raise Forbidden(refusal, next_step="Ask somebody who may, or leave it to them.")
    return dataset


def _refusal(session: Session, row: AccessRequest, act: str, caller: Caller) -> str | None:
    """Return why a request is not the caller's to act on in this way; None if it is."""
    owns = session.get_one(Dataset, row.dataset_id).owner_id == caller.id
    asked = row.asked_by == caller.id
    may_second = _why_not_second(session, row, caller)
    reasons: dict[str, str | None] = {
        "grant": None if owns else "only the dataset's owner may grant this",
        "second": may_second,
        "decline": None
        if (owns and not asked) or (row.state == RequestState.PROPOSED and may_second is None)
        else "only the dataset's owner, or a second curator, may decline this",
        "withdraw": None if asked else "only who asked may withdraw this",
    }
    return reasons[act]


def _why_not_second(session: Session, row: AccessRequest, caller: Caller) -> str | None:
    if not caller.is_curator or row.decided_by is None:
        return "only a second curator may do this"
    if caller.id == row.decided_by:
        return "the second curator must be somebody else"
    first, other = (session.get_one(Principal, each) for each in (row.decided_by, caller.id))
    if not principals.are_independent(session, first, other):
        return (
            f"whoever created these accounts could sign in as {first.name} and as {other.name}: the second "
            "curator must have an account of a provider's, or one that an operator created"
        )
    return None


def _require_few(session: Session, caller: Caller, most: int, at: datetime) -> None:
    """Refuse more requests than one person may have open or make in a day."""
    # One request of a person at a time.
    session.scalars(
        select(Principal.id).where(Principal.id == caller.id).with_for_update(key_share=True)
    ).one()
    counted = select(func.count()).where(
        AccessRequest.asked_by == caller.id,
        or_(AccessRequest.state.in_(_PENDING), AccessRequest.asked_at > at - _DAY),
    )
    if session.scalars(counted).one() >= most:
        raise InvalidRequest(
            f"you have {most} requests that are open or were made within a day",
            status=409,
            next_step="Wait for their answers, or withdraw some and ask again tomorrow.",
            limit=most,
        )


def _visible(caller: Caller) -> Select[AccessRequest]:
    """Select the requests that a caller may see: their own, those on their datasets, proposals."""
    own = AccessRequest.asked_by == caller.id
    visible = {
        Role.CURATOR: own
        | (Dataset.owner_id == caller.id)
        | (AccessRequest.state == RequestState.PROPOSED)
        | (AccessRequest.seconded_by == caller.id),
        Role.ANALYST: own,
        Role.AUDITOR: true(),
    }
    query = select(AccessRequest).join(Dataset, Dataset.id == AccessRequest.dataset_id)
    if caller.datasets is not None:
        query = query.where(Dataset.name.in_(caller.datasets))
    return query.where(visible[caller.role])
