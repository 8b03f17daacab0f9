"""No cell of a CSV file is a formula, whatever columns, levels and purposes are called."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, get_args

import pytest

from cairn_client import csv_cells as of_the_client
from cairn_client.findings import Findings
from service.http.wire import JobKind
from service.maintenance import export_ledgers
from service.operations.csv_cells import escaped
from tests.support.service import House

RUN = "=cmd|' /C calc'!A0"
SUM, LINK, MINUS = "@SUM(A1:A9)", "+HYPERLINK(A1)", "-1+cmd|' /C calc'!A0"
COLUMNS: list[dict[str, Any]] = [
    {"name": RUN, "kind": "category", "levels": [SUM, LINK, "north"]},
    {"name": SUM, "kind": "number", "low": -10, "high": 10},
    {"name": MINUS, "kind": "boolean"},
]
ASKED: dict[str, dict[str, Any]] = {
    "profile": {"clusterings": 1},
    "explain": {"clusterings": 1, "options": {"picks": 2}},
    "table": {"columns": [RUN, SUM]},
    "quantiles": {"columns": [SUM], "options": {"levels": [0.5]}},
    "summary": {},
    "compare": {"clusterings": 2},
}


def cells(text: str) -> list[str]:
    """All cells of a CSV file, none of which may be a formula unless it is a number."""
    found = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
    for cell in found:
        assert cell[:1] not in ("=", "@", "\t", "\r"), cell
        assert cell[:1] not in ("+", "-") or not any(sign in cell for sign in "|!ABC"), cell
    return found


def with_formulas(house: House) -> House:
    budget = {"epsilon": "20", "delta": "0.00001"}
    made = {"name": "sheet", "table": COLUMNS, "size": 300, "budget": budget, "description": RUN}
    assert house.carla.post("/v1/datasets", made).status_code == 201
    text = io.StringIO()
    lines = ([(SUM, LINK)[i % 2], 9 * (-1) ** i, i % 2] for i in range(300))
    csv.writer(text).writerows([[RUN, SUM, MINUS], *lines])
    assert house.upload(text.getvalue().encode(), "sheet").status_code == 200
    terms = {**budget, "kinds": list(get_args(JobKind)), "purpose": RUN, "permit": LINK}
    assert house.carla.put("/v1/datasets/sheet/grants/ada", terms).status_code == 200
    return house


def done(house: House, **body: Any) -> str:
    submitted = house.ada.post("/v1/jobs", {"dataset": "sheet", "epsilon": "1", **body})
    assert submitted.status_code == 202, submitted.text
    assert house.work()
    house.clock.move(100)
    return f"/v1/jobs/{submitted.json()['id']}"


def test_no_cell_of_any_csv_answer_is_a_formula(house: House, tmp_path: Path) -> None:
    with_formulas(house)

    def fetched(path: str) -> list[str]:
        answer = house.ada.get(path, headers={"Accept": "text/csv"})
        assert answer.headers["content-type"].startswith("text/csv"), answer.text
        walked.add(path.replace(about, "/v1/jobs/{job_id}").replace("/sheet/", "/{name}/").partition("?")[0])
        return cells(answer.text)

    walked: set[str] = set()
    about = done(house, k={"from": 1, "to": 3})
    result = fetched(f"{about}/result")
    assert {f"'{RUN}={SUM}", f"'{SUM}", f"'{MINUS}"} <= set(result)
    assert {f"'{SUM}", f"'{LINK}"} & set(fetched(f"{about}/sample?n=20")[3:])
    assert {f"'{RUN}", f"'{LINK}"} <= set(fetched("/v1/datasets/sheet/ledger"))
    described = house.ada.get("/openapi.json").json()["paths"].items()
    answers = {path: each["get"]["responses"].get("200", {}) for path, each in described if "get" in each}
    assert walked == {path for path, answer in answers.items() if "text/csv" in answer.get("content", ())}
    for kind, asked in ASKED.items():
        named = [{"job": about.rpartition("/")[2], "k": 2}] * asked.get("clusterings", 0)
        body = {**asked, "clusterings": named} if named else asked
        job = done(house, kind=kind, **body)
        answer = house.ada.get(f"{job}/result", headers={"Accept": "text/csv"}).text
        assert kind == "compare" or any(cell[:2] in ("'=", "'@", "'-") for cell in cells(answer)), kind
        if kind == "table":
            frame = Findings.frame(_Fetched(answer))
            assert list(frame.columns[:2]) == [RUN, SUM]
            assert set(frame[RUN]) == {SUM, LINK, "north"}
    export_ledgers(house.database, tmp_path)
    assert "'=" not in (tmp_path / "sheet.csv").read_text()  # names nothing that could be one
    cells((tmp_path / "sheet.csv").read_text())


class _Fetched(Findings):
    """Findings that have nothing but their CSV."""

    def __init__(self, text: str):
        self._csv = lambda: text


@pytest.mark.parametrize("module", [escaped, of_the_client.escaped], ids=["service", "client"])
def test_texts_are_escaped_and_numbers_are_not(module: Any) -> None:
    formulas = ["=1", "+A1", "-A1", "@x", "\t=1", "\r=1", "'=1", "''@x", "-1+cmd|x", "-1 toA1", "-5 to A1"]
    assert module(formulas) == [f"'{text}" for text in formulas]
    texts = ["", "a=1", "it's", "'a", "-5", "+3.25e-07", "-1e-05", "-10 to -5", "-3.5 (-4 to 1,200)"]
    texts += ["−3 points (−4 to +2 points)", "+3 points (+2 to +4 points)"]
    assert module([*texts, -5, -0.5, None, True]) == [*texts, -5, -0.5, None, True]


def test_the_client_writes_cells_as_the_service_does() -> None:
    """It imports nothing of the service, so it has the same module again."""
    import service.operations.csv_cells as of_the_service

    assert Path(of_the_client.__file__ or "").read_text() == Path(of_the_service.__file__ or "").read_text()
