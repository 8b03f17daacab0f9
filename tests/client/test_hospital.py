"""A hospital's table from file to result, with the command alone and with Python alone, nothing deleted."""

from __future__ import annotations

import gzip
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.hospital import measured
from cairn_client import BadRows, Client, Column
from cairn_client.commands.common import ExitCode
from cairn_client.errors import BadFormat, CannotSeal
from tests.support.command import as_json, cairn, sentence
from tests.support.hospital import NAMES, REGIONS, as_text, hospital
from tests.support.live import Live
from tests.support.spreadsheets import spreadsheet
from tests.support.terminal import in_terminal

ROWS = hospital()
COLUMNS = [
    Column.id("patient_id"),
    Column.number("age", 0, 110, whole=True),
    Column.category("sex", ["female", "male"], weight=0.2),
    Column.category("region", REGIONS),
    Column.number("admissions", 0, 20, whole=True),
    Column.number("cost", 0, 1_000_000, log=True, offset=10),
    Column.number("bmi", 10, 60, missing="fill", fill=25),
    Column.date("visited", "2024-01-01", "2024-12-31", role="keep"),
    Column.boolean("smoker", weight=0.2),
]


#: A table that is declared for a budget.
BUDGET = ["--size", "20000", "--epsilon", "5", "--delta", "1e-5"]
PUBLIC = [f"--public={name}" for name in NAMES]


def exported(rows: list[list[str]]) -> bytes:
    """The table as a program writes it in Germany: semicolons, decimal commas, Latin-1."""
    places = [NAMES.index(name) for name in ("cost", "bmi")]
    written = [
        [cell.replace(".", ",") if place in places else cell for place, cell in enumerate(row)]
        for row in rows
    ]
    return as_text(written, ";").replace("west", "Köln").encode("latin-1")


def of(profiles: list[list[dict[str, Any]]], column: str) -> list[Any]:
    """What the centres have in one column."""
    entries = [next(entry for entry in profile if entry["column"] == column) for profile in profiles]
    return [entry["shares"] if "shares" in entry else entry["value"] for entry in entries]


def assert_found(profiles: list[list[dict[str, Any]]]) -> None:
    """Both groups of patients are among the centres."""
    ages, costs, regions = (of(profiles, name) for name in ("age", "cost", "region"))
    young, old = sorted(range(2), key=lambda place: ages[place])
    assert ages[young] == pytest.approx(31, abs=6)
    assert ages[old] == pytest.approx(74, abs=6)
    assert costs[old] > 4 * costs[young]
    assert regions[old]["south"] > 0.7
    assert all(sum(shares.values()) == pytest.approx(1) for shares in regions)


@pytest.mark.usefixtures("as_curator")
def test_the_command_takes_the_table_from_file_to_result(
    live: Live, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("hospital.csv").write_bytes(exported(ROWS))
    words = ["--public", "sex", "--public", "region", "--public-reading"]
    said = cairn("dataset", "describe", "hospital.csv", "-o", "table.json", *words)
    assert "Confirm or replace in it what came from rows, then" in said.stderr
    refused = cairn("dataset", "create", "wards", "--table", "table.json", *BUDGET, code=2)
    left = "admissions (kind, role, low, high, whole, missing); cost"
    assert left in " ".join(refused.stderr.split())
    _replace(Path("table.json"))
    made = as_json("dataset", "create", "wards", "--table", "table.json", *BUDGET)
    assert (made["kind"], made["id_column"]) == ("table", "patient_id")
    sex = next(column for column in made["table"] if column["name"] == "sex")
    assert sex["confirmed_from_rows"] == ["kind", "levels", "missing", "role"]
    assert made["reading"]["confirmed_from_rows"] == ["decimal", "encoding"]
    report = as_json("upload", "wards", "hospital.csv")
    assert (report["rows"], report["bad_rows"], report["ignored_columns"]) == (20_000, 0, [])
    assert [(each["name"], each["missing"] > 900) for each in report["columns"] if each["missing"]] == [
        ("bmi", True)
    ]
    assert report["read_as"] == "separated by semicolons, Windows-1252, decimal commas"
    cairn("dataset", "seal", "wards")
    assert "geometric mean" not in cairn("dataset", "show", "wards").stdout
    cairn("grant", "wards", "analyst", "--epsilon", "5", "--delta", "1e-5")
    monkeypatch.setenv("CAIRN_KEY", live.analyst_key)
    job = ["wards", "-k", "2", "--epsilon", "1", "--columns", "age,sex,region,cost"]
    job += ["--weight", "sex=0.1", "--weight", "region=0.2"]
    assert as_json("plan", *job)["fits"]
    cairn("submit", *job, "--watch")
    result = as_json("result")
    assert_found(result["profiles"])
    shown = cairn("result").stdout
    assert "cost (geometric mean)" in shown
    assert "south" in shown


def _replace(path: Path) -> None:
    """Write what the curator knows over what came from the rows, as the refusal says."""
    described = json.loads(path.read_text())
    known: dict[str, dict[str, Any]] = {
        "admissions": {"low": 0, "high": 20},
        "cost": {"low": 0, "high": 1_000_000, "log": True, "offset": 10},
        "bmi": {"missing": "fill", "fill": 25},
        "visited": {"low": "2024-01-01", "high": "2024-12-31"},
        "smoker": {"weight": 0.2},
    }
    for column in described["table"]:
        column.pop("from_rows", None)
        column.update(known.get(column["name"], {}))
    path.write_text(json.dumps(described))


def from_file_to_sealed(name: str, content: bytes, *confirmed: str) -> list[list[str]]:
    """The commands that seal a file as a dataset, all of which succeed; `confirmed` is its reading."""
    Path(f"{name}.csv").write_bytes(content)
    commands = [
        ["dataset", "describe", f"{name}.csv", *PUBLIC, *confirmed],
        ["dataset", "create", name, "--table", "table.json", *BUDGET],
        ["upload", name, f"{name}.csv"],
        ["dataset", "seal", name],
    ]
    for command in commands:
        cairn(*command)
    return commands


@pytest.mark.usefixtures("as_curator", "place")
def test_an_export_is_sealed_by_the_commands_of_a_plain_file_and_one_confirmation() -> None:
    plain = from_file_to_sealed("plain", as_text(ROWS).replace("west", "Köln").encode())
    export = from_file_to_sealed("export", exported(ROWS), "--public-reading")
    assert len(export) == len(plain) == 4
    for with_it, without in zip(export, plain, strict=True):
        words = [word.replace("export", "plain") for word in with_it]
        assert words == without + ["--public-reading"] * (with_it[1] == "describe")
    reports = [as_json("dataset", "show", name)["upload"] for name in ("plain", "export")]
    for facts in ("rows", "clipped_rows", "bad_rows", "columns"):
        assert reports[0][facts] == reports[1][facts]


@pytest.mark.usefixtures("as_curator", "place")
def test_a_person_at_a_terminal_answers_one_question_more_for_an_export() -> None:
    def questions(content: bytes) -> int:
        Path("hospital.csv").write_bytes(content)
        shown = in_terminal("dataset", "describe", "hospital.csv", prompt="[y/N]: ", typed="y\n" * 10)
        assert "Check it, then" in shown
        return shown.count("[y/N]")

    asked = [questions(as_text(hospital(300)).encode()), questions(exported(hospital(300)))]
    assert asked == [len(NAMES) - 1, len(NAMES)]  # not about the id, whose name says what it is


def test_python_takes_the_table_from_a_data_frame_to_a_result(live: Live) -> None:
    frame = pd.DataFrame(ROWS, columns=list(NAMES)).astype({"age": int, "admissions": int, "cost": float})
    frame["bmi"] = pd.to_numeric(frame["bmi"])
    frame["visited"] = pd.to_datetime(frame["visited"])
    frame["smoker"] = frame["smoker"] == "yes"
    frame["region"] = frame["region"].astype("category")
    wards = live.curator().create_dataset("wards-2", table=COLUMNS, size=20_000, epsilon=5, delta="1e-5")
    report = wards.upload(frame, seal=True)
    assert (report.rows, report.bad_rows, report.doubts) == (20_000, 0, [])
    assert next(each.missing for each in report.columns if each.name == "bmi") == frame["bmi"].isna().sum()
    wards.grant("analyst", 5, "1e-5")
    result = (
        live.analyst()
        .dataset("wards-2")
        .cluster(2, 1, columns=["age", "region", "cost"], weights={"region": 0.2})
    )
    assert_found(result.profiles)
    labels = result.predict(frame)
    old = max(range(2), key=lambda place: of(result.profiles, "age")[place])
    assert frame["age"][labels == old].median() > 60 > frame["age"][labels != old].median()
    result.plot().savefig(io.BytesIO())
    table = result.frame()
    assert table.loc[1, "age"] == result.profiles[0][0]["value"]
    assert "region=south" in table.columns


def test_default_choices_lead_from_a_file_to_findings_that_are_compared_with_the_truth(
    live: Live, tmp_path: Path
) -> None:
    """Of hundreds of intervals of 95% fewer than 0.7 hold in less than 1e-6 of runs."""
    ((finding, coverage),) = measured(live.curator(), 1, 1_000, tmp_path, np.random.default_rng(2))
    assert 3 <= finding.groups <= 5
    assert finding.reason.startswith(f"k = {finding.suggested}: ")
    assert coverage.kinds == ["clusters", "profile", "summary"]
    assert coverage.share() > 0.7


# --- what new users met first -------------------------------------------------------------------------------


def draft(client: Client, name: str, **others: Any) -> Any:
    return client.create_dataset(name, table=COLUMNS, size=20_000, epsilon=5, **others)


def small(**changes: str) -> str:
    """Some rows, one of which has other values in some columns."""
    rows = hospital(30)
    for name, value in changes.items():
        rows[4][NAMES.index(name)] = value
    return as_text(rows)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": "true"}, "line 6: age: “true” is not a number; declare the column as yes or no (boolean)"),
        ({"age": "forty"}, "line 6: age: “forty” is not a number; correct it"),
        ({"sex": "femal"}, "line 6: sex: “femal” is not one of the column's levels; did you mean “female”?"),
        ({"smoker": "perhaps"}, "line 6: smoker: “perhaps” is neither yes nor no"),
        ({"visited": "soon"}, "line 6: visited: “soon” is not a date; correct it"),
        ({"patient_id": ""}, "patient_id is missing in 1 row, and the column is declared to refuse"),
        ({"admissions": ""}, "admissions is missing in 1 row, and the column is declared to refuse"),
    ],
)
def test_a_bad_value_is_answered_with_column_value_and_advice(
    live: Live, changes: dict[str, str], words: str
) -> None:
    made = draft(live.curator(), "bad-values")
    try:
        with pytest.raises(BadRows) as refused:
            made.upload(small(**changes).encode(), kind="text/csv")
        assert words in str(refused.value)
    finally:
        made.discard()


@pytest.mark.usefixtures("as_curator")
def test_an_export_in_several_files_is_uploaded_as_one(live: Live, place: Path) -> None:
    made = draft(live.curator(), "several-files")
    rows = hospital(30)
    Path("one.csv").write_text("\ufeff" + as_text(rows[:10]), encoding="utf-8")
    Path("two.csv").write_text(as_text(rows[10:20]).rstrip())
    Path("three.csv.gz").write_bytes(gzip.compress(as_text(rows[20:]).encode()))
    paths = ["one.csv", "two.csv", "three.csv.gz"]
    assert made.upload(paths).rows == 30
    assert as_json("upload", "several-files", *paths)["rows"] == 30
    Path("two.csv").write_text(as_text(rows[10:20]).replace("age", "Age", 1))
    with pytest.raises(ValueError, match=r"the first line of two.csv is not that of one.csv"):
        made.upload(paths)
    Path("sheet.xlsx").write_bytes(spreadsheet([list(NAMES), *rows]))
    with pytest.raises(ValueError, match=r"sheet.xlsx is not delimited text"):
        made.upload(["one.csv", "sheet.xlsx"])
    made.discard()


def test_text_is_read_as_it_is_declared(live: Live) -> None:
    made = draft(live.curator(), "as-declared")
    semicolons = small(cost="1234.50").replace(",", ";").encode()
    made.edit(reading={"separator": ";"})
    assert made.upload(semicolons).rows == 30
    thousands = small(cost='"1,234.50"').encode()
    made.edit(reading={"thousands": ","})
    assert made.upload(thousands, kind="text/csv").rows == 30
    sheet = [list(NAMES), *hospital(30)]
    assert made.upload(spreadsheet(sheet)).format == "excel"
    made.discard()


def test_a_file_with_other_columns_is_told_which_it_lacks(live: Live) -> None:
    made = draft(live.curator(), "other-columns")
    with pytest.raises(BadFormat, match=r"lacks the column smoker; did you mean “smokers” by smoker\?"):
        made.upload(small().replace("smoker", "smokers", 1).encode(), kind="text/csv")
    made.discard()


def test_a_text_column_no_longer_seals_a_dataset_without_rows(live: Live) -> None:
    made = live.curator().create_dataset("no-rows", table=[COLUMNS[1]], size=30, epsilon=1)
    report = made.upload(b"age\nold\nyoung\n", kind="text/csv", on_bad_row="drop")
    assert (report.rows, report.columns[0].examples) == (0, ["old", "young"])
    with pytest.raises(Exception, match="no rows to seal"):
        made.seal()
    made.discard()


def test_bounds_that_clip_nearly_everything_are_asked_about(live: Live) -> None:
    narrow = [Column.number("age", 0, 20)]
    made = live.curator().create_dataset("narrow", table=narrow, size=30, epsilon=1)
    report = made.upload(small().encode(), kind="text/csv")
    assert "values of age lie outside its bounds" in report.doubts[0].detail
    with pytest.raises(CannotSeal, match="confirm clipped"):
        made.seal()
    made.discard()


@pytest.mark.usefixtures("as_curator")
def test_a_spreadsheet_is_described_and_becomes_a_dataset(live: Live, place: Path) -> None:
    Path("hospital.xlsx").write_bytes(spreadsheet([list(NAMES), *hospital(60)]))
    cairn("dataset", "describe", "hospital.xlsx", *PUBLIC)
    budget = ["--size", "60", "--epsilon", "1"]
    made = as_json("dataset", "create", "from-sheet", "--table", "table.json", *budget)
    kinds = {column["name"]: column["kind"] for column in made["table"]}
    assert (kinds["age"], kinds["region"], kinds["visited"]) == ("number", "category", "date")
    assert as_json("upload", "from-sheet", "hospital.xlsx")["rows"] > 50
    live.curator().dataset("from-sheet").discard()


@pytest.mark.usefixtures("as_curator", "place")
def test_a_first_line_of_data_is_never_taken_for_names() -> None:
    Path("headless.csv").write_text("\n".join(",".join(row) for row in hospital(5)))
    said = cairn("dataset", "describe", "headless.csv", code=2).stderr
    assert "looks like data" in said
    assert "p0" not in said
    assert not Path("table.json").exists()


@pytest.mark.usefixtures("as_curator", "place")
def test_a_bad_row_of_a_table_is_one_sentence_of_the_command(live: Live) -> None:
    made = draft(live.curator(), "one-sentence")
    Path("bad.csv").write_text(small(age="forty"))
    said = sentence(cairn("upload", "one-sentence", "bad.csv", code=ExitCode.BAD_DATA))
    assert "line 6: age: “forty” is not a number" in said
    made.discard()


# --- a file that is not written as its dataset declares -----------------------------------------------------


def declared(client: Client, name: str) -> dict[str, Any]:
    """How a draft reads text."""
    return client.dataset(name).facts.reading


def refused(name: str, content: bytes) -> list[str]:
    """What the command says about a file that does not fit, line by line."""
    Path(f"{name}.csv").write_bytes(content)
    lines = cairn("upload", name, f"{name}.csv", code=ExitCode.BAD_DATA).stderr.strip().splitlines()
    assert re.match("cairn: .*seems to be written otherwise", lines[0])
    assert "`reading`" not in lines[0]
    return [str(line) for line in lines[1:]]


@pytest.mark.usefixtures("as_curator", "place")
def test_an_upload_that_does_not_fit_ends_with_the_command_that_declares_it(live: Live) -> None:
    table = [Column.number("cost", 0, 1_000_000), Column.category("region", [*REGIONS, "Köln"])]
    made = live.curator().create_dataset("misread", table=table, size=60, epsilon=1)
    found, public, command, again = refused("misread", exported(hospital(60)))
    assert found == (
        "The file seems to be written like this, which misread does not declare: "
        'encoding windows-1252, separator ";", decimal ",".'
    )
    assert public == 'This came from the rows and would become public: decimal ",", encoding windows-1252.'
    assert again == "Then upload again."
    words = shlex.split(command.removeprefix("To declare that: cairn "))
    assert words[:3] == ["dataset", "edit", "misread"]
    cairn(*words)
    assert declared(live.curator(), "misread")["confirmed_from_rows"] == ["decimal", "encoding"]
    assert as_json("upload", "misread", "misread.csv")["rows"] == 60
    made.discard()


@pytest.mark.usefixtures("as_curator", "place")
def test_rows_that_do_not_fit_are_answered_with_what_to_declare(live: Live) -> None:
    made = live.curator().create_dataset("commas", table=[Column.number("cost", 0, 99)], size=60, epsilon=1)
    made.edit(reading={"separator": "\t", "quoted_lines": True})
    Path("commas.csv").write_text("cost\tnote\n1,5\tx\n2,5\tx\n")
    with pytest.raises(BadRows, match=r"read as its dataset declares .* seems to be written otherwise"):
        made.upload("commas.csv")
    _found, public, command, _again = refused("commas", b"cost\tnote\n1,5\tx\n2,5\tx\n")
    assert public == 'This came from the rows and would become public: decimal ",".'
    assert "cairn dataset edit commas --decimal , --confirmed-from-rows decimal" in command
    made.discard()


@pytest.mark.usefixtures("as_curator", "place")
def test_a_person_at_a_terminal_may_declare_it_and_upload_again_at_once(live: Live) -> None:
    table = [Column.number("cost", 0, 1_000_000)]
    made = live.curator().create_dataset("asked", table=table, size=60, epsilon=1)
    Path("asked.csv").write_bytes(exported(hospital(60)))
    shown = in_terminal("upload", "asked", "asked.csv", prompt="[y/N]: ", typed="y\n")
    assert "Declare that, and upload again?" in shown
    assert re.search(r"rows stored +60\b", shown)
    assert declared(live.curator(), "asked")["confirmed_from_rows"] == ["decimal", "encoding"]
    made.discard()


def test_a_refusal_carries_how_the_file_is_written(live: Live) -> None:
    made = live.curator().create_dataset("carried", table=[Column.number("cost", 0, 99)], size=60, epsilon=1)
    with pytest.raises(BadFormat) as misread:
        made.upload(exported(hospital(60)))
    proposed = misread.value.reading
    assert proposed is not None
    assert (proposed.facts["separator"], proposed.from_rows) == (";", ("decimal", "encoding"))
    made.edit(reading=proposed.confirmed().facts)
    assert made.upload(exported(hospital(60))).rows == 60
    with pytest.raises(BadFormat) as other:
        made.upload(b"age;bmi\n1;2\n", kind="text/csv")
    assert other.value.reading is None
    made.discard()


@pytest.mark.usefixtures("as_curator", "place")
def test_how_text_is_read_is_declared_by_options(live: Live) -> None:
    column = ["--column", "cost:0:1000000", "--size", "60", "--epsilon", "1"]
    signs = ["--separator", "tab", "--decimal", ",", "--thousands", "."]
    words = ["--encoding", "latin-1", *signs, "--quoted-lines"]
    made = as_json("dataset", "create", "by-options", *column, *words)["reading"]
    assert {**made, "confirmed_from_rows": None} == {
        "format": 2, "encoding": "latin-1", "separator": "\t", "decimal": ",", "thousands": ".",
        "quoted_lines": True, "header": True, "confirmed_from_rows": None,
    }  # fmt: skip
    edit = ["dataset", "edit", "by-options", "--separator", ";", "--confirmed-from-rows", "separator"]
    assert "confirmed_from_rows" in cairn(*edit, code=ExitCode.REFUSED).stderr  # the header line shows it
    edited = as_json(*edit[:-2], "--thousands", "", "--no-quoted-lines", "--confirmed-from-rows", "thousands")
    assert edited["reading"] == {
        **made, "separator": ";", "thousands": "", "quoted_lines": False,
        "confirmed_from_rows": ["thousands"],
    }  # fmt: skip
    shown = cairn("dataset", "show", "by-options").stdout
    assert re.search(r'text read as +encoding latin-1, separator ";", decimal ","\s', shown)
    live.curator().dataset("by-options").discard()


@pytest.mark.usefixtures("as_curator", "place")
def test_a_draft_takes_columns_and_reading_from_a_file_of_descriptions(live: Live) -> None:
    made = live.curator().create_dataset("later", table=[Column.number("cost", 0, 99)], size=60, epsilon=1)
    Path("hospital.csv").write_bytes(exported(hospital(60)))
    cairn("dataset", "describe", "hospital.csv", *PUBLIC, "--public-reading")
    edited = as_json("dataset", "edit", "later", "--table", "table.json")
    assert (edited["reading"]["separator"], len(edited["table"])) == (";", len(NAMES))
    assert as_json("upload", "later", "hospital.csv")["columns"][0]["name"] == "bmi"  # which has gaps
    made.discard()
