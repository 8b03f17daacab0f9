"""The first lines of a file, for a curator who describes its columns: bounded, the same for every format."""

from __future__ import annotations

import gzip
import io
import random
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from sqlalchemy import func, select

from assurance.fuzz.files import GOOD, damaged
from service.operations.tables import Base
from tests.support.service import House, Person
from tests.support.spreadsheets import spreadsheet

NAMES = ["age", "sex", "cost", "admitted", "smoker"]
ROWS = [["41", "female", "12.5", "2024-03-01", "true"], ["67", "", "9", "2024-03-02", "false"]]
TABLE = pa.table(
    {
        "age": pa.array([41, 67], pa.int16()),
        "sex": pa.array(["female", None]).dictionary_encode(),
        "cost": [12.5, 9.0],
        "admitted": pa.array([date(2024, 3, 1), date(2024, 3, 2)]).cast(pa.timestamp("ns")),
        "smoker": [True, False],
    }
)


def as_parquet(table: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(table, file, row_group_size=64)
    return file.getvalue()


def as_arrow(table: Any, stream: bool = False) -> bytes:
    file = io.BytesIO()
    if stream:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    else:
        feather.write_feather(table, file, compression="lz4", chunksize=64)
    return file.getvalue()


FILES = {
    "excel": spreadsheet([NAMES, *ROWS]),
    "parquet": as_parquet(TABLE),
    "arrow": as_arrow(TABLE),
    "arrow stream": as_arrow(TABLE, stream=True),
    "text": "\n".join(";".join(row) for row in [NAMES, *ROWS]).encode("utf-16"),
    "gzip": gzip.compress(as_parquet(TABLE)),
}


def ask(person: Person, content: bytes, kind: str = "application/octet-stream") -> Any:
    return person.call("POST", "/v1/previews", content=content, headers={"Content-Type": kind})


def preview(house: House, content: bytes) -> dict[str, Any]:
    answer = ask(house.carla, content)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_format_is_shown_as_the_same_lines(shared_house: House, name: str) -> None:
    found = preview(shared_house, FILES[name])
    assert ([found["names"], *found["rows"]], found["problem"]) == ([NAMES, *ROWS], None)


TITLED = "Export of 12.11.2026\n\npatient_id;cost;share\n"


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        (TITLED + "p1;1,5;3\np2;2,5;4\n", "The first line, “Export of 12.11.2026”, is a title. Delete it"),
        ("id,cost\n1,5\n2,6\nTotal,11\n", "Row 3 begins with “Total”: totals are no record."),
        ("id,cost\n1,5 EUR\n2,6 EUR\n", "The values of “cost” are numbers with “EUR”, such as “5 EUR”."),
        ("id,share\n1,5 %\n2,7.5 %\n", "The values of “share” are numbers with “%”"),
        ("id;cost\n1;$1.100,50\n2;$2.000,00\n", "The values of “cost” are numbers with “$”"),
        ("patient_id,cost\n1,5\n1,6\n2,7\n", "“patient_id” repeats, up to 2 times in these lines"),
    ],
)
def test_what_to_mend_is_said_before_the_upload(shared_house: House, content: str, remark: str) -> None:
    found = preview(shared_house, content.encode())
    assert len(found["remarks"]) == 1
    assert found["remarks"][0].startswith(remark)
    assert found["repeated_id"] == ("repeats" in remark)
    assert len(found["columns"]) == content.splitlines()[-1].count(";" if ";" in content else ",") + 1


def test_a_title_in_a_spreadsheet_is_recognised(shared_house: House) -> None:
    found = preview(
        shared_house, spreadsheet([["Export of 2026", "", ""], ["age", "sex", "cost"], ["41", "f", "3"]])
    )
    assert (found["names"], len(found["remarks"])) == (["age", "sex", "cost"], 1)


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_remarkable_about_a_good_file(shared_house: House, name: str) -> None:
    assert preview(shared_house, FILES[name])["remarks"] == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%PDF-1.7 ...", "a PDF document"),
        (b'{\n  "rows": []}', "a JSON file"),
        (b'\xef\xbb\xbf[\n  {"age": 4}]', "a JSON file"),
        (b"<?xml version='1.0'?>", "an XML file"),
        (b"\x89PNG\r\n\x1a\n....", "a picture"),
    ],
)
def test_a_file_that_is_no_table_is_named(shared_house: House, content: bytes, words: str) -> None:
    answer = ask(shared_house.carla, content)
    assert (answer.status_code, f"this is {words}" in answer.json()["detail"]) == (422, True)


def test_a_text_file_is_proposed_with_how_it_is_read(shared_house: House) -> None:
    found = preview(shared_house, "ort;größe\nKöln;1,5\nKöln;2,5\nBonn;3,5\n".encode("latin-1"))
    assert found["reading"] == {
        "encoding": "windows-1252",
        "separator": ";",
        "decimal": ",",
        "thousands": "",
        "quoted_lines": False,
        "from_rows": ["decimal"],
    }
    assert found["columns"] == [
        {
            "name": "ort",
            "kind": "category",
            "role": "cluster",
            "levels": ["Bonn", "Köln"],
            "missing": "refuse",
            "from_rows": ["kind", "role", "levels", "missing"],
        },
        {
            "name": "größe",
            "kind": "number",
            "role": "cluster",
            "low": 1.5,
            "high": 3.5,
            "whole": False,
            "missing": "refuse",
            "from_rows": ["kind", "role", "low", "high", "whole", "missing"],
        },
    ]


@pytest.mark.parametrize("name", ["parquet", "arrow", "arrow stream", "gzip"])
def test_the_types_of_a_file_say_the_kinds_of_its_columns(shared_house: House, name: str) -> None:
    columns = {each["name"]: each for each in preview(shared_house, FILES[name])["columns"]}
    kinds = {name: (each["kind"], "kind" in each["from_rows"]) for name, each in columns.items()}
    assert kinds == {
        "age": ("number", False),
        "sex": ("text", True),
        "cost": ("number", False),
        "admitted": ("date", True),  # a timestamp at midnight everywhere
        "smoker": ("boolean", False),
    }
    assert "whole" not in columns["age"]["from_rows"]
    assert "whole" in columns["cost"]["from_rows"]


def test_a_proposal_is_accepted_as_a_table_once_it_is_confirmed(shared_house: House) -> None:
    text = "\n".join(
        ["id,age,sex,day", *(f"{i},{20 + i},{'fm'[i % 2]},{i % 28 + 1}.1.2024" for i in range(60))]
    )
    columns = preview(shared_house, text.encode())["columns"]
    table = [{**each, "confirmed_from_rows": each["from_rows"]} for each in columns]
    for each in table:
        del each["from_rows"]
    body = {"name": "as-proposed", "table": table, "size": 60, "budget": {"epsilon": "1"}}
    made = shared_house.carla.call("POST", "/v1/datasets", json=body)
    assert made.status_code == 201, made.text
    assert made.json()["table"][1]["confirmed_from_rows"] == ["kind", "missing", "role", "whole"]


def test_a_first_line_of_data_gives_no_names(shared_house: House) -> None:
    found = preview(shared_house, b"ann,41\nben,50\n")
    assert (found["names"], found["rows"]) == ([], [["ann", "41"], ["ben", "50"]])
    assert found["problem"].startswith("the first line looks like data")
    assert [each["name"] for each in found["columns"]] == ["", ""]
    answer = shared_house.carla.call("POST", "/v1/previews?first_line=data", content=b"name,town\nann,bonn\n")
    assert (answer.json()["names"], len(answer.json()["rows"]), answer.json()["problem"]) == ([], 2, None)


def test_a_text_file_may_end_in_the_middle_of_a_line(shared_house: House) -> None:
    text = ("größe,sex\n" + "1.5,f\n" * 100_000).encode()
    assert preview(shared_house, text[: 256 * 1024])["columns"][0]["high"] == 3


def test_an_unnamed_index_is_left_out(shared_house: House) -> None:
    found = preview(shared_house, b",age\n0,41\n1,67\n")
    assert (found["names"], [each["name"] for each in found["columns"]]) == (["", "age"], ["age"])


@pytest.mark.parametrize("write", [as_parquet, as_arrow], ids=["parquet", "arrow"])
def test_only_the_first_rows_are_shown_without_what_no_column_can_hold(
    shared_house: House, write: Any
) -> None:
    long = {
        "id": range(500),
        "note": ["é" * 300] * 500,
        "list": [[1, 2]] * 500,
        "day": [date(2024, 1, 1)] * 500,
    }
    found = preview(shared_house, write(pa.table(long)))
    rows = found["rows"]
    assert (found["names"], len(rows)) == (list(long), 200)
    assert rows[199] == ["199", "é" * 200, "", "2024-01-01"]


def test_wide_and_long_lines_are_bounded(shared_house: House) -> None:
    text = "a,b\n" + ("x" * 5000 + "," + "y" * 5000 + "\n") * 500
    found = preview(shared_house, text.encode())["rows"]
    assert found[0] == ["x" * 200, "y" * 200]
    assert len(found) < 201
    wide = ask(shared_house.carla, ",".join(f"c{i}" for i in range(1001)).encode())
    assert wide.json()["detail"] == "a table has at most 1000 columns, and this file has 1001"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%PDF-1.7", "this is a PDF document, not a table; export the table as CSV and upload that"),
        (b"", "the upload is empty; send a file with at least a header line"),
        (b"PAR1....", "the file cannot be read as Parquet; it may be incomplete: write it again"),
        (GOOD["npy"][1], "an array has no column names; describe its columns yourself"),
        (
            as_arrow(pa.Table.from_arrays([[1], [2]], names=["a", "a"]), stream=True),
            "the file has more than one column named a; rename or remove one",
        ),
    ],
)
def test_what_is_no_table_is_named_for_what_it_is(shared_house: House, content: bytes, words: str) -> None:
    answer = ask(shared_house.carla, content)
    assert (answer.status_code, answer.json()["detail"]) == (422, words)


def test_a_file_that_is_too_large_is_refused(sqlite_url: str, tmp_path: Any) -> None:
    house = House(sqlite_url, tmp_path, max_upload_bytes=1024)
    assert ask(house.carla, b"a,b\n" + b"1,1\n" * 1000).status_code == 413
    assert ask(house.carla, gzip.compress(b"a,b\n" + b"1,1\n" * 1000)).status_code == 413
    house.close()


def test_analysts_are_refused(shared_house: House) -> None:
    assert ask(shared_house.ada, FILES["parquet"]).status_code == 403


def test_nothing_is_stored(shared_house: House) -> None:
    def counts() -> dict[str, int | None]:
        with shared_house.database.read() as session:
            tables = Base.metadata.sorted_tables
            return {each.name: session.scalar(select(func.count()).select_from(each)) for each in tables}

    before = counts()
    preview(shared_house, FILES["parquet"])
    assert counts() == before


@pytest.mark.parametrize("name", [name for name in GOOD if "parquet" in name or "arrow" in name])
def test_a_damaged_file_is_shown_or_refused(shared_house: House, name: str) -> None:
    kind, content, _ = GOOD[name]
    chance = random.Random(3)
    found = {ask(shared_house.carla, damaged(content, chance), kind).status_code for _ in range(30)}
    assert found <= {200, 413, 415, 422}
