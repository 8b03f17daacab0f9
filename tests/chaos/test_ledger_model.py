"""A model of the ledger and the queue, a page long, against the real ones in any order of events.

Grants, raises, submissions, claims, lost workers, results, cancellations, withdrawals, and crashes in the
middle of a transaction come as Hypothesis likes. After every step the balances are those of the model, the
chain verifies, and nobody has reserved and spent more than there is.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from sqlalchemy import select
from sqlalchemy.orm import Session

from assurance.chaos.scene import DELTA, Accountant, Scene, plan
from core.privacy import Budget
from service import errors, ledger
from service.datasets import grants, lifecycle
from service.datasets.decisions import Decision
from service.jobs import queue
from service.jobs.claims import Claim, Outcome
from service.ledger import accountants, verification
from service.ledger.units import NOTHING, Cost
from service.operations.states import JobState
from service.operations.tables import Dataset, Grant, Job, Result
from service.people import principals
from service.people.authentication import Caller
from tests.support.service import START

LEASE = timedelta(seconds=30)
EPSILONS = ("0.1", "0.25", "0.5")
CAPS = ("0.1", "0.3", "0.5", "1", "2")
TOTALS = ("0.5", "1", "1.5", "2")
BIG_DELTA = "0.01"

amounts = st.sampled_from(EPSILONS)
people = st.integers(0, 1)
#: Both analysts, and the curator, whom no cap limits.
CURATOR = 2
askers = st.integers(0, CURATOR)
# A step in four is cut off before its transaction ends, as by a crash: then nothing may have changed.
crashes = st.integers(0, 3).map(lambda number: number == 3)
picks = st.integers(0, 10**6)


class Crash(Exception):
    """The process is gone before the transaction ends."""


@dataclass
class Account:
    """What the model knows of an account."""

    total: Cost
    reserved: Cost = NOTHING
    spent: Cost = NOTHING

    @property
    def left(self) -> Cost:
        used = self.reserved + self.spent
        return Cost(self.total.loss - used.loss, self.total.delta - used.delta)

    def has_room(self, cost: Cost) -> bool:
        return cost.fits(self.left)


@dataclass
class ModelJob:
    """What the model knows of a job."""

    id: str
    asker: int
    cost: Cost
    rehearsal: bool
    state: str = "queued"
    attempts: int = 0
    expires: Any = None
    #: Claimed by the one worker of this model, and not given back.
    kept: bool = False
    claims: list[Claim] = field(default_factory=list)

    @property
    def lease(self) -> str | None:
        return self.claims[-1].lease if self.state == "running" else None


def minus(one: Cost, other: Cost) -> Cost:
    return Cost(one.loss - other.loss, one.delta - other.delta)


class Books(RuleBasedStateMachine):
    """The real books and the model's, side by side; subclasses say on which database and accountant."""

    scene: ClassVar[Scene]
    accountant: ClassVar[Accountant]
    #: How often things happened, so that a walk in which nothing happens is not taken for a test.
    happened: ClassVar[Counter[str]]

    @initialize(
        total=st.sampled_from(TOTALS),
        caps=st.tuples(st.sampled_from(CAPS), st.sampled_from(CAPS)),
        first=st.lists(st.tuples(people, amounts), min_size=2, max_size=5),
        claims=st.lists(st.booleans(), min_size=1, max_size=4),
    )
    def open(
        self, total: str, caps: tuple[str, str], first: list[tuple[int, str]], claims: list[bool]
    ) -> None:
        """Begin in the middle of things: both analysts have a cap and jobs, some claimed, some lost since."""
        self.now = START
        self.name = self.scene.dataset(self.accountant, total, delta=BIG_DELTA, at=self.now)
        with self.scene.database.read() as session:
            self.dataset_id = session.scalars(select(Dataset.id).where(Dataset.name == self.name)).one()
        self.declared = total
        self.state = "sealed"
        self.whole = Account(self.of(total))
        self.caps: dict[int, Account] = {}
        self.revoked: set[int] = set()
        self.jobs: list[ModelJob] = []
        self.keys: dict[str, ModelJob] = {}
        for who, cap in enumerate(caps):
            self.grant(who, cap, crash=False)
        for who, epsilon in first:
            self.submit(who, epsilon, rehearsal=0, key=0, crash=False)
        for lost in claims:
            self.claim(crash=False, understood=0)
            self.time_passes(31 if lost else 1)

    def of(self, epsilon: str) -> Cost:
        return accountants.get(self.accountant, Budget.of(epsilon, BIG_DELTA)).total

    def cost_of(self, epsilon: str) -> Cost:
        return accountants.get(self.accountant, Budget.of(epsilon, BIG_DELTA)).cost(plan(epsilon))

    @contextlib.contextmanager
    def transaction(self, crash: bool) -> Iterator[Session]:
        with contextlib.suppress(Crash), self.scene.database.write() as session:
            yield session
            if crash:
                session.flush()
                raise Crash

    def dataset(self, session: Session) -> Dataset:
        return session.get_one(Dataset, self.dataset_id)

    def paying(self, job: ModelJob) -> tuple[Account, ...]:
        return (self.whole,) if job.asker == CURATOR else (self.whole, self.caps[job.asker])

    # --- the curator ---

    @rule(who=people, cap=st.sampled_from(CAPS), crash=crashes)
    def grant(self, who: int, cap: str, crash: bool) -> None:
        new, held = self.of(cap), self.caps.get(who)
        fits = held is None or (held.reserved + held.spent).fits(new)
        refusal: type[errors.ServiceError] | None = None if fits else errors.InvalidRequest
        if self.state == "retired":
            refusal = errors.Retired
        with expected(refusal), self.transaction(crash) as session:
            person = principals.find(session, self.scene.analysts[who].name)
            budget = Budget.of(cap, BIG_DELTA)
            grants.grant(session, self.dataset(session), person, budget, by=Decision("carla", self.now))
        if refusal is None and not crash:
            self.revoked.discard(who)
            self.caps.setdefault(who, Account(new)).total = new

    @precondition(lambda self: self.caps)
    @rule(who=people, crash=crashes)
    def revoke(self, who: int, crash: bool) -> None:
        standing = who in self.caps and who not in self.revoked
        with expected(None if standing else errors.NotFound), self.transaction(crash) as session:
            person = principals.find(session, self.scene.analysts[who].name)
            grants.revoke(session, self.dataset(session), person, actor="carla", at=self.now)
        if standing and not crash:
            self.revoked.add(who)
            self.withdraw(who)

    @rule(total=st.sampled_from(TOTALS), crash=crashes)
    def raise_total(self, total: str, crash: bool) -> None:
        refusal: type[errors.ServiceError] | None = None
        if float(total) < float(self.declared):
            refusal = errors.InvalidRequest
        if self.state == "retired":
            refusal = errors.Retired
        with expected(refusal), self.transaction(crash) as session:
            budget = Budget.of(total, BIG_DELTA)
            lifecycle.raise_budget(session, self.dataset(session), budget, by=Decision("carla", self.now))
        if refusal is None and not crash:
            self.declared, self.whole.total = total, self.of(total)

    @precondition(lambda self: len(self.jobs) > 4)
    @rule(crash=crashes, sure=st.integers(0, 5))
    def retire(self, crash: bool, sure: int) -> None:
        if sure < 5:  # for good, so seldom
            return
        with self.transaction(crash) as session:
            lifecycle.retire(session, self.dataset(session), actor="carla", at=self.now)
        if not crash:
            self.state = "retired"
            self.withdraw(None)

    def exhausted(self, who: int, cost: Cost) -> type[errors.ServiceError] | None:
        """The refusal for the first of the accounts that have no room, if any has none."""
        if not self.whole.has_room(cost):
            return errors.BudgetExhausted
        return errors.CapExhausted if who != CURATOR and not self.caps[who].has_room(cost) else None

    def withdraw(self, who: int | None) -> None:
        for job in self.jobs:
            if job.state == "queued" and who in (None, job.asker):
                self.settle(job, "cancelled", charge=False)

    # --- whoever asks ---

    @precondition(lambda self: self.caps)
    @rule(who=askers, epsilon=amounts, rehearsal=st.integers(0, 6), key=st.integers(0, 5), crash=crashes)
    def submit(self, who: int, epsilon: str, rehearsal: int, key: int, crash: bool) -> None:
        free = rehearsal == 6
        epsilon = "0.1" if free else epsilon
        text = f"{self.name}-{key}-{who}" if key > 3 else None
        cost = NOTHING if free else self.cost_of(epsilon)
        earlier = self.keys.get(text or "")
        refusal: type[errors.ServiceError] | None = None
        if who != CURATOR and (who not in self.caps or who in self.revoked):
            refusal = errors.NotFound
        elif earlier is not None:
            same = (earlier.cost, earlier.rehearsal) == (cost, free)
            refusal = None if same else errors.IdempotencyMismatch
        elif self.state == "retired":
            refusal = errors.Retired
        else:
            refusal = self.exhausted(who, cost)
        made = None
        with expected(refusal), self.transaction(crash) as session:
            made = self.scene.submit(
                session,
                self.name,
                epsilon,
                who=self.asker(who),
                rehearsal=free,
                key=text,
                at=self.now,
            )
        if refusal is not None or crash:
            self.happened["refused or cut off"] += 1
            return
        assert made is not None
        if earlier is not None:
            assert made.replayed
            assert made.job.id == earlier.id
            return
        job = ModelJob(made.job.id, who, cost, free)
        self.jobs.append(job)
        self.happened["submitted" if who != CURATOR else "submitted by the curator"] += 1
        if text:
            self.keys[text] = job
        for account in self.paying(job):
            account.reserved += cost

    def asker(self, who: int) -> Caller:
        return self.scene.carla if who == CURATOR else self.scene.analysts[who]

    @precondition(lambda self: self.jobs)
    @rule(pick=picks, crash=crashes)
    def cancel(self, pick: int, crash: bool) -> None:
        job = self.jobs[pick % len(self.jobs)]
        possible = job.state == "queued"
        with self.transaction(crash) as session:
            row = session.scalars(select(Job).where(Job.id == job.id)).one()
            assert queue.cancel(session, row, actor="ada", now=self.now) == possible
        if possible and not crash:
            self.settle(job, "cancelled", charge=False)

    # --- workers ---

    @rule(crash=crashes, understood=st.integers(0, 9))
    def claim(self, crash: bool, understood: int) -> None:
        held, job = None, self.next_job()
        with self.transaction(crash) as session:
            held = queue.claim(
                session, worker="w", now=self.now, lease=LEASE, can_run=lambda *_: understood < 9
            )
        if crash or job is None:
            assert crash or held is None
            return
        if job.state == "running" and job.attempts >= queue.MOST_ATTEMPTS:
            assert held is None
            job.state = "failed"
        elif job.state == "queued" and understood == 9:
            assert held is None
            self.settle(job, "failed", charge=False)
        else:
            assert held is not None
            assert held.job_id == job.id
            if job.state == "queued":
                self.settle(job, "running", charge=True)
            job.attempts += 1
            self.happened["claimed" if job.attempts == 1 else "taken over"] += 1
            job.expires = self.now + LEASE
            job.kept = True
            job.claims.append(held)

    def next_job(self) -> ModelJob | None:
        """Whose turn it is: the worker's own lost jobs, jobs before rehearsals, least recent work, oldest."""
        with self.scene.database.read() as session:
            claimed = session.scalars(select(Job).where(Job.claimed_at.is_not(None))).all()
        recent: Counter[int] = Counter()
        for each in claimed:
            assert each.claimed_at is not None
            if each.claimed_at > self.now - timedelta(minutes=10):
                recent[each.principal_id] += each.operations
        waiting = [job for job in self.jobs if self.may_be_claimed(job)]
        turns = {id(job): (not job.kept, job.rehearsal, recent[self.asker(job.asker).id]) for job in waiting}
        return min(waiting, key=lambda job: turns[id(job)], default=None)

    def may_be_claimed(self, job: ModelJob) -> bool:
        return job.state == "queued" or (job.state == "running" and job.expires < self.now)

    @rule(seconds=st.sampled_from((1, 20, 31)))
    def time_passes(self, seconds: int) -> None:
        """A worker that is not heard of for longer than its lease is lost."""
        self.now += timedelta(seconds=seconds)

    @precondition(lambda self: any(job.claims for job in self.jobs))
    @rule(
        pick=picks, which=picks, crash=crashes, act=st.sampled_from(("beat", "give back", "finish", "fail"))
    )
    def worker_speaks(self, pick: int, which: int, crash: bool, act: str) -> None:
        """Whoever claimed a job, lately or long ago: only the newest lease counts."""
        claimed = [job for job in self.jobs if job.claims]
        job = claimed[pick % len(claimed)]
        held = job.claims[which % len(job.claims)]
        stands = job.lease == held.lease
        with self.transaction(crash) as session:
            if act == "beat":
                done = queue.beat(session, held, now=self.now, lease=LEASE)
            elif act == "give back":
                done = queue.give_back(session, held, now=self.now)
            else:
                result = Outcome({"centres": []}, {"digest": ""}) if act == "finish" else None
                done = queue.finish(session, held, now=self.now, result=result)
            assert done == stands
        if crash or not stands:
            return
        if act == "beat":
            job.expires = self.now + LEASE
        elif act == "give back":
            job.kept = False
            job.attempts -= 1
            job.expires = self.now - timedelta(seconds=1)
        else:
            job.state = "succeeded" if act == "finish" else "failed"

    def settle(self, job: ModelJob, state: str, *, charge: bool) -> None:
        job.state = state
        for account in self.paying(job):
            account.reserved = minus(account.reserved, job.cost)
            if charge:
                account.spent += job.cost

    # --- what must hold after every step ---

    @invariant()
    def books_are_those_of_the_model(self) -> None:
        if not hasattr(self, "whole"):
            return
        with self.scene.database.read() as session:
            rows = {row.principal_id: row.id for row in session.scalars(select(Grant)) if self.owns(row)}
            ids = {who: rows[self.scene.analysts[who].id] for who in self.caps}
            accounts = [(self.whole, None), *((held, ids[who]) for who, held in self.caps.items())]
            for model, grant_id in accounts:
                real = ledger.balance(ledger.find(session, self.dataset_id, grant_id))
                assert real == ledger.Balance(model.total, model.reserved, model.spent)
                assert (real.reserved + real.spent).fits(real.total)
            assert verification.verify(session, self.dataset_id).faults == []
            found = session.execute(select(Job.id, Job.state).where(Job.dataset_id == self.dataset_id))
            assert {row.id: row.state for row in found} == {job.id: job.state for job in self.jobs}
            query = select(Result.job_id).join(Job, Job.id == Result.job_id)
            released = session.scalars(query.where(Job.dataset_id == self.dataset_id)).all()
            assert sorted(released) == sorted(job.id for job in self.jobs if job.state == "succeeded")

    def owns(self, row: Grant) -> bool:
        return row.dataset_id == self.dataset_id

    def teardown(self) -> None:
        """Leave no job behind that the next example's workers would claim."""
        if not hasattr(self, "whole"):
            return
        with self.scene.database.write() as session:
            for row in session.scalars(select(Job).where(Job.state.in_(("queued", "running")))):
                row.state = JobState.CANCELLED


@contextlib.contextmanager
def expected(refusal: type[errors.ServiceError] | None) -> Iterator[None]:
    """The step is refused in exactly this way, or not at all."""
    if refusal is None:
        yield
        return
    with pytest.raises(refusal):
        yield


@pytest.mark.parametrize("accountant", accountants.names())
@pytest.mark.both_databases
def test_books_follow_the_model_in_any_order_of_events(
    database_url: str, accountant: str, tmp_path: Path
) -> None:
    scene = Scene(database_url, tmp_path)
    happened: Counter[str] = Counter()
    machine = type("Books", (Books,), {"scene": scene, "accountant": accountant, "happened": happened})
    default = hypothesis_settings.default
    assert default is not None
    examples = 12 if default.max_examples <= 100 else 60
    run_machine(machine, settings=hypothesis_settings(max_examples=examples, stateful_step_count=30))
    assert happened["submitted"] >= 20
    assert happened["submitted by the curator"] >= 2
    assert happened["refused or cut off"] >= 3
    assert happened["claimed"] >= 10
    assert happened["taken over"] >= 3
    scene.close()


def test_a_job_of_the_model_costs_something_under_both_accountants() -> None:
    for accountant in accountants.names():
        assert accountants.get(accountant, Budget.of("1", DELTA)).cost(plan("0.1")).loss > 0
    assert plan("0.1").budget == Budget.of("0.1", DELTA)
