"""Store chunks in the database, inside the transaction that stores an upload."""

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from sqlalchemy import func, insert, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from service.datasets.ingest.chunks import StoredChunk
from service.operations import canonical, faults
from service.operations.signing import SigningKeys
from service.operations.tables import DatasetChunk

#: The first half of the advisory locks of uploads; the second half is the dataset's number.
_UPLOADS = 0x75706C64
_NAMES = ("dataset_id", "period_id", "ordinal", "first_record", "rows", "digest", "payload")
_COPY = f"COPY dataset_chunks ({', '.join(_NAMES)}) FROM STDIN (FORMAT BINARY)"
_TYPES = ("int8", "int8", "int4", "int8", "int4", "varchar", "bytea")


def wait_for_other_uploads(session: Session, dataset_id: int) -> None:
    """Let one upload to a dataset proceed at a time, until this transaction ends.

    SQLite needs no lock for this: it has one writer.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_UPLOADS, dataset_id % 2**31)))


def store(session: Session, dataset_id: int, period_id: int, chunks: Iterable[StoredChunk]) -> None:
    """Write chunks one by one, through COPY on PostgreSQL, after those that the dataset has.

    Each chunk has a COPY of its own: the server keeps up to a thousand rows of one in memory, however long
    they are, and stores them at its end.
    """
    last = select(func.max(DatasetChunk.ordinal)).where(DatasetChunk.dataset_id == dataset_id)
    found = session.scalar(last)
    place = (dataset_id, period_id, 0 if found is None else found + 1)
    if session.get_bind().dialect.name != "postgresql":
        for chunk in _passing(chunks):
            values = dict(zip(_NAMES, _values(place, chunk), strict=True))
            session.execute(insert(DatasetChunk).values(values))
        return
    driver: Any = session.connection().connection.driver_connection
    try:
        for chunk in _passing(chunks):
            with driver.cursor().copy(_COPY) as rows:
                rows.set_types(_TYPES)
                rows.write_row(_values(place, chunk))
    except psycopg.Error as error:  # as SQLAlchemy would raise it, for the error handlers
        raise OperationalError(_COPY, None, error) from error


def rows_digest(session: Session, dataset_id: int, period_id: int, keys: SigningKeys) -> str | None:
    """Return the keyed digest of the chunks that a dataset, or a period of it, has; None if it has none.

    Keyed, so that a digest that outlives the rows does not confirm a guess of them.
    """
    columns = (DatasetChunk.ordinal, DatasetChunk.first_record, DatasetChunk.rows, DatasetChunk.digest)
    of_place = (DatasetChunk.dataset_id == dataset_id, DatasetChunk.period_id == period_id)
    stored = select(*columns).where(*of_place).order_by(DatasetChunk.ordinal)
    chunks = [list(row) for row in session.execute(stored)]
    place = [dataset_id, period_id] if period_id else [dataset_id]
    return keys.keyed_digest(canonical.text([*place, chunks])) if chunks else None


def _passing(chunks: Iterable[StoredChunk]) -> Iterator[StoredChunk]:
    for chunk in chunks:
        yield chunk
        faults.reach("upload.chunk")


def _values(place: tuple[int, int, int], chunk: StoredChunk) -> tuple[Any, ...]:
    """Return the columns of a chunk; `place` is the dataset, the period, and the first free ordinal."""
    dataset_id, period_id, free = place
    described = (chunk.first_record, chunk.rows, chunk.digest, chunk.payload)
    return (dataset_id, period_id, free + chunk.ordinal, *described)
