"""Contests through HTTP against real API processes, with real worker processes, at the edge of the budget.

A contest is one release of several requests and workers at once. What may come of it is known beforehand: so
many submissions fit and not one more, one key makes one job, a job is cancelled or claimed, one worker gets
it, one result is stored. In between the whole database is looked over.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from sqlalchemy import func, select

from assurance.chaos.invariants import unfinished
from assurance.chaos.racers import Answer, Apis, Clients, Racer, Request
from assurance.chaos.scene import DELTA, Accountant, Scene, plan
from assurance.chaos.stage import Stage, Tally
from core.privacy import EPSILON_UNIT, RHO_UNIT, Budget, rho_to_epsilon
from service import ledger
from service.datasets import grants, lifecycle
from service.datasets.decisions import Decision
from service.ledger import accountants
from service.ledger.units import Cost
from service.operations.clock import SystemClock
from service.operations.tables import Dataset, Grant, Job, LedgerEntry
from service.people import principals
from tests.support.service import table

__all__ = ["CONTESTS", "race"]

EPSILON = "0.05"
RACERS = 3
_AUDIT_EVERY = 105
_FRESH_EVERY = 140
_CSV = table(60)


class Course:
    """One database, its API processes, clients and workers, and the dataset that is raced for."""

    def __init__(self, stage: Stage, scene: Scene, clients: Clients, racers: list[Racer], tally: Tally):
        self.stage, self.scene, self.clients, self.racers, self.tally = stage, scene, clients, racers, tally
        self.accountant: Accountant = "sum"
        self.dataset = self.rich = ""
        self.dataset_id = 0
        self.numbers = itertools.count(1)
        self.starts = itertools.cycle(0.002 * step for step in range(16))
        self.where = ""

    # --- setting a contest up, by the service's own functions ---

    def begin(self, accountant: Accountant) -> None:
        """Other datasets: one with budgets too small for a single job, one with plenty."""
        self.accountant = accountant
        self.rich = self.scene.dataset(accountant, "1000", caps=("1000",))
        self.dataset = self.scene.dataset(accountant, "0.001", caps=("0.001", "0.001"))
        with self.scene.database.read() as session:
            found = session.scalars(select(Dataset).where(Dataset.name == self.dataset)).one()
            self.dataset_id = found.id

    @property
    def cost(self) -> Cost:
        return accountants.get(self.accountant, Budget.of("1", DELTA)).cost(plan(EPSILON))

    def allow(self, fits: int, *, of_cap: bool = False) -> None:
        """Leave room for so many jobs of ada's: in the dataset, or in her cap with more in the dataset."""
        now = SystemClock().now()
        with self.scene.database.write() as session:
            dataset = session.get_one(Dataset, self.dataset_id)
            held = ledger.balance(ledger.find(session, dataset.id))
            person = principals.find(session, self.scene.ada.name)
            grant = grants._find(session, dataset, person)
            assert grant is not None
            own = ledger.balance(ledger.find(session, dataset.id, grant.id))
            tight, loose = (own, held) if of_cap else (held, own)
            budgets = [
                self._budget((each.reserved + each.spent).loss + (fits + extra) * self.cost.loss)
                for each, extra in ((tight, 0), (loose, 3))
            ]
            cap, whole = budgets if of_cap else budgets[::-1]
            if whole.epsilon_units > dataset.epsilon_units:
                lifecycle.raise_budget(session, dataset, whole, by=Decision("c", now))
            grants.grant(session, dataset, person, cap, by=Decision("c", now))

    def _budget(self, loss: int) -> Budget:
        """The smallest budget, to a millionth, whose account holds so much loss."""
        delta_units = Budget.of("1", "0.01").delta_units
        step = EPSILON_UNIT // 10**6
        if self.accountant == "sum":
            return Budget(max(loss, step), delta_units)
        steps = math.ceil(rho_to_epsilon(loss / RHO_UNIT, 0.005) * 10**6)
        while accountants.get(self.accountant, Budget(steps * step, delta_units)).total.loss < loss:
            steps += 1
        return Budget(steps * step, delta_units)

    def room(self) -> int:
        """How many jobs of ada's fit now."""
        with self.scene.database.read() as session:
            dataset = session.get_one(Dataset, self.dataset_id)
            person = principals.find(session, self.scene.ada.name)
            grant = next(
                row for row, who in grants.page(session, dataset, after="", limit=None) if who.id == person.id
            )
            rooms = [
                ledger.balance(ledger.find(session, dataset.id, each)).remaining for each in (None, grant.id)
            ]
        losses = [room.loss // self.cost.loss for room in rooms]
        deltas = [room.delta // self.cost.delta for room in rooms] if self.cost.delta else []
        return min(losses + deltas)

    # --- requests ---

    def submission(self, *, key: str = "", owner: bool = False, question: bool = False) -> Request:
        """A job of ada's, or of the dataset's owner."""
        asked = {"kind": "table", "columns": ["a"]} if question else {"k": 2, "algorithm": "sulq"}
        body = {"dataset": self.dataset, "epsilon": EPSILON, "delta": DELTA, **asked}
        who = self.scene.keys[0 if owner else 1]
        return Request("POST", "/v1/jobs", who, json.dumps(body).encode(), idempotency_key=key)

    def cancellation(self, job: str) -> Request:
        return Request("DELETE", f"/v1/jobs/{job}", self.scene.keys[1])

    def curator(self, verb: str, path: str, body: Any = None) -> Request:
        content = b"" if body is None else json.dumps(body).encode()
        return Request(verb, f"/v1/datasets/{self.dataset}{path}", self.scene.keys[0], content)

    def cap(self, budget: Budget, **others: Any) -> Request:
        body = {"epsilon": budget.epsilon_text, "delta": budget.delta_text, **others}
        return self.curator("PUT", f"/grants/{self.scene.ada.name}", body)

    def present_cap(self) -> Budget:
        """The cap that ada has now."""
        with self.scene.database.read() as session:
            query = select(Grant).where(
                Grant.dataset_id == self.dataset_id, Grant.principal_id == self.scene.ada.id
            )
            found = session.scalars(query).one()
            return Budget(found.epsilon_units, found.delta_units)

    def together(
        self, requests: list[Request], claiming: int = 0, ahead: int = 0
    ) -> tuple[list[Answer], list[str]]:
        """Release requests and claims at once."""
        self.clients.prepare(requests)
        self.clients.release(requests)
        # A request has a longer way than a claim; without a start, which varies, it would hardly ever win.
        time.sleep(next(self.starts) if requests and claiming else 0)
        for racer in self.racers[:claiming]:
            racer.claim(ahead)
        answers = self.clients.answers(requests)
        claimed = [racer.answer() for racer in self.racers[:claiming]]
        for answer in answers:
            self.expect(
                answer.status in (200, 202, 204, 403, 404, 409), f"answered {answer.status} {answer.body}"
            )
        return answers, claimed

    def expect(self, holds: bool, problem: str) -> None:
        self.tally.check(holds, f"{self.where}: {problem}")

    def jobs(self, state: str) -> list[str]:
        with self.scene.database.read() as session:
            query = select(Job.id).where(Job.state == state).order_by(Job.number)
            return list(session.scalars(query))

    def clear(self) -> None:
        """End whatever a contest left."""
        for _ in range(200):
            if not unfinished(self.scene.database):
                return
            self.racers[0].claim(500)
            if self.racers[0].answer() != "-":
                self.racers[0].finish()
                self.racers[0].answer()
        self.expect(False, "a job was lost: it does not end")


def at_the_edge(course: Course, clients: int, *, of_cap: bool = False, owner: bool = False) -> None:
    """So many submissions as fit are taken, not one more, not one less; with `owner`, half are theirs."""
    course.clear()
    course.allow(clients // 2, of_cap=of_cap)
    fits = course.room()
    clients = max(clients, min(fits + 2, 64))
    answers, _ = course.together(
        [course.submission(owner=owner and number % 2 == 0) for number in range(clients)]
    )
    taken = sum(answer.status == 202 for answer in answers)
    refused = {answer.problem for answer in answers if answer.status != 202}
    course.expect(
        taken == min(fits, clients), f"{taken} of {clients} taken where {fits} fit: overspent or lost"
    )
    course.expect(refused <= {"cap-exhausted", "budget-exhausted"}, f"refused as {refused}")
    for problem in refused:
        course.tally.add(f"edges refused as {problem}")


def same_key(course: Course, clients: int) -> None:
    """One job and one reservation, however often and at once it is asked for."""
    course.allow(1)
    key = f"{course.dataset}-{next(course.numbers)}"
    answers, _ = course.together([course.submission(key=key) for _ in range(clients)])
    course.expect({answer.status for answer in answers} == {202}, f"{[a.status for a in answers]}")
    made = {answer.body.get("id") for answer in answers}
    course.expect(len(made) == 1, f"one key made {len(made)} jobs")
    with course.scene.database.read() as session:
        query = select(func.count()).where(LedgerEntry.job_id.in_(made), LedgerEntry.kind == "reserve")
        course.expect(session.scalar(query) == 1, "one key was reserved more than once")


def one_queued(course: Course) -> str:
    """The only queued job."""
    course.clear()
    return course.scene.queued(course.rich, EPSILON)


def cancel_against_claim(course: Course, _clients: int) -> None:
    """A job is cancelled and void, or claimed and charged."""
    job = one_queued(course)
    answers, claimed = course.together([course.cancellation(job)] * 2, claiming=2)
    cancelled = sum(answer.status == 200 for answer in answers)
    won = claimed.count(job)
    course.expect(cancelled + won == 1, f"cancelled {cancelled} times and claimed {won} times")
    course.tally.add("races won by the cancellation", cancelled)
    course.tally.add("races won by the claim", won)


def workers_for_one_job(course: Course, _clients: int) -> None:
    """One worker gets it."""
    job = one_queued(course)
    _, claimed = course.together([], claiming=RACERS)
    course.expect(sorted(claimed) == sorted([job, *["-"] * (RACERS - 1)]), f"claimed as {claimed}")
    winner = course.racers[claimed.index(job)]
    winner.finish()
    course.expect(winner.answer() == "stored", "the winner's result was not stored")


def two_results(course: Course, _clients: int) -> None:
    """A worker that was thought dead and the one that took over end a job at the same moment: one result."""
    job = one_queued(course)
    first, second = course.racers[:2]
    first.claim()
    course.expect(first.answer() == job, "the first worker did not get it")
    second.claim(ahead=60)
    course.expect(second.answer() == job, "the second worker did not take over")
    first.finish()
    second.finish()
    said = [first.answer(), second.answer()]
    course.expect(said == ["refused", "stored"], f"their results were {said}")


def lowered_cap(course: Course, clients: int) -> None:
    """The cap falls to what is used while jobs are queued, submitted and claimed: never below it."""
    course.clear()
    course.allow(clients)
    course.together([course.submission() for _ in range(2)])
    tight = course._budget(2 * course.cost.loss + _used(course))
    requests = [course.submission() for _ in range(clients - 1)]
    requests.insert(clients // 2, course.cap(tight))
    course.together(requests, claiming=1)


def _used(course: Course) -> int:
    with course.scene.database.read() as session:
        held = ledger.balance(ledger.find(session, course.dataset_id))
    return held.spent.loss


def revoked(course: Course, clients: int) -> None:
    """The grant is withdrawn while its jobs are submitted, cancelled and claimed: no queued job remains."""
    course.clear()
    course.allow(clients)
    made, _ = course.together([course.submission() for _ in range(2)])
    requests = [course.submission() for _ in range(max(1, clients - 3))]
    requests.insert(1, course.curator("DELETE", f"/grants/{course.scene.ada.name}"))
    requests.append(course.cancellation(str(made[0].body["id"])))
    course.together(requests, claiming=1)
    course.expect(not course.jobs("queued"), "a withdrawn job is still queued")
    course.allow(1)


def narrowed(course: Course, clients: int) -> None:
    """Questions are taken out of a grant while some are queued, submitted and claimed: none stays queued."""
    course.clear()
    course.allow(clients)
    kinds = ["cluster", "table"]
    course.together([course.cap(course.present_cap(), kinds=kinds)])
    course.together([course.submission(question=True) for _ in range(2)])
    requests = [course.submission(question=True) for _ in range(max(1, clients - 3))]
    requests.insert(1, course.cap(course.present_cap(), kinds=["cluster"]))
    course.together(requests, claiming=1)
    course.expect(not course.jobs("queued"), "a question is queued that the grant does not allow")
    course.together([course.cap(course.present_cap(), kinds=kinds)])


def raised(course: Course, clients: int) -> None:
    """The total is raised while more is asked for than there is."""
    course.clear()
    course.allow(1)
    fits = course.room()
    more = course._budget((fits + 1) * course.cost.loss + _used(course))
    body = {"epsilon": more.epsilon_text, "delta": more.delta_text}
    requests = [course.submission() for _ in range(max(clients, fits + 3))]
    requests.insert(len(requests) // 2, course.curator("POST", "/budget", body))
    answers, _ = course.together(requests)
    taken = sum(answer.status == 202 for answer in answers)
    course.expect(
        fits <= taken <= fits + 1, f"{taken} taken where {fits} fitted, then one more: overspent or lost"
    )


def uploads(course: Course, clients: int) -> None:
    """Uploads replace each other, whole; one of the seals among them seals what there is."""
    course.clear()
    draft = course.scene.dataset(course.accountant, "1", seal=False, rows=True)
    upload = Request("PUT", f"/v1/datasets/{draft}/data", course.scene.keys[0], _CSV, "text/csv")
    seal = Request("POST", f"/v1/datasets/{draft}/seal", course.scene.keys[0], b'{"confirm": ["size"]}')
    answers, _ = course.together([upload, seal] * min(clients, 4))
    sealed = [answer.status for answer in answers[1::2]]
    course.expect(sealed.count(200) == 1, f"seals were answered {sealed}")
    course.expect({answer.status for answer in answers} <= {200, 409}, "an upload or a seal failed")


def retired(course: Course, clients: int) -> None:
    """The dataset is retired while jobs are submitted, cancelled and claimed."""
    course.clear()
    course.allow(clients)
    made, _ = course.together([course.submission() for _ in range(2)])
    requests = [course.submission() for _ in range(max(1, clients - 3))]
    requests.insert(1, course.curator("POST", "/retire"))
    requests.append(course.cancellation(str(made[0].body["id"])))
    course.together(requests, claiming=1)
    course.expect(not course.jobs("queued"), "a job is queued on a retired dataset")
    course.clear()
    course.begin(course.accountant)


Contest = Callable[[Course, int], None]
#: Each contest and its weight in a campaign.
CONTESTS: dict[str, tuple[Contest, int]] = {
    "the owner beside an analyst": (lambda course, n: at_the_edge(course, n, owner=True), 1),
    "the last of the budget": (at_the_edge, 2),
    "the last of a cap": (lambda course, n: at_the_edge(course, n, of_cap=True), 2),
    "the same idempotency key": (same_key, 4),
    "cancel against claim": (cancel_against_claim, 8),
    "workers for one job": (workers_for_one_job, 12),
    "two results for one job": (two_results, 10),
    "a cap lowered under queued jobs": (lowered_cap, 1),
    "a grant withdrawn": (revoked, 1),
    "questions withdrawn": (narrowed, 1),
    "a budget raised": (raised, 1),
    "uploads and seals": (uploads, 1),
    "a dataset retired": (retired, 1),
}
_LARGE = {"the last of the budget": 64, "the same idempotency key": 50, "the last of a cap": 64}


def race(stage: Stage, tally: Tally, *, accountant: Accountant, contests: int, large_every: int = 10) -> None:
    """So many contests against two API processes, one in ten of them a large one."""
    scene = Scene(stage.database(), stage.folder, max_queued_jobs=10**6)
    scene.database.dispose()
    with ExitStack() as stack:
        racers = [Racer(scene.settings, f"racer-{number}") for number in range(RACERS)]
        for racer in racers:
            stack.callback(racer.close)
        clients = Clients(stack.enter_context(Apis(scene, 2)).port)
        stack.callback(clients.close)
        course = Course(stage, scene, clients, racers, tally)
        course.begin(accountant)
        _run(course, contests, large_every)
        course.clear()
        tally.all_ended(scene.database, f"{stage.kind}, {accountant}, after the races")
        tally.audit(scene.database, f"{stage.kind}, {accountant}, after the races")
        tally.add("requests in races", clients.sent)
    scene.close()


def _run(course: Course, contests: int, large_every: int) -> None:
    order = [name for name, (_, weight) in CONTESTS.items() for _ in range(weight)]
    for number in range(contests):
        name = order[number * 19 % len(order)]  # 19 and the number of places have no common factor
        size = 4 + number % 4
        if number % large_every == large_every - 1:
            name = list(_LARGE)[number // large_every % len(_LARGE)]
            size = _LARGE[name]
        course.where = f"{course.stage.kind}, {course.accountant}, contest {number}: {name}"
        CONTESTS[name][0](course, size)
        course.tally.add(f"races: {name}")
        course.tally.add("races with 50 or 64 clients", int(size > 16))
        if number % _AUDIT_EVERY == _AUDIT_EVERY - 1:
            course.tally.audit(course.scene.database, course.where)
        if number % _FRESH_EVERY == _FRESH_EVERY - 1:
            course.clear()
            course.begin(course.accountant)
