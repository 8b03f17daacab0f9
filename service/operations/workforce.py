"""The workers at work: each announces itself in the database, for the API's limits and for operators."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from service.operations.tables import WorkerRecord

#: Seconds between two announcements of a worker.
ANNOUNCE_SECONDS = 10.0
#: A worker that has not announced itself for this long is not counted any more.
_ABSENT = timedelta(seconds=60)
#: After this time its row is deleted.
_FORGOTTEN = timedelta(days=1)


def machine_name() -> str:
    """Return the name of this machine or container, by which metrics tell several apart."""
    return socket.gethostname()[-64:]


def announce(session: Session, name: str, *, seen_at: datetime, plan_bytes: int, cache: Path) -> None:
    """Record that a worker is at work, and how full the disk of its cache is."""
    total, free = disk_space(cache)
    record = WorkerRecord(
        name=name,
        machine=machine_name(),
        seen_at=seen_at,
        plan_bytes=plan_bytes,
        cache_bytes=_size(cache),
        disk_bytes=total,
        disk_free_bytes=free,
    )
    session.merge(record)
    session.execute(delete(WorkerRecord).where(WorkerRecord.seen_at < seen_at - _FORGOTTEN))


def leave(session: Session, name: str) -> None:
    """Record that a worker has stopped in good order."""
    session.execute(delete(WorkerRecord).where(WorkerRecord.name == name))


def at_work(session: Session, now: datetime) -> list[WorkerRecord]:
    """Return the workers that have announced themselves lately."""
    query = select(WorkerRecord).where(WorkerRecord.seen_at > now - _ABSENT)
    return list(session.scalars(query.order_by(WorkerRecord.name)))


def plan_bytes(session: Session, now: datetime) -> int | None:
    """Return the most memory that a plan may need to run on every worker; None if there are no workers."""
    query = select(func.min(WorkerRecord.plan_bytes)).where(WorkerRecord.seen_at > now - _ABSENT)
    return session.scalar(query)


def disk_space(path: Path) -> tuple[int, int]:
    """Return total and free bytes of the disk that holds a folder, which may not exist yet."""
    present = path.absolute()
    while not present.exists():
        present = present.parent
    usage = shutil.disk_usage(present)
    return usage.total, usage.free


def _size(folder: Path) -> int:
    total = 0
    with suppress(OSError):  # the folder is not there yet
        for entry in os.scandir(folder):
            with suppress(OSError):  # another worker removed the file
                total += entry.stat().st_size
    return total
