"""Tests of uploads in motion: encoded while they arrive, stored while they are encoded, all or nothing."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select

from core.data import Dense
from service.datasets.ingest.batch import Wanted
from service.datasets.ingest.chunks import BegunAgain, ChunkFile, StoredChunk
from service.datasets.ingest.encode import Upload
from service.datasets.ingest.pipeline import Pipeline
from service.datasets.ingest.spool import Abandoned, Spool
from service.datasets.lifecycle import seal
from service.errors import AlreadySealed
from service.operations.tables import Dataset, DatasetChunk
from tests.support.service import House, table

DOMAIN = Dense.box([0, 0], [10, 4], ["a", "b"], size=1000)


def upload_of(spool: Spool, *, drop: bool = False, chunk_bytes: int = 4096) -> Upload:
    return Upload(spool, "text/csv", Wanted(DOMAIN), drop, chunk_bytes, None, 1 << 30)


def long_table(rows: int) -> bytes:
    """A hundred bytes a row, so that few rows are several of the reader's blocks."""
    return b"a,b\n" + (b"1." + b"5" * 94 + b",1\n") * rows


def test_chunks_are_ready_while_the_rest_of_the_file_still_arrives() -> None:
    content = long_table(60_000)
    spool = Spool(None, 1 << 30)
    pipeline = Pipeline(upload_of(spool, chunk_bytes=1 << 14)).start()
    half = len(content) // 2
    spool.write(content[:half])
    spool.write(content[half:-1])  # the last byte is kept back: nobody can know that this is the end
    chunks = pipeline.chunks()
    first = next(chunks)
    spool.write(content[-1:])
    spool.finish()
    rest = list(chunks)
    assert pipeline.result().rows == first.rows + sum(each.rows for each in rest) == 60_000
    assert [each.ordinal for each in (first, *rest)] == list(range(len(rest) + 1))
    pipeline.close()


def test_chunks_grow_to_their_size_so_that_the_first_ones_are_stored_early() -> None:
    chunks = ChunkFile(DOMAIN, 16 << 20, None)
    encoded = np.zeros((8_000_000, 2), dtype=np.int16)
    chunks.add(encoded)
    chunks.end()
    rows = [(chunk.first_record, chunk.rows) for chunk in chunks.chunks()]
    million = 1 << 20
    assert rows == [
        (0, million),
        (million, 2 * million),
        (3 * million, 4 * million),
        (7 * million, 8_000_000 - 7 * million),
    ]
    chunks.close()


def test_whoever_stores_chunks_begins_again_when_a_late_row_is_bad() -> None:
    spool = Spool(None, 1 << 30)
    pipeline = Pipeline(upload_of(spool, drop=True, chunk_bytes=1 << 14)).start()
    spool.write(long_table(60_000))
    chunks = pipeline.chunks()
    next(chunks)
    spool.write(b"oops,1\n")
    spool.finish()
    with pytest.raises(BegunAgain):
        list(chunks)
    assert sum(each.rows for each in pipeline.chunks()) == pipeline.result().rows == 60_000
    assert pipeline.result().bad.first == [{"line": 60_002, "reason": "a is not a finite number"}]
    pipeline.close()


def test_an_upload_that_is_given_up_lets_its_reader_go() -> None:
    spool = Spool(None, 1 << 30)
    pipeline = Pipeline(upload_of(spool)).start()
    spool.write(table(10))
    pipeline.close()  # returns, though the body never ended
    with pytest.raises(Abandoned):
        pipeline.result()


def test_bad_row_at_the_end_of_a_large_file_leaves_nothing_behind(house: House) -> None:
    house.create()
    answer = house.upload(long_table(60_000) + b"1,x\n")
    assert answer.status_code == 422
    assert answer.json()["bad_row_lines"] == [{"line": 60_002, "reason": "b is not a finite number"}]
    with house.database.read() as session:
        assert session.scalar(select(func.count()).select_from(DatasetChunk)) == 0
    assert house.upload(long_table(60_000)).json()["rows"] == 60_000


def test_two_uploads_at_once_store_one_file(house: House) -> None:
    house.create()
    with house.database.read() as session:
        dataset = session.scalars(select(Dataset)).one()

    def chunks(number: int) -> Any:
        payload = bytes([number]) * 4
        yield StoredChunk(0, 0, 1, hashlib.sha256(payload).hexdigest(), payload)

    def store(number: int) -> bool:
        try:
            with house.database.write() as session:
                seal(
                    session,
                    dataset.id,
                    chunks(number),
                    lambda: {"format": "csv"},
                    actor="carla",
                    at=house.clock.now(),
                )
        except AlreadySealed:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(store, range(4))) == [False, False, False, True]
    with house.database.read() as session:
        assert session.scalar(select(func.count()).select_from(DatasetChunk)) == 1
