"""Races of two curators who disable each other, or themselves, at the same moment: one can always act."""

from __future__ import annotations

import random
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from threading import Barrier, Thread

from sqlalchemy import select

from service.errors import InvalidRequest
from service.operations.database import Database
from service.operations.states import Role
from service.operations.tables import Principal
from service.people import principals

__all__ = ["race"]

_AT = datetime(2030, 1, 1, tzinfo=UTC)


def race(database: Database, rounds: int) -> list[str]:
    """Race so many times, with two curators of their own; return what went wrong."""
    return [fault for _ in range(rounds) for fault in _round(database)]


def _round(database: Database) -> list[str]:
    names = [f"{name}-{uuid.uuid4().hex[:12]}" for name in ("cleo", "cora")]
    with database.write() as session:
        for name in names:
            principals.create(session, name, Role.CURATOR, by=None, at=_AT)
    with database.write() as session:
        others = select(Principal).where(Principal.disabled_at.is_(None), Principal.name.not_in(names))
        for principal in session.scalars(others):
            principals.disable(session, principal, by="racing", at=_AT)
    targets = random.choice((names, names[::-1]))
    start = Barrier(len(names))
    racers = [
        Thread(target=_disable, args=(database, *pair, start)) for pair in zip(names, targets, strict=True)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    active = select(Principal.name).where(Principal.disabled_at.is_(None), Principal.role == Role.CURATOR)
    with database.read() as session:
        left = session.scalars(active).all()
    return [] if len(left) == 1 else [f"{len(left)} curators are left"]


def _disable(database: Database, by: str, name: str, start: Barrier) -> None:
    start.wait()
    with suppress(InvalidRequest), database.write() as session:
        principals.disable(session, principals.find(session, name), by=by, at=_AT)
