"""Requests that come at the same moment, served together: one query, or one transaction, for all of them.

While one piece of work is under way, requests gather; when it is done, all that have gathered are the next
piece. A request that comes alone is served at once, alone. Nothing is delayed in the hope of company.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from service import auth, faults, jobs, submissions
from service.auth import Caller
from service.clock import Clock
from service.db import Database, padded
from service.errors import NotFound
from service.schemas.work import JobBody
from service.submissions import KeyTaken, Limits, Order, Planned, Submission
from service.tables import Dataset, Grant, Job

__all__ = ["Desk", "Known", "Together", "Wish"]

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
_MOST = 64


class Together(Generic[Asked, Answered]):
    """Gathers what is asked while the work is busy, and hands it over as one list; for one event loop."""

    def __init__(self, work: Callable[[list[Asked]], Sequence[Answered | Exception]]):
        self._work = work
        self._waiting: list[tuple[Asked, asyncio.Future[Answered]]] = []
        self._busy: asyncio.Task[None] | None = None

    async def ask(self, question: Asked) -> Answered:
        """The answer to one question; raises what the work answered if that is an exception."""
        mine: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, mine))
        if self._busy is None or self._busy.done():
            self._busy = asyncio.create_task(self._run())
        return await mine

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            answers: Sequence[Answered | Exception]
            try:
                answers = await run_in_threadpool(self._work, [question for question, _ in batch])
            except Exception as error:
                answers = [error] * len(batch)
            for (_, waiter), answer in zip(batch, answers, strict=True):
                if waiter.done():  # whoever asked is gone
                    continue
                if isinstance(answer, Exception):
                    waiter.set_exception(answer)
                else:
                    waiter.set_result(answer)


@dataclass(frozen=True)
class Wish:
    """A submission before it is planned."""

    caller: Caller
    body: JobBody
    key: str | None


@dataclass(frozen=True)
class Known:
    """A wish with its plan; or the job that the same Idempotency-Key made before, which needs none."""

    dataset: Dataset
    grant: Grant
    earlier: Job | None
    planned: Planned | None


class Desk:
    """Authenticates, looks up and submits for everybody who waits."""

    def __init__(self, database: Database, clock: Clock, limits: Limits):
        self._database, self._clock, self._limits = database, clock, limits
        self.callers: Together[str, Caller | None] = Together(self._authenticate)
        self.plans: Together[Wish, Known] = Together(self._plan)
        self.submissions: Together[Order, Submission] = Together(self._submit)

    def _authenticate(self, tokens: list[str]) -> Sequence[Caller | None]:
        with self._database.read() as session:
            return auth.authenticate_several(session, tokens, self._clock.now())

    def _plan(self, wishes: list[Wish]) -> list[Known | Exception]:
        """Look up what analysts' wishes are about, at one moment, and plan them."""
        people = {wish.caller.id for wish in wishes}
        query = select(Dataset, Grant).join(Grant, Grant.dataset_id == Dataset.id)
        query = query.where(
            Dataset.name.in_(padded(wish.body.dataset for wish in wishes)),
            Grant.principal_id.in_(padded(people)),
            Grant.revoked_at.is_(None),
        )
        with self._database.read() as session:
            granted = {
                (dataset.name, grant.principal_id): (dataset, grant)
                for dataset, grant in session.execute(query)
            }
            made = submissions.earlier(session, [(wish.caller.id, wish.key) for wish in wishes])
            return [self._know(session, wish, granted, made) for wish in wishes]

    def _know(
        self,
        session: Session,
        wish: Wish,
        granted: dict[tuple[str, int], tuple[Dataset, Grant]],
        made: dict[tuple[int, str | None], Job],
    ) -> Known | Exception:
        found = granted.get((wish.body.dataset, wish.caller.id))
        if found is None:
            return NotFound(f"there is no dataset named {wish.body.dataset}, or you have no grant for it")
        try:
            earlier = submissions.same_request(made.get((wish.caller.id, wish.key)), wish.body)
            if earlier is not None:
                return Known(*found, earlier, None)
            # Planning only needs public facts that cannot change any more, so it holds no lock.
            return Known(*found, None, jobs.make_plan(session, *found, wish.body, self._limits.work))
        except Exception as refusal:  # this wish's own; the others are none the worse for it
            return refusal

    def _submit(self, orders: list[Order]) -> list[Submission | Exception]:
        """One transaction for the orders of each dataset."""
        answers: dict[int, Submission | Exception] = {}
        numbered = sorted(enumerate(orders), key=lambda pair: pair[1].dataset_id)
        for _, group in groupby(numbered, key=lambda pair: pair[1].dataset_id):
            places, wanted = zip(*group, strict=True)
            answers |= dict(zip(places, self._submit_to_one(list(wanted)), strict=True))
        return [answers[place] for place in range(len(orders))]

    def _submit_to_one(self, orders: list[Order]) -> Sequence[Submission | Exception]:
        try:
            with self._database.write() as session:
                answers = submissions.submit_together(session, orders, self._limits)
                faults.reach("submit.enqueued")
            faults.reach("submit.committed")
            return answers
        except Exception as error:
            away = isinstance(error, DBAPIError) and not isinstance(error, IntegrityError)
            if len(orders) == 1 or away:
                return [_told(error)] * len(orders)
        # One of them spoilt it for all, and everything was undone: each by itself.
        return [answer for order in orders for answer in self._submit_to_one([order])]


def _told(error: Exception) -> Exception:
    return submissions.mismatch() if isinstance(error, KeyTaken) else error
