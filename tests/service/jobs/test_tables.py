"""Jobs on tables: columns and weights of a job, private scaling, and results in the curator's kinds."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

from core.questions.view import rounded_to_noise
from service.jobs.results.transcripts import replay
from tests.support.service import House

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "number", "low": 0, "high": 110, "whole": True},
    {"name": "cost", "kind": "number", "low": 1, "high": 100000, "log": True},
    {"name": "region", "kind": "category", "levels": ["north", "south", "east"], "weight": 0.5},
    {"name": "smoker", "kind": "boolean", "missing": "drop", "weight": 0.2},
    {"name": "visited", "kind": "date", "low": "2024-01-01", "high": "2024-12-31"},
    {"name": "bmi", "kind": "number", "low": 10, "high": 60, "role": "keep"},
]


def rows(count: int = 4000) -> bytes:
    """Two groups: young, cheap and northern in spring; old, dear and southern in autumn."""
    draw = np.random.default_rng(5)
    lines = ["age,cost,region,smoker,visited,bmi"]
    for number in range(count):
        old = number % 2
        age = int(np.clip(draw.normal(75 if old else 25, 5), 0, 110))
        cost = float(np.exp(draw.normal(np.log(20000 if old else 200), 0.5)))
        month, smoker = (10 if old else 4), ("yes" if draw.random() < (0.9 if old else 0.1) else "no")
        lines.append(
            f"{age},{cost:.2f},{'south' if old else 'north'},{smoker},2024-{month:02d}-"
            f"{1 + number % 28:02d},{'' if number % 20 == 0 else 25}"
        )
    return "\n".join(lines).encode()


@pytest.fixture
def patients(small_house: House) -> House:
    budget = {"epsilon": "10", "delta": "0.00001"}
    made = small_house.carla.post(
        "/v1/datasets", {"name": "patients", "table": COLUMNS, "size": 4000, "budget": budget}
    )
    assert made.status_code == 201, made.text
    assert small_house.upload(rows(), "patients").status_code == 200
    small_house.grant("ada", "patients", epsilon="10", delta="0.00001")
    return small_house


def request(**others: Any) -> dict[str, Any]:
    return {"dataset": "patients", "k": 2, "epsilon": "1", **others}


def finished(house: House, **others: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The result and the receipt of a job, and its place."""
    submitted = house.ada.post("/v1/jobs", request(**others))
    assert submitted.status_code == 202, submitted.text
    assert house.work()
    house.clock.move(3600)
    place = f"/v1/jobs/{submitted.json()['id']}"
    return house.ada.get(f"{place}/result").json(), house.ada.get(f"{place}/receipt").json(), place


def test_a_result_is_in_the_kinds_of_the_columns(patients: House) -> None:
    result, receipt, place = finished(patients, epsilon="5")
    young, old = sorted(result["profiles"], key=lambda profile: profile[0]["value"])
    assert [entry["measure"] for entry in young] == ["mean", "geometric mean", "shares", "rate", "mean"]
    assert young[0]["value"] == pytest.approx(25, abs=3)
    assert young[1]["value"] == pytest.approx(200, rel=0.3)
    assert old[1]["value"] == pytest.approx(20000, rel=0.3)
    assert old[1]["noise_factor"] > 1
    assert young[2]["shares"]["north"] > 0.9
    assert sum(young[2]["shares"].values()) == pytest.approx(1)
    assert old[3]["value"] == pytest.approx(0.9, abs=0.1)
    assert young[4]["value"].startswith("2024-04")
    levels = ["region=north", "region=south", "region=east"]
    assert result["columns"] == ["age", "cost", *levels, "smoker", "visited"]
    assert receipt["domain"]["clustered"]["columns"] == ["age", "cost", "region", "smoker", "visited"]
    assert receipt["domain"]["clustered"]["weights"]["region"] == 0.5
    assert "with the columns age, cost, region, smoker, visited" in receipt["explanation"][1]["answer"]
    transcript = patients.ada.get(f"{place}/transcript").content
    assert replay(receipt, transcript)["profiles"] == result["profiles"]


def test_a_result_as_csv_has_dates_and_shares(patients: House) -> None:
    result, _, place = finished(patients)
    text = patients.ada.get(f"{place}/result", headers={"Accept": "text/csv"}).text
    first = next(csv.DictReader(io.StringIO(text)))
    assert first["visited"] == result["profiles"][0][4]["value"]
    cost, region = result["profiles"][0][1:3]
    north = [region[part]["north"] for part in ("shares", "shares_low", "shares_high")]
    assert float(first["cost"]) == rounded_to_noise(cost["value"], cost["value_low"], cost["value_high"])[0]
    assert float(first["region=north"]) == rounded_to_noise(*north)[0]


def test_a_job_on_some_columns_is_planned_for_these_alone(patients: House) -> None:
    whole = patients.ada.post("/v1/plans", request()).json()
    some = patients.ada.post("/v1/plans", request(columns=["age", "region"], weights={"age": 2.0})).json()
    assert some["plan"]["inputs"]["clustered"] == {
        "columns": ["age", "region"], "weights": {"age": 2.0, "region": 0.5}, "scaling": "declared"
    }  # fmt: skip
    assert some["quote"] != whole["quote"]
    assert "noise_at_bounds" not in some["forecast"]  # columns of different kinds have no unit in common
    result, receipt, _ = finished(patients, columns=["age", "region"], weights={"age": 2.0})
    assert [entry["column"] for entry in result["profiles"][0]] == ["age", "region"]
    assert receipt["request"]["columns"] == ["age", "region"]
    assert receipt["inputs"]["clustered"]["weights"] == {"age": 2.0, "region": 0.5}


def test_private_scaling_is_a_step_of_the_plan_and_its_ranges_are_released(patients: House) -> None:
    plan = patients.ada.post("/v1/plans", request(scaling="private")).json()
    assert plan["plan"]["steps"][0]["name"] == "scaling-ranges"
    assert plan["forecast"]["scaling_share"] == 0.05
    assert plan["cost"] == patients.ada.post("/v1/plans", request()).json()["cost"]
    result, receipt, _ = finished(patients, scaling="private")
    low, high = result["details"]["ranges"]["age"]
    assert 0 <= low < 25 < 75 < high <= 110
    assert receipt["inputs"]["clustered"]["scaling"] == "private"
    assert receipt["steps"][0]["share"] > 0


def test_every_k_of_an_open_job_is_in_the_kinds_of_the_columns(patients: House) -> None:
    result, receipt, place = finished(patients, k={"from": 1, "to": 4}, epsilon="4", scaling="private")
    assert len(result["profiles"]) == result["range"]["suggested"]
    assert "age" in result["details"]["ranges"]
    transcript = patients.ada.get(f"{place}/transcript").content
    assert replay(receipt, transcript)["profiles"] == result["profiles"]
    two = patients.ada.get(f"{place}/result?k=2").json()
    young, old = sorted(two["profiles"], key=lambda profile: profile[0]["value"])
    assert [entry["measure"] for entry in young] == ["mean", "geometric mean", "shares", "rate", "mean"]
    for column in (1, 4):
        one, other = young[column], old[column]
        assert one["value_low"] <= one["value"] <= one["value_high"] < other["value_low"]
    for entry in (young[2], old[2]):
        assert sum(entry["shares"].values()) == pytest.approx(1)
        assert all(
            entry["shares_low"][level] <= share <= entry["shares_high"][level]
            for level, share in entry["shares"].items()
        )
    text = patients.ada.get(f"{place}/result?k=2", headers={"Accept": "text/csv"}).text
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["visited_low"] for line in lines] == [p[4]["value_low"] for p in two["profiles"]]
    costs = [[p[1][part] for part in ("value", "value_low", "value_high")] for p in two["profiles"]]
    assert [float(line["cost_high"]) for line in lines] == [rounded_to_noise(*each)[2] for each in costs]


def test_made_up_rows_of_a_table_are_records_of_its_kinds(patients: House) -> None:
    _, _, place = finished(patients, k={"from": 1, "to": 3}, epsilon="4")
    sent = patients.ada.get(f"{place}/sample?n=2000").json()
    assert sent["columns"] == ["age", "cost", "region", "smoker", "visited"]
    ages, costs, regions, smokers, visits = zip(*sent["rows"], strict=True)
    assert all(isinstance(age, int) and 0 <= age <= 110 for age in ages)
    assert all(1 <= cost <= 100_000 for cost in costs)
    assert set(regions) <= {"north", "south", "east"}
    assert set(smokers) == {True, False}
    assert all("2024-01-01" <= visit <= "2024-12-31" for visit in visits)
    # Northern patients are young and visit in spring, in these rows as in those they stand for.
    north = [age for age, region in zip(ages, regions, strict=True) if region == "north"]
    assert len(north) == pytest.approx(1000, abs=150)
    assert np.median(north) == pytest.approx(25, abs=4)
    array = np.load(
        io.BytesIO(patients.ada.get(f"{place}/sample?n=9", headers={"Accept": "application/x-npy"}).content)
    )
    assert array.dtype.names == tuple(sent["columns"])
    assert [str(day) for day in array["visited"]] == list(visits[:9])
    text = patients.ada.get(f"{place}/sample?n=2", headers={"Accept": "text/csv"}).text
    assert text.splitlines()[1].split(",")[2:] == [regions[0], str(smokers[0]), visits[0]]


def test_a_quote_binds_columns_weights_and_scaling(patients: House) -> None:
    quote = patients.ada.post("/v1/plans", request(columns=["age"])).json()["quote"]
    refused = patients.ada.post("/v1/jobs", request(columns=["cost"], quote=quote))
    assert refused.json()["type"] == "/problems/quote-mismatch"
    assert patients.ada.post("/v1/jobs", request(columns=["age"], quote=quote)).status_code == 202


def test_a_rehearsal_on_a_table_is_free(patients: House) -> None:
    result, _, _ = finished(patients, rehearsal=True, columns=["region", "visited"])
    assert [entry["measure"] for entry in result["profiles"][0]] == ["shares", "mean"]
    facts = patients.ada.get("/v1/datasets/patients").json()
    assert facts["cap"]["spent"]["epsilon"] == "0"


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (
            {"columns": ["bmi"]},
            "columns names bmi; the columns to choose from are: age, cost, region, smoker, visited",
        ),
        ({"columns": ["age", "age"]}, "each once"),
        ({"weights": {"size": 1}}, "weights names size"),
        ({"weights": {"age": 0}}, "column age: weight must be between"),
        ({"columns": ["region"], "scaling": "private"}, "the chosen columns have none"),
        ({"k": {"from": 1, "to": 5}, "objective": "medians"}, "a range of k is for means"),
    ],
)
def test_a_request_that_a_table_cannot_serve_is_refused(
    patients: House, others: dict[str, Any], words: str
) -> None:
    refused = patients.ada.post("/v1/plans", request(**others))
    assert refused.status_code == 422, refused.text
    assert words in refused.json()["detail"]


def test_columns_are_chosen_on_tables_only(shared_house: House) -> None:
    body = {"dataset": "flowers", "k": 2, "epsilon": "0.1", "columns": ["a"]}
    refused = shared_house.ada.post("/v1/plans", body)
    assert (refused.status_code, refused.json()["detail"]) == (422, "columns can be chosen on tables only")


def test_a_plan_says_which_columns_decide_and_fair_weights_follow_from_kinds(patients: House) -> None:
    """The table's region was declared with a weight of 0.5, which is three times its fair one."""
    declared = patients.ada.post("/v1/plans", request(columns=["age", "region"])).json()
    assert any("region outweighs age and will decide" in words for words in declared["warnings"])
    fair = patients.ada.post("/v1/plans", request(columns=["age", "region"], weights="fair")).json()
    assert not any("outweigh" in words for words in fair["warnings"])
    assert fair["plan"]["inputs"]["clustered"]["weights"] == {"age": 1.0, "region": 0.16}
