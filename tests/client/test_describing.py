"""Proposals for a file from its first lines: what is sent, and what the curator must confirm."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cairn_client.describing import Proposal
from cairn_client.errors import BadFormat
from cairn_client.uploading import first_lines
from tests.support.command import as_json, cairn
from tests.support.hospital import NAMES, hospital
from tests.support.live import Live
from tests.support.spreadsheets import spreadsheet
from tests.support.terminal import in_terminal

# --- what is sent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_the_first_256_kib_of_a_text_file_are_sent(tmp_path: Path, encoding: str, packed: bool) -> None:
    text = ("größe;straße\n" + "1,5;Süd\n" * 100_000).encode(encoding)
    (tmp_path / "rows").write_bytes(gzip.compress(text) if packed else text)
    assert first_lines(tmp_path / "rows") == text[: 256 * 1024]


@pytest.mark.parametrize(
    "content",
    [b"PK\x03\x04...", b"PAR1...", b"ARROW1..", b"\xff\xff\xff\xff\0\0"],
    ids=["spreadsheet", "Parquet", "Arrow", "Arrow stream"],
)
def test_of_a_file_of_another_format_no_lines_are_taken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows").write_bytes(content)
    assert first_lines(tmp_path / "rows") is None
    (tmp_path / "rows").write_bytes(gzip.compress(content))
    assert first_lines(tmp_path / "rows") is None


def test_the_service_describes_files_of_any_format(live: Live, tmp_path: Path) -> None:
    rows = [list(NAMES), *hospital(60)]
    text = "\n".join(";".join(row) for row in rows).encode("utf-16")
    files = {"rows.txt": text, "rows.csv.gz": gzip.compress(text), "rows.xlsx": spreadsheet(rows)}
    found = []
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        found.append(live.curator().describe(tmp_path / name))
    assert [each.facts.format for each in found] == ["csv", "csv", "excel"]
    assert [each.reading.facts["separator"] for each in found] == [";", ";", ","]
    assert found[0].columns == found[1].columns == found[2].columns
    assert [each.facts["kind"] for each in found[0].columns][:3] == ["text", "number", "category"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b"a,b\n1,x\n")[:-9], "the gzip file is empty or incomplete; compress it again"),
        (b"%PDF-1.7", "this is a PDF document, not a table"),
        (b"", "the upload is empty; send a file with at least a header line"),
    ],
    ids=["damaged", "PDF", "empty"],
)
def test_a_file_that_cannot_be_described_is_refused(
    live: Live, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "rows.csv.gz").write_bytes(content)
    with pytest.raises(BadFormat, match=words):
        live.curator().describe(tmp_path / "rows.csv.gz")


# --- what is confirmed or replaced --------------------------------------------------------------------------

COST = Proposal({"name": "cost", "kind": "number", "low": 0, "high": 987}, ("kind", "low", "high"))


def test_what_is_confirmed_is_declared_as_taken_from_rows() -> None:
    known = COST.confirmed()
    assert known == Proposal({**COST.facts, "confirmed_from_rows": ["high", "kind", "low"]})
    assert known.confirmed() == known


def test_what_is_replaced_did_not_come_from_rows() -> None:
    known = COST.replaced({"low": 0, "high": 10_000})
    assert known == Proposal({**COST.facts, "low": 0, "high": 10_000}, ("kind",))
    assert COST.confirmed().replaced({"high": 10_000}).facts["confirmed_from_rows"] == ["kind", "low"]


def test_a_proposal_is_read_as_it_is_written() -> None:
    assert Proposal.read(COST.to_json()) == COST


# --- every fact that rows decided is marked, and asked about ------------------------------------------------

DAY = NAMES.index("visited")
NOTE = len(NAMES)


def table() -> list[list[str]]:
    """A hospital's rows with dates whose order is open, and a column of notes that is left out."""
    rows = [[*row, f"note {place}"] for place, row in enumerate(hospital(200))]
    for place, row in enumerate(rows):
        row[DAY] = f"{place % 12 + 1}/{place % 11 + 1}/2024"
    return rows


def described(rows: list[list[str]], *options: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What the command writes about these rows: how they are read, and their columns by name."""
    write(rows)
    cairn("dataset", "describe", "rows.csv", *options)
    found = json.loads(Path("table.json").read_text())
    return found["reading"], {each["name"]: each for each in found["table"]}


def write(rows: list[list[str]]) -> None:
    lines = [";".join(row) for row in [[*NAMES, "note"], *rows]]
    Path("rows.csv").write_bytes("\n".join(lines).encode("latin-1"))


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)} - {"from_rows"}


#: For each fact of a column a cell that changes it: column, cell, facts that change.
CELLS: list[tuple[str, str, set[str]]] = [
    ("age", "41.5", {"whole"}),
    ("age", "", {"missing"}),
    ("admissions", "many", {"kind", "low", "high", "whole", "levels"}),
    ("cost", "1000000", {"high"}),
    ("cost", "0", {"low", "log"}),
    ("sex", "other", {"levels"}),
    ("sex", "x" * 129, {"kind", "role", "levels", "missing"}),
    ("visited", "12/31/2024", {"order"}),
]
#: For each fact of how text is read a note that changes it.
NOTES = [("encoding", "Süd"), ("decimal", "12,5"), ("thousands", "1,234.5"), ("quoted_lines", '"two\nlines"')]


@pytest.mark.usefixtures("as_curator")
@pytest.mark.parametrize(("column", "cell", "facts"), CELLS)
def test_a_fact_of_a_column_that_one_row_changes_is_marked(column: str, cell: str, facts: set[str]) -> None:
    rows = table()
    before = described(rows)[1][column]
    rows[17][NAMES.index(column)] = cell
    after = described(rows)[1][column]
    assert changed(before, after) == facts
    for found in (before, after):
        assert facts & found.keys() <= set(found["from_rows"])


def test_each_fact_of_a_column_is_changed_by_some_row() -> None:
    facts = {"kind", "role", "levels", "low", "high", "log", "whole", "missing", "order"}
    assert set().union(*(each[2] for each in CELLS)) == facts


@pytest.mark.usefixtures("as_curator")
@pytest.mark.parametrize(("fact", "note"), NOTES)
def test_a_fact_of_how_text_is_read_that_one_row_changes_is_marked(fact: str, note: str) -> None:
    rows = [[*row[:NOTE], "x"] for row in table()]
    for row in rows:
        row[NAMES.index("cost")] = row[NAMES.index("bmi")] = "1"  # no other number shows a decimal sign
    before = described(rows)[0]
    rows[17][NOTE] = note
    after = described(rows)[0]
    assert fact in changed(before, after)
    assert changed(before, after) <= set(after["from_rows"])


@pytest.mark.usefixtures("as_curator")
def test_a_person_at_a_terminal_is_asked_about_every_fact_from_rows() -> None:
    rows = table()
    for row in rows:
        row[NAMES.index("cost")] = row[NAMES.index("cost")].replace(".", ",")
        row[NAMES.index("bmi")] = "1"
    rows[17][NOTE], rows[18][NOTE], rows[19][NOTE] = "Süd", "1.234,5", '"two\nlines"'
    reading, columns = described(rows)
    assert set(reading["from_rows"]) == {"encoding", "decimal", "thousands", "quoted_lines"}
    marked = {**columns, "How the text is read": reading}
    asked = [name for name, each in marked.items() if each["from_rows"]]
    shown = in_terminal(
        "dataset", "describe", "rows.csv", prompt="[y/N]: ", typed="y\n" * (len(asked) - 1) + "n\n"
    )
    questions = dict(re.findall(r"(?m)^([\w ]+): (.*) This came from the rows\..*\[y/N\]", shown))
    assert sorted(questions) == sorted(asked)
    for name, words in questions.items():
        for fact in marked[name]["from_rows"]:
            assert re.search(rf"\b{fact.replace('_', ' ')} \S", words), (name, fact)
    assert 'decimal ",", encoding windows-1252, thousands "."' in questions["How the text is read"]
    assert "levels female/male" in questions["sex"]
    written = json.loads(Path("table.json").read_text())
    assert written["reading"]["from_rows"] == []
    assert set(written["reading"]["confirmed_from_rows"]) == set(reading["from_rows"])
    assert [each["name"] for each in written["table"] if each["from_rows"]] == ["note"]


@pytest.mark.usefixtures("as_curator")
def test_nothing_is_declared_before_every_fact_from_rows_is_confirmed_or_replaced() -> None:
    rows = table()
    rows[17][NOTE] = "Süd"
    described(rows, *(f"--public={name}" for name in (*NAMES[2:], "note")))
    create = ["dataset", "create", "marked", "--table", "table.json", "--size", "200", "--epsilon", "1"]
    refused = " ".join(cairn(*create, code=2).stderr.split())
    assert "age (kind, role, whole, missing); how the text is read (encoding)" in refused
    found = json.loads(Path("table.json").read_text())
    age = next(each for each in found["table"] if each["name"] == "age")
    age["confirmed_from_rows"], age["from_rows"] = age["from_rows"][:2], []
    Path("table.json").write_text(json.dumps(found))
    refused = " ".join(cairn(*create, code=2).stderr.split())
    assert "would become public: how the text is read (encoding). Move" in refused
    made = as_json(*create, "--encoding", "latin-1")
    assert made["reading"]["encoding"] == "latin-1"
    assert made["reading"]["confirmed_from_rows"] == []
    columns = {each["name"]: each.get("confirmed_from_rows") for each in made["table"]}
    assert columns["age"] == ["kind", "role"]
    assert as_json("upload", "marked", "rows.csv")["rows"] == sum(
        row[NAMES.index("bmi")] != "" for row in rows
    )
    cairn("dataset", "discard", "marked", "--yes")


@pytest.mark.usefixtures("as_curator")
def test_the_command_says_where_the_first_lines_go(live: Live) -> None:
    write(table())
    said = cairn("dataset", "describe", "rows.csv").stderr
    assert f"Sending the first lines of rows.csv to your service, {live.url}. It stores nothing." in said


@pytest.mark.usefixtures("as_curator")
def test_a_column_that_the_file_does_not_have_is_named() -> None:
    write(table())
    assert "rows.csv has no column costs" in cairn(
        "dataset", "describe", "rows.csv", "--public", "costs", code=2
    ).stderr.replace("\n", " ")
