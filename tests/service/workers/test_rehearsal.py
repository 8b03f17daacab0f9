"""Rows of rehearsals on a table, and chunks of tables: codes in, the same codes out."""

import numpy as np

from core.data import Boolean, Category, Geometry, Number, Table, TableSource
from service.datasets.ingest.chunks import ChunkFile, decode_payload
from service.jobs.results.answers import MadeUpRows
from service.workers.rehearsal import made_up_source, synthetic_source

TABLE = Table(
    declared=(
        Number(name="age", low=0, high=110, whole=True),
        Category(name="ward", levels=("a", "b"), missing="level"),
        Boolean(name="smoker", role="keep"),
    ),
    size=500,
)


def test_made_up_rows_of_a_table_are_codes_of_its_columns() -> None:
    source = synthetic_source(TABLE, 3, 200)
    rows = np.concatenate([np.asarray(loader().rows) for loader in source.loaders()])
    assert rows.shape == (200, 3)
    assert rows.dtype == np.uint16
    assert (rows.max(axis=0) < [column.codes for column in TABLE.stored]).all()


def test_rows_of_a_release_keep_their_columns_and_other_columns_are_drawn() -> None:
    released = MadeUpRows(Geometry.of(TABLE, ["ward"]), np.array([[0], [2], [2]], dtype=np.uint16))
    source = made_up_source(TABLE, 3, 200, released)
    rows = np.concatenate([np.asarray(loader().rows) for loader in source.loaders()])
    assert rows.shape == (200, 3)
    ward = [column.name for column in TABLE.stored].index("ward")
    np.testing.assert_array_equal(rows[:, ward], np.resize([0, 2, 2], 200))
    assert len(np.unique(rows[:, 0])) > 1
    assert (rows.max(axis=0) < [column.codes for column in TABLE.stored]).all()


def test_chunks_of_a_table_give_back_the_codes_that_were_added() -> None:
    values = {"age": [1, 2, 3], "ward": ["a", "", "b"], "smoker": [True, None, False]}
    (loader,) = TableSource(TABLE, values).loaders()
    rows = loader().rows
    file = ChunkFile(TABLE, 12, None)  # two rows in each chunk
    file.add(rows)
    file.end()
    payloads = [chunk.payload for chunk in file.chunks()]
    file.close()
    assert len(payloads) == 2
    read = [np.asarray(decode_payload("table", payload, TABLE.dimension)) for payload in payloads]
    assert np.array_equal(np.concatenate(read), np.asarray(rows))
    assert read[0].dtype == np.uint16
