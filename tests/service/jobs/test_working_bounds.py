"""Working bounds: narrower than declared, typed or released; new jobs use them, earlier ones keep theirs."""

from __future__ import annotations

from math import exp, log
from typing import Any

import pytest

from core.data import Date, Number, domain_from_json
from core.questions import registry as questions
from service.jobs.results.transcripts import replay
from tests.service.jobs.test_questions import done, with_patients
from tests.support.service import House

PATH = "/v1/datasets/patients/working-bounds"


@pytest.fixture
def patients(small_house: House) -> House:
    return with_patients(small_house)


def ask(house: House, kind: str = "quantiles", **body: Any) -> str:
    """A job of the curator that has ended."""
    request = {"dataset": "patients", "kind": kind, "epsilon": "1", **body}
    if kind == "quantiles":
        request = {"columns": ["bmi", "cost"], "options": {"levels": [0.02, 0.98]}, **request}
    job = house.carla.post("/v1/jobs", request)
    assert job.status_code == 202, job.text
    assert house.work()
    house.clock.move(100)
    return str(job.json()["id"])


def put(house: House, *columns: dict[str, Any], status: int = 200) -> dict[str, Any]:
    answer = house.carla.put(PATH, {"columns": list(columns)})
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def receipt_of(house: House, job: str) -> dict[str, Any]:
    found: dict[str, Any] = house.carla.get(f"/v1/jobs/{job}/receipt").json()
    return found


def test_released_quantiles_become_bounds_and_everything_says_where_they_come_from(house: House) -> None:
    with_patients(house)
    earlier = done(house, k=2, columns=["age", "cost"])
    job = ask(house)
    values = house.carla.get(f"/v1/jobs/{job}/result").json()["findings"]["columns"]
    _, cost = ([min(each["values"]), max(each["values"])] for each in values)
    facts = put(house, {"column": "cost", "job": job}, {"column": "age", "low": 20, "high": 80})
    working = facts["working_bounds"]
    shown = {each["column"]: (each["low"], each["high"], each["origin"]) for each in working["columns"]}
    assert shown == {
        "cost": (pytest.approx(cost[0]), pytest.approx(cost[1]), f"released by job {job}"),
        "age": (20, 80, "typed by the curator"),
    }
    assert house.ada.get("/v1/datasets/patients").json()["working_bounds"] == working
    planned = house.ada.post(
        "/v1/plans", {"dataset": "patients", "k": 2, "columns": ["age", "cost"], "epsilon": "1"}
    ).json()
    assert planned["plan"]["inputs"]["domain"]["digest"] == working["digest"]
    assert any("working bounds of cost (released by job" in each for each in planned["warnings"])
    later = done(house, k=2, columns=["age", "cost"])
    receipt = receipt_of(house, later)
    assert receipt["working_bounds"] == working["columns"]
    answers = {each["question"]: each["answer"] for each in receipt["explanation"]}
    assert f"(released by job {job})" in answers["Where do narrower bounds come from?"]
    centres = house.ada.get(f"/v1/jobs/{later}/result").json()["centres"]
    assert all(20 <= age <= 80 and log(cost[0]) <= paid <= log(cost[1]) for age, paid in centres)
    transcript = house.ada.get(f"/v1/jobs/{later}/transcript").content
    assert replay(receipt, transcript)["centres"] == centres

    # Earlier jobs keep theirs, also for questions about them, and one ledger has it all.
    assert "working_bounds" not in receipt_of(house, earlier)
    for about, narrow in ((earlier, False), (later, True)):
        question = done(house, kind="profile", clusterings=[{"job": about}], columns=["cost"], epsilon="0.5")
        edges = house.ada.get(f"/v1/jobs/{question}/result").json()["findings"]["columns"][0]["edges"]
        assert (edges[0] == pytest.approx(cost[0])) == narrow
        assert ("working_bounds" in receipt_of(house, question)) == narrow
    mixed = {"clusterings": [{"job": earlier}, {"job": later}], "kind": "compare", "epsilon": "0.1"}
    refused = house.ada.post("/v1/plans", {"dataset": "patients", **mixed})
    assert refused.status_code == 422
    assert "different working bounds" in refused.json()["detail"]
    assert house.carla.post("/v1/datasets/patients/ledger/verify?whole=true").json()["ok"]
    recorded = house.carla.get("/v1/audit").json()["items"]
    (event,) = [each for each in recorded if each["action"] == "set-working-bounds"]
    assert event["details"]["columns"] == working["columns"]


def test_a_job_that_is_queued_keeps_the_bounds_in_which_it_was_planned(patients: House) -> None:
    house = patients
    request = {"dataset": "patients", "kind": "table", "columns": ["age"], "epsilon": "0.5"}
    quote = house.ada.post("/v1/plans", request).json()["quote"]
    queued = house.ada.post("/v1/jobs", {**request, "quote": quote}).json()["id"]
    digest = put(house, {"column": "age", "low": 30, "high": 50})["working_bounds"]["digest"]
    assert house.work()
    house.clock.move(100)
    edges = house.ada.get(f"/v1/jobs/{queued}/result").json()["findings"]["columns"][0]["edges"]
    assert (edges[0], edges[-1]) == (0, 110)
    # A quote of before is for another plan.
    again = house.ada.post("/v1/jobs", {**request, "quote": quote})
    assert again.json()["type"] == "/problems/quote-mismatch"
    narrow = done(house, **request)
    assert receipt_of(house, narrow)["inputs"]["domain"]["digest"] == digest
    found = house.ada.get(f"/v1/jobs/{narrow}/result").json()["findings"]
    edges, counts = found["columns"][0]["edges"], found["counts"]
    assert (edges[0], edges[-1]) == (30, 50)
    assert counts[0] + counts[-1] > sum(counts) / 4  # records outside lie at the ends

    assert house.carla.delete(PATH).status_code == 204
    assert house.carla.delete(PATH).status_code == 204
    assert house.carla.get("/v1/datasets/patients").json()["working_bounds"] is None
    plan = house.ada.post("/v1/plans", request).json()["plan"]
    declared = house.carla.get("/v1/datasets/patients").json()
    assert plan["inputs"]["domain"]["digest"] == domain_from_json(plan["domain"]).fingerprint != digest
    assert declared["state"] == "sealed"


def test_a_summary_proposes_three_spreads_around_the_mean(patients: House) -> None:
    job = ask(patients, "summary")
    (column,) = put(patients, {"column": "age", "job": job})["working_bounds"]["columns"]
    assert (column["low"], column["high"], column["job"]) == (0, 110, job)  # the groups lie far apart


@pytest.mark.parametrize(
    ("column", "mean", "spread", "bounds"),
    [
        (Number(name="x", low=0, high=100), 40.0, 5.0, (25, 55)),
        (Number(name="x", low=0, high=100), 10.0, 5.0, (0, 25)),
        (Number(name="x", low=0, high=100, whole=True), 40.5, 5.1, (25, 56)),
        (Number(name="x", low=1, high=1e6, log=True), 100.0, 0.5, (100 * exp(-1.5), 100 * exp(1.5))),
        (
            Date(name="x", low="2024-01-01", high="2024-12-31"),
            "2024-06-15",
            10.0,
            ("2024-05-16", "2024-07-15"),
        ),
        (Number(name="x", low=0, high=100), 40.0, 0.0, None),
    ],
)
def test_spreads_around_a_mean_are_on_the_line_of_the_column(
    column: Any, mean: Any, spread: float, bounds: tuple[Any, Any] | None
) -> None:
    findings = {"columns": [{"column": "x", "value": mean}], "coordinates": ["x"], "spreads": [spread]}
    found = questions.get("summary").bounds(findings, column)
    if bounds is None or isinstance(bounds[0], str):
        assert found == bounds
    else:
        assert found == pytest.approx(bounds)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ([{"column": "age", "low": 20, "high": 300}], "inside the declared ones"),
        ([{"column": "age", "low": 50, "high": 20}], "low must be below high"),
        ([{"column": "age", "low": "a", "high": "b"}], "numbers"),
        ([{"column": "region", "low": 0, "high": 1}], "only numbers, dates and times"),
        ([{"column": "age", "low": 20}], "give low and high, or the job"),
        ([{"column": "age", "low": 20, "high": 30}] * 2, "name each column once"),
    ],
)
def test_bounds_that_cannot_be_are_refused(patients: House, columns: list[Any], problem: str) -> None:
    refused = put(patients, *columns, status=422)
    assert problem in str(refused)


def test_bounds_are_never_those_of_a_job_that_has_not_released_them(patients: House) -> None:
    """Of an unfinished job, of another dataset, of a rehearsal, of a job whose end is still held back."""
    house = patients
    finished = ask(house)
    house.ready("flowers")
    elsewhere = house.carla.put(
        "/v1/datasets/flowers/working-bounds", {"columns": [{"column": "a", "job": finished}]}
    )
    assert elsewhere.status_code == 422
    assert "about another dataset" in elsewhere.json()["detail"]
    request = {"dataset": "patients", "kind": "quantiles", "columns": ["bmi"], "epsilon": "0.5"}
    queued = house.ada.post("/v1/jobs", request).json()["id"]
    bmi = {"column": "bmi", "job": queued}
    assert "not yet" in put(house, bmi, status=422)["detail"]
    assert house.work()
    assert house.carla.get(f"/v1/jobs/{queued}").json()["state"] == "succeeded"
    # Its analyst cannot see the end yet: bounds that follow it would tell how long the job ran.
    assert "not yet" in put(house, bmi, status=422)["detail"]
    house.clock.move(100)
    put(house, bmi)
    rehearsed = house.carla.post("/v1/jobs", {**request, "rehearsal": True}).json()["id"]
    assert house.work()
    house.clock.move(100)
    assert "made-up rows" in put(house, {"column": "bmi", "job": rehearsed}, status=422)["detail"]
    clustered = done(house, k=2, columns=["age"])
    assert "only quantiles" in put(house, {"column": "age", "job": clustered}, status=422)["detail"]
    assert "released no bounds of age" in put(house, {"column": "age", "job": finished}, status=422)["detail"]
    unknown = put(house, {"column": "bmi", "job": "0" * 36}, status=404)
    assert unknown["type"] == "/problems/not-found"


def test_numbers_in_a_box_have_working_bounds_and_sites_keep_the_declared_ones(small_house: House) -> None:
    house = small_house
    house.ready(budget={"epsilon": "5", "delta": "0.000001"})
    path = "/v1/datasets/flowers/working-bounds"
    answer = house.carla.put(path, {"columns": [{"column": "a", "low": 2, "high": 6}]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["bounds"]["box"]["high"] == [10, 4]
    job = house.submit("0.9").json()["id"]
    assert house.work()
    house.clock.move(100)
    assert all(2 <= a <= 6 for a, _ in house.ada.get(f"/v1/jobs/{job}/result").json()["centres"])
    sites = {"kind": "coordinates", "points": [[1, 1], [9, 3]]}
    body = {"dataset": "flowers", "k": 1, "epsilon": "0.1", "objective": "medians", "algorithm": "gupta"}
    planned = house.ada.post("/v1/plans", {**body, "options": {"sites": sites}})
    assert planned.status_code == 200, planned.text
    assert planned.json()["plan"]["domain"]["bounds"]["box"]["high"] == [10, 4]


def test_planned_times_count_the_look_up_of_values_in_working_bounds(small_house: House) -> None:
    house = small_house
    house.ready(size=30_000_000)

    def planned(**asked: Any) -> float:
        body = {"dataset": "flowers", "kind": "quantiles", "epsilon": "0.1", **asked}
        return float(house.carla.post("/v1/plans", body).json()["planned_seconds"])

    declared, rehearsal = planned(), planned(rehearsal=True)
    path = "/v1/datasets/flowers/working-bounds"
    assert house.carla.put(path, {"columns": [{"column": "a", "low": 1, "high": 8}]}).status_code == 200
    assert planned() >= 1.1 * declared
    assert planned(rehearsal=True) == rehearsal  # whose rows are drawn inside the bounds


def test_a_draft_and_ids_have_no_working_bounds(small_house: House) -> None:
    house = small_house
    house.create()
    path = "/v1/datasets/flowers/working-bounds"
    body = {"columns": [{"column": "a", "low": 2, "high": 6}]}
    assert house.carla.put(path, body).json()["type"] == "/problems/not-sealed"
    house.create("places", columns=None, bounds={"ids": {"count": 5}})
    assert house.upload(b"site\n1\n2\n", "places").status_code == 200
    refused = house.carla.put(
        "/v1/datasets/places/working-bounds", {"columns": [{"column": "site", "low": 0, "high": 1}]}
    )
    assert refused.status_code == 422
    assert "only tables, and columns of numbers in a box" in refused.json()["detail"]
