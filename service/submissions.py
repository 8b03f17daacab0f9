"""How jobs are submitted: those that arrive at the same moment are reserved and enqueued in one transaction.

Each is judged by itself, in the order of arrival, against balances that already hold what the ones before it
reserved; a refused one changes nothing for the others. Both accounts of each are locked meanwhile, what is
reserved is what was planned, and every reservation is a link of the ledger's chain.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import Table, bindparam, func, select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.plan import Plan, Work
from service import accounting, datasets, faults, ledger, metrics, queue
from service.amounts import NOTHING, Cost
from service.auth import Caller
from service.db import Written, padded
from service.errors import (
    BudgetExhausted,
    CapExhausted,
    IdempotencyMismatch,
    NotFound,
    RateLimited,
    ServiceError,
    TooManyQueued,
)
from service.schemas.work import JobBody
from service.tables import Dataset, Grant, Job, Principal

__all__ = [
    "KeyTaken",
    "Limits",
    "Order",
    "Planned",
    "Submission",
    "earlier",
    "mismatch",
    "same_request",
    "submit",
    "submit_together",
]

_MINUTE = timedelta(minutes=1)
_JOBS = cast(Table, Job.__table__)
# Statements that every submission needs, put together once.
_LOCK_PEOPLE = (
    select(Principal.id)
    .where(Principal.id.in_(bindparam("people", expanding=True)))
    .order_by(Principal.id)
    .with_for_update(key_share=True)
)
_GRANTS = (
    select(
        Grant.id,
        Grant.revoked_at,
        Grant.delta_units,
        Dataset.state,
        Dataset.delta_units.label("whole_delta_units"),
    )
    .join(Dataset, Grant.dataset_id == Dataset.id)
    .where(Grant.id.in_(bindparam("grants", expanding=True)))
)
_EARLIER = select(Job.number).where(
    tuple_(Job.principal_id, Job.idempotency_key).in_(bindparam("keys", expanding=True))
)


@dataclass(frozen=True)
class Limits:
    """What one analyst may ask for."""

    work: Work
    queued_jobs: int
    rehearsals_per_minute: int


@dataclass(frozen=True)
class Planned:
    """A plan with the forms of it that are stored."""

    plan: Plan
    stored: Written
    digest: str

    @classmethod
    def of(cls, plan: Plan) -> Planned:
        """A plan and its forms."""
        return cls(plan, Written(plan.to_json()), plan.digest)


@dataclass(frozen=True)
class Order:
    """A job that an analyst wants: who, on what, how it was planned, and since when."""

    caller: Caller
    body: JobBody
    #: As it was when the job was planned; of its facts only the state and the delta can change.
    dataset: Dataset
    grant_id: int
    cost: Cost
    #: The row of the job, whole: whatever can be done before accounts are locked is done.
    row: dict[str, Any]

    @classmethod
    def of(
        cls,
        caller: Caller,
        body: JobBody,
        planned: Planned,
        *,
        key: str | None,
        dataset: Dataset,
        grant_id: int,
        now: datetime,
    ) -> Order:
        """An order of what was planned."""
        # The accountant of a dataset never changes.
        cost = NOTHING if body.rehearsal else accounting.cost_of(dataset.accountant, planned.plan)
        row = {
            "id": str(uuid.uuid4()),
            "dataset_id": dataset.id,
            "principal_id": caller.id,
            "grant_id": grant_id,
            "rehearsal": body.rehearsal,
            "request": body.model_dump(mode="json", exclude_none=True),
            "plan": planned.stored,
            "plan_digest": planned.digest,
            "loss_units": cost.loss,
            "delta_units": cost.delta,
            "state": "queued",
            "reason": "",
            "attempts": 0,
            "queued_at": now,
            "progress": {},
            "idempotency_key": key,
            "request_digest": _digest(body),
        }
        return cls(caller, body, dataset, grant_id, cost, row)

    @property
    def key(self) -> tuple[int, str | None]:
        """What no two jobs have in common, unless it is None."""
        return self.caller.id, self.row["idempotency_key"]


@dataclass(frozen=True)
class Submission:
    """A job that was accepted, now or when the same Idempotency-Key first came."""

    caller: Caller
    job: Job
    dataset: Dataset
    replayed: bool


class KeyTaken(Exception):
    """An Idempotency-Key of these orders was used at the same moment for another dataset; all are undone."""


def submit(
    session: Session,
    caller: Caller,
    body: JobBody,
    plan: Plan,
    *,
    key: str | None,
    limits: Limits,
    now: datetime,
) -> Submission:
    """Reserve and enqueue one job, in the caller's one transaction, or raise why not."""
    dataset, grant = datasets.find(session, body.dataset, caller)
    assert grant is not None
    planned = Planned.of(plan)
    order = Order.of(caller, body, planned, key=key, dataset=dataset, grant_id=grant.id, now=now)
    try:
        (answer,) = submit_together(session, [order], limits)
    except KeyTaken as error:
        raise mismatch() from error
    if isinstance(answer, ServiceError):
        raise answer
    return answer


def submit_together(
    session: Session, orders: Sequence[Order], limits: Limits
) -> list[Submission | ServiceError]:
    """Reserve and enqueue orders for one dataset in the caller's one transaction; an answer for each."""
    bench = _Bench(session, orders, limits)
    answers = [bench.judge(order) for order in orders]
    ledger.store(session, bench.accounts.values(), bench.entries)
    faults.reach("submit.reserved")
    if bench.made:
        try:
            session.connection().execute(_JOBS.insert(), bench.made)
        except IntegrityError as error:
            raise KeyTaken from error
    refusals = [answer for answer in answers if isinstance(answer, ServiceError)]
    metrics.refused(session, Counter(refusal.slug for refusal in refusals))
    return answers


class _Bench:
    """What orders for one dataset are judged by: locked accounts, and rows read under the lock."""

    def __init__(self, session: Session, orders: Sequence[Order], limits: Limits):
        (dataset_id,) = {order.dataset.id for order in orders}
        grant_ids = {"grants": padded(sorted({order.grant_id for order in orders}))}
        people = {"people": padded(sorted({order.caller.id for order in orders}))}
        self._session, self._limits = session, limits
        connection = session.connection()
        # One submission of an analyst at a time, whatever the dataset: limits and keys count across datasets.
        connection.execute(_LOCK_PEOPLE, people)
        #: The dataset's account under None, and the accounts of the grants.
        self.accounts = ledger.lock_several(session, dataset_id, grant_ids["grants"])
        self._grants = {row.id: row for row in connection.execute(_GRANTS, grant_ids)}
        self._dataset = orders[0].dataset
        now = next(iter(self._grants.values()))
        if (now.state, now.whole_delta_units) != (self._dataset.state, self._dataset.delta_units):
            self._dataset = session.get_one(Dataset, self._dataset.id, populate_existing=True)
        self._earlier = earlier(session, [order.key for order in orders])
        self._unfinished = queue.unfinished(session, people["people"])
        self._rehearsals: dict[int, int] = {}
        #: What is to be written: the entries of the ledger in order, and the rows of the jobs.
        self.entries: list[dict[str, Any]] = []
        self.made: list[dict[str, Any]] = []

    def judge(self, order: Order) -> Submission | ServiceError:
        """Accept an order, with its cost reserved, or say why not."""
        try:
            return self._accept(order)
        except ServiceError as refusal:
            return refusal

    def _accept(self, order: Order) -> Submission:
        body, grant = order.body, self._grants[order.grant_id]
        if grant.revoked_at is not None:
            raise NotFound(f"there is no dataset named {body.dataset}, or you have no grant for it")
        before = same_request(self._earlier.get(order.key), body)
        if before is not None:
            return Submission(order.caller, before, self._dataset, replayed=True)
        datasets.require_sealed(self._dataset)
        self._limit(order)
        if not body.rehearsal:
            self._reserve(order)
        self.made.append(order.row)
        job = Job(**order.row)
        self._unfinished[order.caller.id] = self._unfinished.get(order.caller.id, 0) + 1
        if order.key[1] is not None:
            self._earlier[order.key] = job
        return Submission(order.caller, job, self._dataset, replayed=False)

    def _reserve(self, order: Order) -> None:
        accounts = ledger.Accounts(self.accounts[None], self.accounts[order.grant_id])
        job_id, now = order.row["id"], order.row["queued_at"]
        try:
            entry = ledger.set_aside(accounts, job_id, order.cost, actor=order.caller.name, at=now)
        except ledger.Overdrawn as refusal:
            delta_units = self._grants[order.grant_id].delta_units
            raise _refusal(self._dataset, delta_units, refusal) from refusal
        self.entries.append(entry)

    def _limit(self, order: Order) -> None:
        most = self._limits.queued_jobs
        if self._unfinished.get(order.caller.id, 0) >= most:
            raise TooManyQueued(
                f"you have {most} unfinished jobs; wait for one to end, or cancel one",
                headers={"Retry-After": "5"},
                limit=most,
            )
        if not order.body.rehearsal:
            return
        if order.caller.id not in self._rehearsals:
            self._rehearsals[order.caller.id] = _recent_rehearsals(self._session, order)
        self._rehearsals[order.caller.id] += 1
        most = self._limits.rehearsals_per_minute
        if self._rehearsals[order.caller.id] > most:
            raise RateLimited(
                f"at most {most} rehearsals a minute; wait a little",
                headers={"Retry-After": "60"},
                limit=most,
            )


def _recent_rehearsals(session: Session, order: Order) -> int:
    with session.no_autoflush:
        found = session.scalar(
            select(func.count()).where(
                Job.principal_id == order.caller.id,
                Job.rehearsal.is_(True),
                Job.queued_at > order.row["queued_at"] - _MINUTE,
            )
        )
    return found or 0


def earlier(session: Session, wanted: Sequence[tuple[int, str | None]]) -> dict[tuple[int, str | None], Job]:
    """The jobs that were made with these Idempotency-Keys, by principal and key."""
    keys = [each for each in wanted if each[1] is not None]
    if not keys:
        return {}
    numbers = session.connection().execute(_EARLIER, {"keys": padded(keys)}).scalars().all()
    if not numbers:
        return {}
    found = session.scalars(select(Job).where(Job.number.in_(numbers)))
    return {(job.principal_id, job.idempotency_key): job for job in found}


def same_request(job: Job | None, body: JobBody) -> Job | None:
    """The job that an Idempotency-Key made before, if its body was the same."""
    if job is not None and job.request_digest != _digest(body):
        raise mismatch()
    return job


def mismatch() -> IdempotencyMismatch:
    """What to tell whoever used an Idempotency-Key for two different requests."""
    return IdempotencyMismatch("this Idempotency-Key was used with another body; use a new one")


def _refusal(
    dataset: Dataset, cap_delta_units: int, refusal: ledger.Overdrawn
) -> BudgetExhausted | CapExhausted:
    held, accountant = refusal.balance, dataset.accountant
    delta_units = dataset.delta_units if refusal.whose == "dataset" else cap_delta_units
    numbers: dict[str, Any] = {
        "requested": accounting.amount(accountant, refusal.requested, delta_units),
        "total": accounting.amount(accountant, held.total, delta_units),
        "spent": accounting.amount(accountant, held.spent, delta_units),
        "reserved": accounting.amount(accountant, held.reserved, delta_units),
        "remaining": accounting.amount(accountant, held.remaining, delta_units),
    }
    asked, left = (_words(numbers[name]) for name in ("requested", "remaining"))
    if refusal.whose == "dataset":
        return BudgetExhausted(f"{dataset.name} has {left} left; this asks for {asked}", **numbers)
    return CapExhausted(f"your cap on {dataset.name} has {left} left; this asks for {asked}", **numbers)


def _words(amount: dict[str, str]) -> str:
    first = "rho" if "rho" in amount else "epsilon"
    return f"{first} {amount[first]} and delta {amount['delta']}"


def _digest(body: JobBody) -> str:
    text = json.dumps(body.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
