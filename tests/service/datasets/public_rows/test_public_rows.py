"""Public rows: attached by the owner, named by plans and receipts, kept for the jobs planned with them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from httpx import Response

from service.jobs.results.transcripts import replay
from tests.support.service import House

PATH = "/v1/datasets/digits/public-rows"
WIDTH = 70
NPY = {"Content-Type": "application/x-npy"}
ASKED = {"dataset": "digits", "k": 2, "epsilon": "0.2", "delta": "0.0000001"}


def rows(count: int, seed: int) -> npt.NDArray[np.float64]:
    """Two groups that differ in ten columns."""
    draw = np.random.default_rng(seed)
    middles = np.where(np.arange(WIDTH) < 10, np.array([[1.0], [-1.0]]), 0.0)
    made = middles[draw.integers(2, size=count)] + draw.normal(scale=0.3, size=(count, WIDTH))
    return np.clip(made, -2, 2)


def npy(values: npt.NDArray[np.float64]) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def with_digits(house: House) -> House:
    """A sealed dataset of 70 columns that ada may use."""
    bounds = {"box": {"low": -2, "high": 2}}
    facts: dict[str, Any] = {"columns": None, "dimension": WIDTH, "bounds": bounds}
    assert house.create("digits", size=100_000, **facts).status_code == 201
    assert house.upload(npy(rows(2000, 1)), "digits", "application/x-npy").status_code == 200
    assert house.grant("ada", "digits").status_code == 200
    return house


@pytest.fixture
def digits(small_house: House) -> House:
    return with_digits(small_house)


def put(house: House, values: npt.NDArray[np.float64], public: str = "true") -> Response:
    return house.carla.call("PUT", PATH, content=npy(values), params={"public": public}, headers=NPY)


def inputs(house: House, **changes: Any) -> dict[str, Any]:
    answer = house.ada.post("/v1/plans", {**ASKED, **changes})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["plan"]["inputs"]
    return found


def submit(house: House, **changes: Any) -> str:
    answer = house.ada.post("/v1/jobs", {**ASKED, **changes})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


@pytest.mark.both_databases
def test_public_rows_are_facts_of_the_dataset_and_named_by_plans_and_receipts(house: House) -> None:
    with_digits(house)
    assert house.ada.get("/v1/datasets/digits").json()["public_rows"] is None
    answer = put(house, rows(60, 2))
    assert answer.status_code == 200, answer.text
    facts = answer.json()["public_rows"]
    assert facts["rows"] == 60
    assert house.ada.get("/v1/datasets/digits").json()["public_rows"] == facts
    named = {"count": 60, "digest": facts["digest"]}
    assert inputs(house)["public_rows"] == named

    job = submit(house)
    assert house.work()
    house.clock.move(100)
    receipt = house.ada.get(f"/v1/jobs/{job}/receipt").json()
    assert receipt["inputs"]["public_rows"] == named
    told = {each["question"]: each["answer"] for each in receipt["explanation"]}
    assert facts["digest"] in told["Which other rows were used?"]
    centres = house.ada.get(f"/v1/jobs/{job}/result").json()["centres"]
    transcript = house.ada.get(f"/v1/jobs/{job}/transcript").content
    assert replay(receipt, transcript)["centres"] == centres
    recorded = house.carla.get("/v1/audit").json()["items"]
    (event,) = [each for each in recorded if each["action"] == "set-public-rows"]
    assert event["details"] == {"rows": 60, "digest": facts["digest"]}


def test_a_request_can_do_without(digits: House) -> None:
    assert put(digits, rows(60, 2)).status_code == 200
    assert "public_rows" not in inputs(digits, public_rows=False)
    assert "public_rows" not in inputs(digits, objective="medians")
    question = {"dataset": "digits", "kind": "summary", "columns": ["x0"], "epsilon": "0.1"}
    refused = digits.carla.post("/v1/plans", {**question, "public_rows": False})
    assert refused.status_code == 422


def test_queued_jobs_keep_the_rows_that_they_were_planned_with(digits: House) -> None:
    assert put(digits, rows(60, 2)).status_code == 200
    first = inputs(digits)["public_rows"]
    queued = submit(digits)
    assert put(digits, rows(60, 3)).status_code == 200
    second = submit(digits)
    assert digits.carla.delete(PATH).status_code == 204
    assert digits.carla.delete(PATH).status_code == 204
    assert "public_rows" not in inputs(digits)
    assert digits.work()
    assert digits.work()
    digits.clock.move(100)
    receipts = [digits.ada.get(f"/v1/jobs/{job}/receipt").json() for job in (queued, second)]
    assert [receipt["inputs"]["public_rows"] == first for receipt in receipts] == [True, False]


def test_a_rehearsal_uses_them_too_and_costs_nothing(digits: House) -> None:
    assert put(digits, rows(60, 2)).status_code == 200
    job = submit(digits, rehearsal=True)
    assert digits.work()
    digits.clock.move(100)
    assert "public_rows" in digits.ada.get(f"/v1/jobs/{job}/receipt").json()["inputs"]
    assert digits.ada.get("/v1/datasets/digits").json()["budget"]["spent"]["epsilon"] == "0"


def test_the_same_rows_again_are_a_repetition(digits: House) -> None:
    before = put(digits, rows(60, 2)).json()["public_rows"]
    digits.clock.move(10)
    assert put(digits, rows(60, 2)).json()["public_rows"] == before


def test_rows_must_be_confirmed_to_be_public(digits: House) -> None:
    refused = put(digits, rows(60, 2), public="false")
    assert refused.status_code == 422
    assert "confirm with public=true" in refused.json()["detail"]
    assert digits.ada.get("/v1/datasets/digits").json()["public_rows"] is None


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (rows(60, 2)[:, :5], "bad-format"),
        (rows(19, 2), "bad-format"),
        (np.where(rows(60, 2) > 1.2, np.nan, rows(60, 2)), "bad-rows"),
        (np.zeros((10_001, WIDTH)), "bad-format"),
    ],
    ids=["too few columns", "too few rows", "missing values", "too many rows"],
)
def test_rows_that_no_job_could_use_are_refused(
    digits: House, values: npt.NDArray[np.float64], problem: str
) -> None:
    refused = put(digits, values)
    assert refused.status_code == 422, refused.text
    assert refused.json()["type"].endswith(problem)


def test_rows_outside_the_bounds_are_clipped(digits: House) -> None:
    inside = put(digits, np.clip(3 * rows(60, 2), -2, 2)).json()["public_rows"]
    assert put(digits, 3 * rows(60, 2)).json()["public_rows"] == inside


def test_tables_take_no_public_rows(small_house: House) -> None:
    columns = [{"name": "age", "kind": "number", "low": 0, "high": 100}]
    assert small_house.create("people", columns=None, bounds=None, table=columns).status_code == 201
    assert small_house.upload(b"age\n" + b"40\n" * 30, "people").status_code == 200
    path, csv = "/v1/datasets/people/public-rows", {"Content-Type": "text/csv"}
    content = b"age\n" + b"40\n" * 30
    refused = small_house.carla.call("PUT", path, content=content, params={"public": "true"}, headers=csv)
    assert refused.status_code == 422
    assert "dense columns" in refused.json()["detail"]


def test_public_rows_are_read_as_the_rows_of_their_dataset(small_house: House) -> None:
    small_house.create(reading={"separator": ";", "decimal": ","})
    content = b"a;b\n" + b"1,5;2\n2,5;1\n" * 20
    assert small_house.upload(content).status_code == 200
    path, csv = "/v1/datasets/flowers/public-rows", {"Content-Type": "text/csv"}
    answer = small_house.carla.call("PUT", path, content=content, params={"public": "true"}, headers=csv)
    assert answer.json()["public_rows"]["rows"] == 40
