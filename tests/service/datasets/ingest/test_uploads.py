"""Tests of uploads: every format, every fault in it, and nothing stored unless all is good."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import ipc, parquet
from sqlalchemy import func, select

from core.data import Dense
from service.datasets.ingest.chunks import decode_payload
from service.datasets.ingest.reports import RowReport
from service.operations.tables import Dataset, DatasetChunk
from tests.support.service import House, table

VALUES = np.array([[1.0, 1.0], [9.5, 0.25], [0.0, 4.0]])
DOMAIN = Dense.box([0, 0], [10, 4], ["a", "b"], size=1000)


def stored(house: House, name: str = "flowers") -> Any:
    """The encoded rows in the database, as workers would read them."""
    with house.database.read() as session:
        dataset = session.scalars(select(Dataset).where(Dataset.name == name)).one()
        chunks = session.scalars(
            select(DatasetChunk).where(DatasetChunk.dataset_id == dataset.id).order_by(DatasetChunk.ordinal)
        ).all()
    kind, width = dataset.domain["kind"], len(dataset.domain.get("columns", [0]))
    parts: list[Any] = [decode_payload(kind, each.payload, width) for each in chunks]
    assert all(hashlib.sha256(each.payload).hexdigest() == each.digest for each in chunks)
    return sp.vstack(parts) if kind == "sparse" else np.concatenate(parts)


def nothing_stored(house: House) -> bool:
    with house.database.read() as session:
        chunks = session.scalar(select(func.count()).select_from(DatasetChunk))
        states = session.scalars(select(Dataset.state)).all()
    return chunks == 0 and "sealed" not in states


def as_parquet(frame: pa.Table) -> bytes:
    file = io.BytesIO()
    parquet.write_table(frame, file)
    return file.getvalue()


def as_arrow(frame: pa.Table, *, stream: bool) -> bytes:
    file = io.BytesIO()
    with (ipc.new_stream if stream else ipc.new_file)(file, frame.schema) as writer:
        writer.write_table(frame)
    return file.getvalue()


def as_npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=array.dtype == object)
    return file.getvalue()


def as_npz(matrix: Any) -> bytes:
    file = io.BytesIO()
    sp.save_npz(file, matrix)
    return file.getvalue()


FRAME = pa.table({"b": VALUES[:, 1], "extra": ["x", "y", "z"], "a": VALUES[:, 0]})
GOOD = {
    "csv": ("text/csv", b"a,b\n1,1\n9.5,0.25\n0,4\n"),
    "csv with CRLF, BOM, quotes and another order": (
        "text/csv; charset=utf-8",
        b'\xef\xbb\xbf"b",extra,a\r\n"1","one line, a comma",1\r\n0.25,,"9.5"\r\n4,"say ""hi""",0\r\n',
    ),
    "csv with blank lines, spaces and signs": ("text/csv", b"a,b\n\n +1 ,1.\n9.5,.25\n\n0,4e0"),
    "parquet": ("application/vnd.apache.parquet", as_parquet(FRAME)),
    "arrow file": ("application/vnd.apache.arrow.file", as_arrow(FRAME, stream=False)),
    "arrow stream": ("application/vnd.apache.arrow.stream", as_arrow(FRAME, stream=True)),
    "npy": ("application/x-npy", as_npy(VALUES)),
    "npy in Fortran order": ("application/x-npy", as_npy(np.asfortranarray(VALUES))),
    "unsaid": ("application/octet-stream", as_npy(VALUES)),
    "what curl says": ("application/x-www-form-urlencoded", b"a,b\n1,1\n9.5,0.25\n0,4\n"),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_file_of_each_format_is_stored_encoded(small_house: House, name: str) -> None:
    small_house.create()
    kind, content = GOOD[name]
    answer = small_house.upload(content, kind=kind)
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows"] == 3
    assert np.array_equal(stored(small_house), DOMAIN.encode(VALUES))


@pytest.mark.both_databases
def test_upload_works_on_both_databases(house: House) -> None:
    house.create()
    report = house.upload(b"a,b,c\n1,1,9\n99,0.25,9\n0,4,9\n").json()
    assert (report["rows"], report["clipped_rows"], report["ignored_columns"]) == (3, 1, ["c"])
    assert house.carla.get("/v1/datasets/flowers").json()["upload"]["rows"] == 3


BAD_LINES = (
    b"a,b\n1,1\n,2\n3,abc\n4,nan\n5,1e999\n6\n7,1,1\n8,inf\n9,2\n",
    [3, 4, 5, 6, 7, 8, 9],
)


def test_bad_rows_are_named_by_line_and_nothing_is_stored(small_house: House) -> None:
    small_house.create()
    answer = small_house.upload(BAD_LINES[0])
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/bad-rows")
    assert [each["line"] for each in answer.json()["bad_row_lines"]] == BAD_LINES[1]
    assert nothing_stored(small_house)
    assert small_house.upload(b"a,b\n1,1\n").status_code == 200


def test_bad_rows_are_left_out_on_request(small_house: House) -> None:
    small_house.create()
    report = small_house.upload(BAD_LINES[0], on_bad_row="drop").json()
    assert (report["rows"], report["bad_rows"]) == (2, 7)
    assert np.array_equal(stored(small_house), DOMAIN.encode([[1, 1], [9, 2]]))


def test_line_numbers_count_lines_inside_quotes(small_house: House) -> None:
    small_house.create(reading={"quoted_lines": True})
    answer = small_house.upload(b'a,b,note\n1,1,"one\ntwo\nthree"\n2,x,\n')
    assert [each["line"] for each in answer.json()["bad_row_lines"]] == [5]


@pytest.mark.parametrize("stream", [True, False])
def test_missing_values_of_tables_are_bad_rows(small_house: House, stream: bool) -> None:
    small_house.create()
    frame = pa.table({"a": [1.0, None, 3.0], "b": [1.0, 1.0, float("nan")]})
    answer = small_house.upload(as_arrow(frame, stream=stream), kind="application/vnd.apache.arrow.stream")
    assert [each["line"] for each in answer.json()["bad_row_lines"]] == [2, 3]
    dropped = small_house.upload(as_parquet(frame), kind="application/vnd.apache.parquet", on_bad_row="drop")
    assert (dropped.json()["rows"], dropped.json()["bad_rows"]) == (1, 2)


LIES = {
    "parquet that is csv": ("application/vnd.apache.parquet", b"a,b\n1,1\n"),
    "csv that is parquet": ("text/csv", as_parquet(FRAME)),
    "csv that is npy": ("text/csv", as_npy(VALUES)),
    "npy cut short": ("application/x-npy", as_npy(VALUES)[:-4]),
    "npy of another shape": ("application/x-npy", as_npy(VALUES[:, :1])),
    "npy of objects": ("application/x-npy", as_npy(np.array([[1, None]], dtype=object))),
    "npy of text": ("application/x-npy", as_npy(np.array([["1", "2"]]))),
    "parquet cut short": ("application/vnd.apache.parquet", as_parquet(FRAME)[:-40]),
    "parquet of text": ("application/parquet", as_parquet(pa.table({"a": ["x"], "b": ["y"]}))),
    "arrow cut short": ("application/vnd.apache.arrow.stream", as_arrow(FRAME, stream=True)[:200]),
    "zip that is no zip": ("application/x-npz", b"PK\x03\x04 and then nothing"),
    "sparse matrix for a dense dataset": ("application/x-npz", as_npz(sp.csr_array(VALUES))),
    "nothing": ("text/csv", b""),
    "a missing column": ("text/csv", b"a,c\n1,1\n"),
    "a column twice": ("text/csv", b"a,b,a\n1,1,1\n"),
    "zero bytes": ("text/csv", b"a,b\n1,\x001\n2,x\n"),
    "a line without end": ("text/csv", b"a,b\n" + b"1" * (3 << 20)),
    "an unknown type": ("image/png", b"\x89PNG"),
    "an open quote": ("text/csv", b'a,b\n"1,1\n' + b"2,2\n" * 10),
}


@pytest.mark.parametrize("name", LIES)
def test_file_that_lies_about_itself_gets_a_clear_refusal(small_house: House, name: str) -> None:
    small_house.create()
    kind, content = LIES[name]
    answer = small_house.upload(content, kind=kind)
    assert answer.status_code in (415, 422), answer.text
    assert answer.json()["type"] in ("/problems/bad-format", "/problems/bad-rows")
    assert nothing_stored(small_house)


def test_columns_without_names_take_a_file_without_a_header(small_house: House) -> None:
    small_house.create(columns=None, dimension=2, reading={"header": False})
    assert small_house.upload(b"1,1\n9.5,0.25\n0,4\n").json()["rows"] == 3
    small_house.create("other", columns=None, dimension=2)
    assert small_house.upload(b"left,right\n1,1\n", "other").json()["rows"] == 1


def test_sparse_matrix_is_stored_as_encoded_csr(small_house: House) -> None:
    matrix = sp.csr_array(sp.random_array((500, 40), density=0.1, rng=np.random.default_rng(1)))
    small_house.create(columns=None, dimension=40, bounds={"sparse": {"radius": 10}})
    answer = small_house.upload(as_npz(matrix), kind="application/x-npz")
    assert answer.status_code == 200, answer.text
    kept = stored(small_house)
    assert kept.shape == (500, 40)
    assert np.abs(kept.toarray() * 10 / 32767 - matrix.toarray()).max() < 1e-3


def _broken_csr(change: Callable[[dict[str, Any]], None]) -> bytes:
    matrix = sp.csr_array(np.eye(4))
    parts: dict[str, Any] = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array([4, 4]),
    }
    change(parts)
    file = io.BytesIO()
    np.savez(file, format=np.array(b"csr"), **parts)
    return file.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.update(indices=parts["indices"] + 100),
        lambda parts: parts.update(indices=parts["indices"] - 1),
        lambda parts: parts.update(indptr=parts["indptr"][::-1].copy()),
        lambda parts: parts.update(indptr=parts["indptr"] * 1000),
        lambda parts: parts.update(shape=np.array([2**60, 4])),
        lambda parts: parts.update(data=parts["data"][:2]),
        lambda parts: parts.pop("indices"),
    ],
)
def test_sparse_matrix_whose_parts_do_not_fit_is_refused(small_house: House, change: Any) -> None:
    small_house.create(columns=None, dimension=4, bounds={"sparse": {"radius": 2}})
    answer = small_house.upload(_broken_csr(change), kind="application/x-npz")
    assert answer.json()["type"] == "/problems/bad-format"
    assert nothing_stored(small_house)


def test_site_numbers_are_stored(small_house: House) -> None:
    small_house.create(columns=None, bounds={"ids": {"count": 10}})
    assert small_house.upload(b"site\n3\n9\n0\n").status_code == 200
    assert stored(small_house).tolist() == [3, 9, 0]


PEOPLE = b"who,a,b\n" + b"".join(f"p{i % 4},{i},1\n".encode() for i in range(10)) + b" p0 ,9,1\n"


@pytest.mark.parametrize("kind", ["text/csv", "application/vnd.apache.parquet"])
def test_at_most_so_many_rows_of_a_person_are_kept_and_the_id_is_dropped(
    small_house: House, kind: str
) -> None:
    small_house.create(rows_per_person=2, id_column="who")
    content = PEOPLE
    if kind != "text/csv":
        lines = [line.split(",") for line in PEOPLE.decode().splitlines()[1:]]
        who, a, b = zip(*lines, strict=True)
        content = as_parquet(pa.table({"who": who, "a": list(map(float, a)), "b": list(map(float, b))}))
    report = small_house.upload(content, kind=kind).json()
    assert (report["rows"], report["rows_over_limit"]) == (8, 3)
    assert np.array_equal(stored(small_house), DOMAIN.encode([[i, 1] for i in range(8)]))


@pytest.mark.parametrize("on_bad_row", ["refuse", "drop"])
def test_row_whose_id_is_not_a_number_belongs_to_nobody(small_house: House, on_bad_row: str) -> None:
    """Counted as one person, its rows would displace each other."""
    small_house.create(id_column="who")
    who = pa.array([1.0, float("nan"), 2.0, float("nan"), None], from_pandas=False)
    content = as_parquet(pa.table({"who": who, "a": [1.0, 2.0, 3.0, 4.0, 5.0], "b": [1.0] * 5}))
    kind = "application/vnd.apache.parquet"
    answer = small_house.upload(content, kind=kind, on_bad_row=on_bad_row).json()
    assert (answer["bad_rows"], answer.get("rows")) == (3, 2 if on_bad_row == "drop" else None)


def test_file_without_the_id_column_is_refused(small_house: House) -> None:
    small_house.create(rows_per_person=2, id_column="who")
    assert small_house.upload(table(3)).json()["type"] == "/problems/bad-format"
    assert (
        small_house.upload(as_npy(VALUES), kind="application/x-npy").json()["type"] == "/problems/bad-format"
    )


def test_several_rows_per_person_need_an_id_column(small_house: House) -> None:
    assert small_house.create(rows_per_person=2).status_code == 422


def test_many_small_chunks_hold_the_same_rows(sqlite_url: str, tmp_path: Any) -> None:
    house = House(sqlite_url, tmp_path, chunk_bytes=4096)
    house.create()
    values = np.random.default_rng(3).uniform(0, 4, (5000, 2))
    assert house.upload(as_npy(values), kind="application/x-npy").status_code == 200
    with house.database.read() as session:
        chunks = session.scalars(select(DatasetChunk).order_by(DatasetChunk.ordinal)).all()
    assert [each.first_record for each in chunks] == [1024 * i for i in range(5)]
    assert np.array_equal(stored(house), DOMAIN.encode(values))
    house.close()


def test_header_alone_is_a_draft_without_rows(small_house: House) -> None:
    small_house.create()
    assert small_house.check(b"a,b\n").json()["rows"] == 0
    assert stored(small_house).shape == (0, 2)


@pytest.mark.parametrize("where", ["query", "header"])
def test_damaged_upload_is_noticed_by_its_digest(small_house: House, where: str) -> None:
    small_house.create()
    content = table(5)
    wrong = hashlib.sha256(b"other").digest()
    if where == "query":
        answer = small_house.upload(content, sha256=wrong.hex())
    else:
        header = {"Content-Digest": f"sha-256=:{base64.b64encode(wrong).decode()}:"}
        answer = small_house.carla.call("PUT", "/v1/datasets/flowers/data", content=content, headers=header)
    assert answer.json()["type"] == "/problems/digest-mismatch"
    assert nothing_stored(small_house)


def test_upload_with_announced_digest_may_be_repeated(small_house: House) -> None:
    small_house.create()
    digest = hashlib.sha256(table(5)).hexdigest()
    first = small_house.upload(table(5), sha256=digest)
    again = small_house.check(table(5), sha256=digest)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == {**first.json(), "doubts": []}
    assert small_house.upload(table(5)).json()["type"] == "/problems/already-sealed"


def test_upload_larger_than_the_limit_is_refused_before_it_is_read(sqlite_url: str, tmp_path: Any) -> None:
    house = House(sqlite_url, tmp_path, max_upload_bytes=2000)
    house.create()
    read = 0

    async def endless() -> Any:
        nonlocal read
        for _ in range(10_000):
            read += 1000
            yield b"x" * 1000

    for content in (b"x" * 5000, endless()):
        answer = house.carla.call("PUT", "/v1/datasets/flowers/data", content=content)
        assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")
    assert read <= 2 << 20
    house.close()


def test_refused_bad_rows_carry_their_number() -> None:
    found = RowReport()
    for start in range(0, 500, 100):
        lines = [(line, "x is missing") for line in range(start, start + 100)]
        found.add(RowReport(len(lines), bad_lines=lines))
    refusal = found.refusal(drop=False)
    assert refusal is not None
    assert (refusal.fields["bad_rows"], len(refusal.fields["bad_row_lines"])) == (500, 100)


def test_reasons_are_found_for_the_rows_that_are_reported_alone() -> None:
    taken = []

    def lines() -> Iterator[tuple[int, str]]:
        for line in range(500):
            taken.append(line)
            yield line, "x is missing"

    found = RowReport()
    for _ in range(2):
        found.add(RowReport(500, bad_lines=lines()))
    assert (found.bad_rows, len(taken)) == (1000, 100)
