"""Questions about a dataset by the clusters of another one: this year's records by last year's centres."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.jobs.test_questions import clustering, done, result, with_patients
from tests.service.jobs.test_tables import COLUMNS, rows
from tests.support.service import House

BUDGET = {"epsilon": "10", "delta": "0.00001"}


@pytest.fixture
def years(small_house: House) -> House:
    """Two tables with the same columns, the later one in another order; ada may ask about both."""
    house = with_patients(small_house)
    later = {"name": "later", "table": [*COLUMNS[1:], COLUMNS[0]], "size": 5000, "budget": BUDGET}
    assert house.carla.post("/v1/datasets", later).status_code == 201
    assert house.upload(rows(), "later").status_code == 200
    kinds = ["cluster", "profile", "compare"]
    assert house.carla.put("/v1/datasets/later/grants/ada", {**BUDGET, "kinds": kinds}).status_code == 200
    assert house.carla.put("/v1/datasets/later/grants/ben", {**BUDGET, "kinds": kinds}).status_code == 200
    return house


def spent(house: House, dataset: str) -> float:
    return float(house.ada.get(f"/v1/datasets/{dataset}").json()["cap"]["spent"]["epsilon"])


def asked(job: str, **body: Any) -> dict[str, Any]:
    about = {"clusterings": [{"job": job}], "columns": ["smoker"], "kind": "profile", "epsilon": "3"}
    return {"dataset": "later", **about, **body}


def test_records_are_profiled_by_the_clusters_of_another_dataset_and_it_alone_is_charged(
    years: House,
) -> None:
    """Both tables hold the same rows, so that the same centres must divide them alike."""
    job = clustering(years, epsilon="3", columns=["age", "region"])
    own = result(years, done(years, **asked(job, dataset="patients")))["findings"]
    before = {name: spent(years, name) for name in ("patients", "later")}
    found = result(years, done(years, **asked(job)))
    assert spent(years, "patients") == before["patients"]
    assert spent(years, "later") - before["later"] == pytest.approx(3)
    assert [each["job"] for each in found["clusterings"]] == [job]
    assert found["findings"]["sizes"] == pytest.approx(own["sizes"], abs=25)
    assert found["findings"]["columns"][0]["rates"] == pytest.approx(own["columns"][0]["rates"], abs=0.05)


def test_two_profiles_by_the_same_clusters_stand_side_by_side(years: House) -> None:
    """Both tables hold the same rows: hardly any difference may look certain."""
    job = clustering(years, epsilon="3", columns=["age", "region"])
    first, second = (done(years, **asked(job, dataset=name)) for name in ("patients", "later"))
    answer = years.ada.get(f"/v1/jobs/{first}/differences?second={second}")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [found[name]["dataset"] for name in ("first", "second")] == ["patients", "later"]
    words, sizes, changes, *bars = found["view"]
    assert int(words["text"].split()[0]) <= 3
    assert [len(sizes["rows"]), len(bars)] == [2, 2]
    assert {row[1] for row in changes["rows"]} == {"smoker"}
    assert [series["name"] for series in bars[0]["series"]] == ["First", "Second"]
    refused = years.ada.get(f"/v1/jobs/{first}/differences?second={job}")
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/invalid-request")
    assert years.ben.get(f"/v1/jobs/{first}/differences?second={second}").status_code == 404


def test_clusters_of_both_datasets_are_compared_on_one(years: House) -> None:
    first = clustering(years, epsilon="3")
    second = clustering(years, dataset="later", epsilon="3")
    pair = {"kind": "compare", "clusterings": [{"job": first}, {"job": second}], "epsilon": "3"}
    found = result(years, done(years, dataset="later", **pair))["findings"]
    assert found["agreement"] > 0.9


def test_clusters_that_the_caller_cannot_see_are_not_there(years: House) -> None:
    job = clustering(years)
    refused = years.ben.post("/v1/plans", asked(job))
    assert (refused.status_code, refused.json()["type"]) == (404, "/problems/not-found")
    assert years.ben.post("/v1/jobs", asked(job)).status_code == 404


def test_columns_that_mean_something_else_are_refused(years: House) -> None:
    wider = [{**column, "high": 200} if column["name"] == "age" else column for column in COLUMNS]
    body = {"name": "wider", "table": wider, "size": 4000, "budget": BUDGET}
    assert years.carla.post("/v1/datasets", body).status_code == 201
    assert years.upload(rows(), "wider").status_code == 200
    granted = {**BUDGET, "kinds": ["cluster", "profile"]}
    assert years.carla.put("/v1/datasets/wider/grants/ada", granted).status_code == 200
    refused = years.ada.post("/v1/plans", asked(clustering(years), dataset="wider"))
    assert refused.status_code == 422
    assert "its column age is" in refused.json()["detail"]
