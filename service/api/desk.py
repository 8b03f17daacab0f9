"""Requests that come at the same moment, served together: one query, or one transaction, for all of them.

While one piece of work is under way, requests gather; when it is done, all that have gathered are the next
piece. A request that comes alone is served at once, alone. Nothing is delayed in the hope of company.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Generic, TypeVar

from sqlalchemy import Row, bindparam, select
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from service import auth, faults, jobs, submissions
from service.auth import Caller
from service.clock import Clock
from service.db import Database, padded
from service.errors import NotFound
from service.schemas.work import JobBody
from service.submissions import KeyTaken, Limits, Order, Submission
from service.tables import Dataset, Grant, Job

__all__ = ["Desk", "Together", "Wish"]

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
_MOST = 64
# Statements that every submission needs, put together once.
_DATASETS = select(Dataset).where(Dataset.name.in_(bindparam("names", expanding=True)))
_GRANTS = select(Grant.id, Grant.dataset_id, Grant.principal_id, Grant.delta_units).where(
    Grant.dataset_id.in_(bindparam("datasets", expanding=True)),
    Grant.principal_id.in_(bindparam("people", expanding=True)),
    Grant.revoked_at.is_(None),
)


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
    """A submission as it came: a key that is not checked yet, and a request that is not planned yet."""

    token: str
    body: JobBody
    key: str | None
    now: datetime


@dataclass(frozen=True)
class _Seen:
    """What the database says about wishes at one moment: whose keys, which grants, which earlier jobs."""

    callers: Sequence[Caller | None]
    granted: dict[tuple[str, int], tuple[Dataset, Row[int, int, int, int]]]
    made: dict[tuple[int, str | None], Job]


class Desk:
    """Authenticates, looks up and submits for everybody who waits."""

    def __init__(self, database: Database, clock: Clock, limits: Limits):
        self._database, self._clock, self._limits = database, clock, limits
        self.callers: Together[str, Caller | None] = Together(self._authenticate)
        self.submissions: Together[Wish, Submission] = Together(self._serve)

    def _authenticate(self, tokens: list[str]) -> Sequence[Caller | None]:
        with self._database.read() as session:
            return auth.authenticate_several(session, tokens, self._clock.now())

    def _serve(self, wishes: list[Wish]) -> list[Submission | Exception]:
        """Check keys, plan and submit; all of it in one go, so that as many as possible share each query."""
        with self._database.read() as session:
            seen = self._see(session, wishes)
            planned = [
                self._plan(session, wish, caller, seen)
                for wish, caller in zip(wishes, seen.callers, strict=True)
            ]
        orders = [each for each in planned if isinstance(each, Order)]
        submitted = iter(self._submit(orders))
        return [next(submitted) if isinstance(each, Order) else each for each in planned]

    def _see(self, session: Session, wishes: list[Wish]) -> _Seen:
        callers = auth.authenticate_several(session, [wish.token for wish in wishes], self._clock.now())
        people = {caller.id for caller in callers if caller is not None}
        if not people:
            return _Seen(callers, {}, {})
        names = {"names": padded(wish.body.dataset for wish in wishes)}
        about = {dataset.id: dataset for dataset in session.scalars(_DATASETS, names)}
        grants = session.connection().execute(_GRANTS, {"people": padded(people), "datasets": padded(about)})
        granted = {
            (about[row.dataset_id].name, row.principal_id): (about[row.dataset_id], row) for row in grants
        }
        keys = [(caller.id, wish.key) for caller, wish in zip(callers, wishes, strict=True) if caller]
        return _Seen(callers, granted, submissions.earlier(session, keys))

    def _plan(
        self, session: Session, wish: Wish, holder: Caller | None, seen: _Seen
    ) -> Order | Submission | Exception:
        """What to submit; or the job that the same Idempotency-Key made before; or why not."""
        try:
            caller = auth.require_analyst(holder)
            found = seen.granted.get((wish.body.dataset, caller.id))
            if found is None:
                raise NotFound(f"there is no dataset named {wish.body.dataset}, or you have no grant for it")
            dataset, grant = found
            earlier = submissions.same_request(seen.made.get((caller.id, wish.key)), wish.body)
            if earlier is not None:
                return Submission(caller, earlier, dataset, replayed=True)
            # Planning only needs public facts that cannot change any more, so it holds no lock.
            planned = jobs.make_plan(session, dataset, grant.delta_units, wish.body, self._limits.work)
            faults.reach("submit.planned")
            return Order.of(
                caller,
                wish.body,
                planned,
                key=wish.key,
                dataset=dataset,
                grant_id=grant.id,
                now=wish.now,
            )
        except Exception as refusal:  # this wish's own; the others are none the worse for it
            return refusal

    def _submit(self, orders: list[Order]) -> list[Submission | Exception]:
        """One transaction for the orders of each dataset."""
        answers: dict[int, Submission | Exception] = {}
        numbered = sorted(enumerate(orders), key=lambda pair: pair[1].dataset.id)
        for _, group in groupby(numbered, key=lambda pair: pair[1].dataset.id):
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
