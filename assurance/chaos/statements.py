"""Every operation on the ledger and the queue, killed before each of its statements and commits in turn.

Each act runs in a process of its own, which dies by SIGKILL at its first statement, then again at its second,
and so on until it survives. After each death the books must be right, and doing the act again must end it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from assurance.chaos.scene import PERIODS, Accountant, Scene
from assurance.chaos.stage import Stage, Tally, drain, fork, reap
from core.data import PublicRows
from core.privacy import Budget
from service import errors
from service.datasets import drafts, grants, lifecycle, working_bounds
from service.datasets.decisions import Decision
from service.datasets.public_rows import attached
from service.datasets.wire import DraftChanges
from service.jobs import queue
from service.jobs.claims import Claim, Outcome
from service.operations.clock import SystemClock
from service.operations.database import Database
from service.operations.states import DatasetState
from service.operations.tables import Dataset, Job, Period
from service.people import principals

__all__ = ["ACTS", "kill_at_every_statement"]

LEASE = timedelta(seconds=30)
MOST_STATEMENTS = 60
RESULT = Outcome({"centres": []}, {"digest": ""}, [b"released"])


@dataclass
class Given:
    """What an act finds: a scene, a dataset, and a job or a claim where it needs one."""

    scene: Scene
    dataset: str
    #: Of the period that is corrected; empty in a dataset without periods.
    label: str = ""
    job: str = ""
    held: Claim | None = None

    def row(self, session: Session) -> Dataset:
        return session.scalars(select(Dataset).where(Dataset.name == self.dataset)).one()

    def draft(self, session: Session) -> Period | None:
        """The draft of a period or of a correction, if there is one."""
        own = (Period.dataset_id == self.row(session).id, Period.state == DatasetState.DRAFT)
        return session.scalars(select(Period).where(*own)).one_or_none()

    def analyst(self, session: Session) -> Any:
        return principals.find(session, self.scene.ada.name)


Act = Callable[[Session, Given], object]


def _submit(session: Session, given: Given) -> None:
    given.scene.submit(session, given.dataset, "0.3", key=given.dataset)


def _submit_own(session: Session, given: Given) -> None:
    given.scene.submit(
        session, given.dataset, "0.3", who=given.scene.carla, kind="summary", key=given.dataset
    )


def _cancel(session: Session, given: Given) -> None:
    job = session.scalars(select(Job).where(Job.id == given.job)).one()
    queue.cancel(session, job, actor="ada", now=SystemClock().now())


def _end(session: Session, given: Given) -> None:
    job = session.scalars(select(Job).where(Job.id == given.job)).one()
    queue.end(session, job, given.row(session), actor="c", now=SystemClock().now())


def _claim(session: Session, given: Given) -> None:
    queue.claim(session, worker="w", now=SystemClock().now(), lease=LEASE, can_run=lambda *_: True)


def _refuse_to_run(session: Session, given: Given) -> None:
    queue.claim(session, worker="w", now=SystemClock().now(), lease=LEASE, can_run=lambda *_: False)


def _take_over(session: Session, given: Given) -> None:
    later = SystemClock().now() + 2 * LEASE
    queue.claim(session, worker="w2", now=later, lease=LEASE, can_run=lambda *_: True)


def _beat(session: Session, given: Given) -> None:
    assert given.held is not None
    queue.beat(session, given.held, now=SystemClock().now(), lease=LEASE)


def _finish(session: Session, given: Given) -> None:
    assert given.held is not None
    queue.finish(session, given.held, now=SystemClock().now(), result=RESULT)


def _fail(session: Session, given: Given) -> None:
    assert given.held is not None
    queue.finish(session, given.held, now=SystemClock().now(), result=None)


def _give_back(session: Session, given: Given) -> None:
    assert given.held is not None
    queue.give_back(session, given.held, now=SystemClock().now())


def _grant(session: Session, given: Given) -> None:
    ben = principals.find(session, given.scene.ben.name)
    grants.grant(
        session, given.row(session), ben, Budget.of("1", "0.01"), by=Decision("c", SystemClock().now())
    )


def _move_cap(session: Session, given: Given) -> None:
    cap = Budget.of("0.9", "0.01")
    grants.grant(
        session, given.row(session), given.analyst(session), cap, by=Decision("c", SystemClock().now())
    )


def _revoke(session: Session, given: Given) -> None:
    try:
        grants.revoke(session, given.row(session), given.analyst(session), actor="c", at=SystemClock().now())
    except errors.NotFound:
        return  # withdrawn already, before this was done again


def _narrow_kinds(session: Session, given: Given) -> None:
    cap = Budget.of("1", "0.01")
    grants.grant(
        session,
        given.row(session),
        given.analyst(session),
        cap,
        terms={"kinds": ["table"]},
        by=Decision("c", SystemClock().now()),
    )


def _bounds(session: Session, given: Given) -> None:
    columns = [working_bounds.NewBounds("a", 1.0, 6.0)]
    working_bounds.put(session, given.row(session), columns, actor="c", at=SystemClock().now())


def _attach_rows(session: Session, given: Given) -> None:
    rows = PublicRows(np.ones((20, 2)))
    attached.put(session, given.row(session), rows, actor="c", at=SystemClock().now())


def _raise(session: Session, given: Given) -> None:
    budget = Budget.of("2", "0.02")
    lifecycle.raise_budget(session, given.row(session), budget, by=Decision("c", SystemClock().now()))


def _retire(session: Session, given: Given) -> None:
    lifecycle.retire(session, given.row(session), actor="c", at=SystemClock().now())


def _upload(session: Session, given: Given) -> None:
    given.scene.store(session, given.row(session), at=SystemClock().now())


def _seal(session: Session, given: Given) -> None:
    try:
        drafts.seal(session, given.row(session), confirmed=("size",), actor="c", at=SystemClock().now())
    except errors.AlreadySealed:
        return


def _throw_away(session: Session, given: Given) -> None:
    drafts.throw_away_rows(session, given.row(session), actor="c", at=SystemClock().now())


def _edit(session: Session, given: Given) -> None:
    changes = DraftChanges(columns=["a", "c"])
    drafts.edit(session, given.row(session), changes, actor="c", at=SystemClock().now())


def _discard(session: Session, given: Given) -> None:
    found = session.scalars(select(Dataset).where(Dataset.name == given.dataset)).one_or_none()
    if found is not None:
        drafts.discard(session, found, actor="c", at=SystemClock().now())


def _add_period(session: Session, given: Given) -> None:
    try:
        given.scene.add_period(session, given.row(session), "2030-03", at=SystemClock().now())
    except errors.InvalidRequest:
        return  # its label is taken: it was added before this was done again


def _upload_version(session: Session, given: Given) -> None:
    dataset, draft = given.row(session), given.draft(session)
    given.scene.store(session, dataset, draft, at=SystemClock().now())


def _seal_version(session: Session, given: Given) -> None:
    draft, now = given.draft(session), SystemClock().now()
    if draft is not None:
        drafts.seal(session, given.row(session), draft, confirmed=("size",), actor="c", at=now)


def _discard_version(session: Session, given: Given) -> None:
    draft = given.draft(session)
    if draft is not None:
        drafts.discard_period(session, given.row(session), draft, actor="c", at=SystemClock().now())


def _correct(session: Session, given: Given) -> None:
    drafts.correct(session, given.row(session), given.label, actor="c", at=SystemClock().now())


#: Name, what it does, and what it needs: a queued job, a claimed one, a draft, a draft with rows, or nothing.
#: After a colon: in a dataset with periods.
ACTS: dict[str, tuple[Act, str]] = {
    "submit": (_submit, "nothing"),
    "submit the owner's question": (_submit_own, "nothing"),
    "cancel": (_cancel, "queued"),
    "end a queued job": (_end, "queued"),
    "end a claimed job": (_end, "claimed"),
    "claim": (_claim, "queued"),
    "refuse to run": (_refuse_to_run, "queued"),
    "take over": (_take_over, "claimed"),
    "beat": (_beat, "claimed"),
    "finish": (_finish, "claimed"),
    "fail": (_fail, "claimed"),
    "give back": (_give_back, "claimed"),
    "grant": (_grant, "nothing"),
    "move a cap": (_move_cap, "queued"),
    "revoke": (_revoke, "queued"),
    "narrow kinds": (_narrow_kinds, "queued"),
    "set working bounds": (_bounds, "queued"),
    "attach public rows": (_attach_rows, "queued"),
    "raise": (_raise, "queued"),
    "retire": (_retire, "queued"),
    "upload": (_upload, "draft"),
    "upload again": (_upload, "rows"),
    "seal": (_seal, "rows"),
    "throw away rows": (_throw_away, "rows"),
    "edit a draft": (_edit, "rows"),
    "discard a draft": (_discard, "rows"),
    "begin a correction": (_correct, "queued"),
    "seal a correction": (_seal_version, "correction"),
    "discard a correction": (_discard_version, "correction"),
    "submit on periods": (_submit, "nothing:periods"),
    "claim on periods": (_claim, "queued:periods"),
    "refuse to run on periods": (_refuse_to_run, "queued:periods"),
    "cancel on periods": (_cancel, "queued:periods"),
    "take over on periods": (_take_over, "claimed:periods"),
    "finish on periods": (_finish, "claimed:periods"),
    "add a period": (_add_period, "queued:periods"),
    "upload a period": (_upload_version, "period:periods"),
    "seal a period": (_seal_version, "period:periods"),
    "discard a period": (_discard_version, "period:periods"),
    "begin a correction of a period": (_correct, "queued:periods"),
    "seal a correction of a period": (_seal_version, "correction:periods"),
    "discard a correction of a period": (_discard_version, "correction:periods"),
    "move a cap in periods": (_move_cap, "queued:periods"),
    "retire periods": (_retire, "queued:periods"),
}


def kill_at_every_statement(
    stage: Stage,
    tally: Tally,
    *,
    accountant: Accountant = "sum",
    acts: tuple[str, ...] = tuple(ACTS),
    first: int = 0,
    stride: int = 1,
) -> None:
    """Kill each act at each of its statements, or from the `first` on at every `stride`-th."""
    for name in acts:
        act, needs = ACTS[name]
        scene = Scene(stage.database(), stage.folder, max_queued_jobs=10**6)
        for number in range(first, MOST_STATEMENTS, stride):
            given = _prepare(scene, accountant, needs)
            scene.database.dispose()
            killed = reap(fork(lambda act=act, given=given, number=number: _die_at(act, given, number)))  # type: ignore[misc]  # a lambda's default
            where = f"{stage.kind}, {accountant}, {name}, statement {number}"
            tally.audit(scene.database, where)
            if killed:
                tally.add("processes killed at a statement")
                with scene.database.write() as session:
                    act(session, given)
            tally.audit(scene.database, f"{where}, done again")
            scene.database.dispose()
            drain(scene.settings, ahead=200)
            tally.all_ended(scene.database, where)
            tally.audit(scene.database, f"{where}, after all jobs ended")
            if not killed:
                break
        else:
            tally.check(False, f"{name} never survived")
        scene.close()


def _prepare(scene: Scene, accountant: Accountant, needed: str) -> Given:
    needs, _, periods = needed.partition(":")
    dataset = scene.dataset(
        accountant,
        "1",
        caps=("1",),
        seal=needs not in ("draft", "rows"),
        rows=needs == "rows",
        periods=bool(periods),
    )
    given = Given(scene, dataset, PERIODS[0] if periods else "")
    if needs in ("queued", "claimed", "correction", "period"):
        given.job = scene.queued(dataset, "0.3")
    if needs in ("correction", "period"):
        with scene.database.write() as session:
            _correct(session, given) if needs == "correction" else _add_period(session, given)
            _upload_version(session, given)
    if needs == "claimed":
        with scene.database.write() as session:
            given.held = queue.claim(
                session, worker="w", now=SystemClock().now(), lease=LEASE, can_run=lambda *_: True
            )
    return given


def _die_at(act: Act, given: Given, number: int) -> None:
    """Do the act in this process, and die before its statement of this number; commits count as one."""
    database = Database(given.scene.url)
    database.engine.connect().close()  # so that setting up a connection is not counted
    left = number

    def step(*_: object) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    event.listen(database.engine, "before_cursor_execute", step)
    event.listen(database.engine, "commit", step)
    with database.write() as session:
        act(session, given)
    step()  # the last death: after the commit, before anybody was told
