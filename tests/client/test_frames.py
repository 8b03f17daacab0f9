"""DataFrames as they are sent: what becomes of a cell follows from that cell alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from contextlib import closing
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairn_client.tables import write_arrow, write_csv, write_frame
from core.data import Table, column_from_json
from service.datasets.ingest.chunks import decode_payload
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.spool import Spool
from service.errors import BadFormat
from service.operations.settings import Settings
from tests.service.datasets.ingest.test_uploads import stored as stored_rows
from tests.support.service import House

Write = Callable[[pd.DataFrame, io.BytesIO], None]
KINDS: list[dict[str, Any]] = [
    {"kind": "number", "low": -10, "high": 10},
    {"kind": "boolean"},
    {"kind": "category", "levels": ["0", "1", "2", "1.5", "a", "true", "True", "1.0"]},
    {"kind": "date", "low": "2023-01-01", "high": "2025-01-01"},
    {"kind": "datetime", "low": "2023-01-01", "high": "2025-01-01"},
]
DAY, MOMENT = pd.Timestamp("2024-01-01"), pd.Timestamp("2024-02-03 04:05:06")
#: Cells of one column, and the dtype that pandas is told, if any.
COLUMNS: dict[str, tuple[list[Any], str | None]] = {
    "whole numbers with a gap": ([1, 2, 0, None, 1], None),
    "yes and no with a gap": ([True, False, None, True], None),
    "yes and no": ([True, False, True], None),
    "floats": ([1.0, 1.5, None, 1e22, float("inf")], None),
    "small floats": ([1.0, 1.5, None, 0.1], "float32"),
    "nullable whole numbers": ([1, 2, None], "Int64"),
    "nullable yes and no": ([True, None, False], "boolean"),
    "small whole numbers": ([1, 2, 0], "int8"),
    "large whole numbers": ([2**53 + 1, 1, 2], None),
    "text": (["a", "1", None, "", "1.0", "NA", "true"], None),
    "categories": (["a", "1", None], "category"),
    "categories of numbers": ([1.0, 2.0, None], "category"),
    "anything": ([True, 1, 1.0, "1", "a", None, 1.5, pd.NA], "object"),
    "days": ([DAY, DAY + pd.Timedelta(days=1), pd.NaT], None),
    "moments": ([DAY, MOMENT, pd.NaT], None),
    "moments with a time zone": ([MOMENT.tz_localize("Europe/Berlin"), pd.NaT], None),
    "days and text": ([DAY, "2024-01-01", date(2024, 1, 1), MOMENT.to_pydatetime(), None, 1], "object"),
}


def frame_of(cells: list[Any], dtype: str | None, kept: list[int]) -> pd.DataFrame:
    """The rows as pandas makes a frame of them: it chooses dtypes by all of the cells."""
    values = pd.Series([cells[place] for place in kept], dtype=dtype)
    return pd.DataFrame({"row": np.array(kept), "value": values})


def stored(write: Write, kind: str, frame: pd.DataFrame, declared: dict[str, Any]) -> dict[int, int] | None:
    """The stored code of each row that can be stored; None if the file is refused."""
    row = {"name": "row", "kind": "number", "low": 0, "high": 100, "whole": True}
    value = {"name": "value", "role": "keep", "missing": "keep", **declared}
    table = Table(declared=(column_from_json(row), column_from_json(value)), size=10)
    with Spool(None, 1 << 20) as spool:
        file = io.BytesIO()
        write(frame, file)
        spool.write(file.getvalue())
        try:
            with closing(encode(Upload(spool, kind, Expected(table), Settings(), True))) as encoded:
                codes = [decode_payload("table", each.payload, 2) for each in encoded.chunks()]
        except BadFormat:
            return None
    numbers = {int(table.stored[0].read([place]).codes[0]): place for place in range(101)}
    return {numbers[int(first)]: int(code) for chunk in codes for first, code in chunk}


def as_csv(frame: pd.DataFrame, file: io.BytesIO) -> None:
    write_csv(frame, file, {})


FORMATS: dict[str, tuple[Write, str]] = {
    "arrow": (write_arrow, "application/vnd.apache.arrow.file"),
    "csv": (as_csv, "text/csv"),
}


def moved(write: Write, kind: str, cells: list[Any], dtype: str | None) -> list[str]:
    """What becomes of other rows where one is left out."""
    everything = list(range(len(cells)))
    found = []
    for declared in KINDS:
        before = stored(write, kind, frame_of(cells, dtype, everything), declared)
        for gone in everything:
            kept = [place for place in everything if place != gone]
            after = stored(write, kind, frame_of(cells, dtype, kept), declared)
            if before is None or after is None:
                continue  # nothing is stored
            if after != {place: code for place, code in before.items() if place != gone}:
                found.append(f"{declared['kind']} without {cells[gone]!r}: {before} became {after}")
    return found


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("column", COLUMNS)
def test_no_row_of_a_frame_changes_another(name: str, column: str) -> None:
    assert moved(*FORMATS[name], *COLUMNS[column]) == []


@pytest.mark.parametrize("column", COLUMNS)
def test_both_formats_store_the_same_codes(column: str) -> None:
    cells, dtype = COLUMNS[column]
    frame = frame_of(cells, dtype, list(range(len(cells))))
    for declared in KINDS:
        arrow, text = (stored(*FORMATS[name], frame, declared) for name in ("arrow", "csv"))
        assert arrow is None or arrow == text, declared


def test_a_spelling_that_depends_on_a_gap_would_be_noticed() -> None:
    def by_column(frame: pd.DataFrame, file: io.BytesIO) -> None:
        booleans = dict.fromkeys(frame.select_dtypes(["bool"]).columns, "int8")
        frame.astype(booleans).to_csv(file, index=False)

    assert moved(by_column, "text/csv", *COLUMNS["whole numbers with a gap"])
    assert moved(by_column, "text/csv", *COLUMNS["yes and no with a gap"])


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False),
)


@given(st.lists(CELLS, min_size=2, max_size=6), st.data())
def test_the_text_of_a_cell_is_the_same_without_another_row(cells: list[Any], data: st.DataObject) -> None:
    def lines(kept: list[Any]) -> list[list[str]]:
        file = io.BytesIO()
        as_csv(pd.DataFrame({"a": pd.Series(kept, dtype=object), "b": "x"}), file)
        return list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))[1:]

    gone = data.draw(st.integers(0, len(cells) - 1))
    whole = lines(cells)
    assert len(whole) == len(cells)
    assert lines([*cells[:gone], *cells[gone + 1 :]]) == [*whole[:gone], *whole[gone + 1 :]]


def test_a_frame_is_written_as_the_dataset_reads_text() -> None:
    file = io.BytesIO()
    frame = pd.DataFrame({"größe": [1.5, None], "note": ["a;b", "zwei\nZeilen"]})
    write_csv(frame, file, {"separator": ";", "decimal": ",", "encoding": "windows-1252"})
    assert file.getvalue().decode("windows-1252").splitlines() == ["größe;note", '1,5;"a;b"', ";zwei?Zeilen"]


def test_a_frame_is_sent_as_csv_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    arrow, text = io.BytesIO(), io.BytesIO()
    assert write_frame(frame, arrow, {}) == "application/vnd.apache.arrow.file"
    monkeypatch.setattr("cairn_client.tables.find_spec", lambda _: None)
    assert (write_frame(frame, text, {}), text.getvalue()) == ("text/csv", b"a\n1\n2\n")


def test_a_service_stores_the_same_rows_of_either_format(small_house: House) -> None:
    declared = [{"name": f"value {place}", **kind} for place, kind in enumerate(KINDS[:3])]
    cells = {"value 0": [1.5, None, 3], "value 1": [True, None, False], "value 2": ["1", 1, None]}
    declared = [{**each, "missing": "keep", "role": "keep"} for each in declared]
    table = [{"name": "row", "kind": "number", "low": 0, "high": 9}, *declared]
    frame = pd.DataFrame({"row": [1, 2, 3], **cells})
    found = []
    for name, (write, kind) in FORMATS.items():
        file = io.BytesIO()
        write(frame, file)
        body = {"name": name, "table": table, "size": 3, "budget": {"epsilon": "1"}}
        assert small_house.carla.post("/v1/datasets", body).status_code == 201
        report = small_house.upload(file.getvalue(), name, kind)
        assert report.json()["rows"] == 3, report.text
        found.append(stored_rows(small_house, name).tolist())
    assert found[0] == found[1]
