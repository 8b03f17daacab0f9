"""Tests of encoding and storing an upload: in chunks of one size, whole or not at all."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from sqlalchemy import func, select

from core.data import Dense
from service.datasets.drafts import Place, seal, store_rows
from service.datasets.ingest.chunks import ChunkFile, StoredChunk
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.spool import Spool
from service.errors import AlreadySealed, BadRows
from service.operations.settings import Settings
from service.operations.tables import Dataset, DatasetChunk
from tests.support.service import House

DOMAIN = Dense.box([0, 0], [10, 4], ["a", "b"], size=1000)
SMALL_CHUNKS = Settings(chunk_bytes=1 << 14)


def long_table(rows: int) -> bytes:
    """A hundred bytes a row, so that few rows are several of the reader's blocks."""
    return b"a,b\n" + (b"1." + b"5" * 94 + b",1\n") * rows


def stored_chunks(house: House) -> int:
    with house.database.read() as session:
        return session.scalar(select(func.count()).select_from(DatasetChunk)) or 0


def test_rows_become_chunks_of_one_size_and_a_rest() -> None:
    with closing(ChunkFile(DOMAIN, 4000, None)) as chunks:
        for size in (10, 1500, 990):
            chunks.add(np.zeros((size, 2), dtype=np.int16))
        chunks.end()
        found = [(chunk.ordinal, chunk.first_record, chunk.rows) for chunk in chunks.chunks()]
    assert found == [(0, 0, 1000), (1, 1000, 1000), (2, 2000, 500)]


def test_chunk_carries_the_digest_of_its_payload() -> None:
    with closing(ChunkFile(DOMAIN, 4000, None)) as chunks:
        chunks.add(np.arange(20, dtype=np.int16).reshape(10, 2))
        chunks.end()
        (chunk,) = chunks.chunks()
    assert chunk.payload == np.arange(20, dtype="<i2").tobytes()
    assert chunk.digest == hashlib.sha256(chunk.payload).hexdigest()


def test_late_bad_row_is_dropped_and_every_other_row_is_there_once() -> None:
    with Spool(None, 1 << 30) as spool:
        spool.write(long_table(60_000) + b"oops,1\n")
        upload = Upload(spool, "text/csv", Expected(DOMAIN), SMALL_CHUNKS, True)
        with closing(encode(upload)) as encoded:
            assert sum(chunk.rows for chunk in encoded.chunks()) == 60_000
            report = encoded.report([])
    assert report["rows"] == 60_000
    assert report["bad_row_lines"] == [{"line": 60_002, "reason": "a: “oops” is not a finite number"}]


def test_refused_upload_keeps_no_file_open() -> None:
    with Spool(None, 1 << 20) as spool:
        spool.write(b"a,b\n1,x\n")
        upload = Upload(spool, "text/csv", Expected(DOMAIN), SMALL_CHUNKS)
        with pytest.raises(BadRows):  # and no ResourceWarning, which would be an error
            encode(upload)


@pytest.mark.both_databases
def test_bad_row_at_the_end_of_a_large_file_leaves_nothing_behind(house: House) -> None:
    house.create()
    answer = house.upload(long_table(60_000) + b"1,x\n")
    assert answer.status_code == 422
    assert answer.json()["bad_row_lines"] == [{"line": 60_002, "reason": "b: “x” is not a finite number"}]
    assert stored_chunks(house) == 0
    assert house.upload(long_table(60_000)).json()["rows"] == 60_000


@pytest.mark.both_databases
def test_upload_with_another_digest_than_announced_leaves_nothing_behind(house: House) -> None:
    house.create()
    answer = house.carla.call(
        "PUT", "/v1/datasets/flowers/data", params={"sha256": "0" * 64}, content=long_table(1000)
    )
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/digest-mismatch")
    assert stored_chunks(house) == 0
    assert house.carla.get("/v1/datasets/flowers").json()["state"] == "draft"


@pytest.mark.both_databases
def test_uploads_at_once_store_one_file(house: House) -> None:
    house.create()
    with house.database.read() as session:
        dataset = session.scalars(select(Dataset)).one()

    expected = Expected.of(dataset)
    counts = dict.fromkeys(("bad_rows", "clipped_rows", "rows_over_limit"), 0)
    report = {"format": "csv", "rows": 1000, "sha256": "", "columns": [], **counts}

    def store(number: int) -> bool:
        payload = bytes([number]) * 4
        chunk = StoredChunk(0, 0, 1, hashlib.sha256(payload).hexdigest(), payload)
        now = house.clock.now()
        try:
            with house.database.write() as session:
                store_rows(session, Place(dataset.id), expected, [chunk], report, actor="carla", at=now)
                seal(session, session.get_one(Dataset, dataset.id), actor="carla", at=now)
        except AlreadySealed:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(store, range(4))) == [False, False, False, True]
    assert stored_chunks(house) == 1
