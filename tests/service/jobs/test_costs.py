"""What jobs cost, and refusals of what a budget or a cap does not have."""

from __future__ import annotations

import pytest

from tests.support.service import House


@pytest.mark.both_databases
def test_ten_tenths_fill_the_budget_and_a_unit_more_is_refused(house: House) -> None:
    house.ready(planned_release=False)
    for _ in range(10):
        assert house.submit("0.1", delta="0").status_code == 202
    refused = house.submit("0.000000000001", delta="0")
    assert refused.status_code == 409
    problem = refused.json()
    assert problem["type"] == "/problems/budget-exhausted"
    assert problem["requested"] == {"epsilon": "0.000000000001", "delta": "0"}
    assert problem["reserved"] == {"epsilon": "1", "delta": "0"}
    assert problem["remaining"] == {"epsilon": "0", "delta": "0.000001"}
    assert "0.000000000001" in problem["detail"]
    assert house.submit("1e-13", delta="0").json()["type"] == "/problems/invalid-request"
    while house.work():
        pass
    assert house.ada.get("/v1/datasets/flowers").json()["budget"]["spent"]["epsilon"] == "1"
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_cap_is_refused_with_its_own_numbers(house: House) -> None:
    house.ready()
    house.grant("ben", epsilon="0.25", delta="0.000001")
    assert house.submit("0.2", who=house.ben, delta="0").status_code == 202
    problem = house.submit("0.1", who=house.ben, delta="0").json()
    assert (problem["type"], problem["remaining"]["epsilon"]) == ("/problems/cap-exhausted", "0.05")
    assert house.ada.get("/v1/datasets/flowers").json()["budget"]["reserved"]["epsilon"] == "0.2"


def test_refusal_names_the_tighter_limit_and_the_largest_job_that_fits_both(house: House) -> None:
    house.ready(budget={"epsilon": "3", "delta": "0.000001"})
    house.grant("ada", epsilon="2", delta="0.000001")
    problem = house.submit("3.5", delta="0").json()  # more than either has
    assert (problem["type"], problem["remaining"]["epsilon"]) == ("/problems/budget-exhausted", "3")
    assert problem["largest"] == {"epsilon": "2", "delta": "0.000001"}
    named = "Your cap has less left than that. The largest job that you can submit now costs epsilon 2"
    assert named in problem["detail"]
    problem = house.submit("2.5", delta="0").json()  # the dataset has it
    assert (problem["type"], problem["remaining"]["epsilon"]) == ("/problems/cap-exhausted", "2")
    house.grant("ben", epsilon="3", delta="0.000001")
    assert house.submit("2", who=house.ben, delta="0").status_code == 202
    problem = house.submit("2.5", delta="0").json()  # the cap has 2 left, the dataset 1
    assert (problem["type"], problem["largest"]["epsilon"]) == ("/problems/budget-exhausted", "1")
    assert house.submit(problem["largest"]["epsilon"], delta="0").status_code == 202


def test_refusal_for_delta_names_the_most_that_both_accounts_have(small_house: House) -> None:
    small_house.ready(budget={"epsilon": "3", "delta": "0.00001"})
    small_house.grant("ada", epsilon="3", delta="0.000001")
    problem = small_house.submit("0.1", delta="0.0001").json()
    assert (problem["type"], problem["largest"]["delta"]) == ("/problems/budget-exhausted", "0.000001")


def test_automatic_delta_asks_for_what_is_left_down_to_a_tenth_of_the_default(house: House) -> None:
    house.ready(budget={"epsilon": "1", "delta": "0.00001"})
    house.grant("ada", epsilon="1", delta="0.0000012")
    request = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1"}
    deltas = []
    for _ in range(3):
        quote = house.ada.post("/v1/plans", request).json()
        deltas.append((quote["cost"]["delta"], quote["fits"]))
        house.ada.post("/v1/jobs", {**request, "quote": quote["quote"]})
    assert deltas == [("0.000001", True), ("0.0000002", True), ("0.0000001", False)]
    refused = house.submit().json()
    assert (refused["type"], refused["remaining"]["delta"]) == ("/problems/cap-exhausted", "0")
    assert "chosen automatically and never less than a tenth of the default" in refused["detail"]
    assert "automatically" not in house.submit(delta="0.0000001").json()["detail"]
    assert house.submit(delta="0").status_code == 202


def test_automatic_delta_of_a_repeated_request_is_that_of_its_job(house: House) -> None:
    house.ready()
    first = house.submit(key="once")  # takes all of the delta
    again = house.submit(key="once")
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])


def test_delta_is_refused_where_none_is_offered(small_house: House) -> None:
    small_house.ready(budget={"epsilon": "1", "delta": "0"})
    assert small_house.submit(delta="0.0000001").json()["type"] == "/problems/delta-not-offered"
    assert small_house.submit().json()["cost"] == {"epsilon": "0.1", "delta": "0"}


@pytest.mark.both_databases
def test_zcdp_charges_rho_and_keeps_delta_for_approximate_parts(house: House) -> None:
    house.ready(accountant="zcdp", budget={"epsilon": "1", "delta": "0.000001"}, planned_release=False)
    total = house.ada.get("/v1/datasets/flowers").json()["budget"]["total"]
    assert total["delta"] == "0.0000005"
    assert 0.99 < float(total["epsilon"]) <= 1.000001
    quoted = house.ada.post(
        "/v1/plans", {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.2"}
    ).json()
    assert quoted["cost"]["rho"] == quoted["plan"]["privacy"]["rho"]
    assert quoted["cost"]["delta"] == "0"
    accepted = 0
    while (answer := house.submit("0.2")).status_code == 202:
        accepted += 1
        assert house.work()
    # Five jobs of 0.2 would be all that a plain sum allows.
    assert accepted > 10
    problem = answer.json()
    assert (problem["type"], set(problem["remaining"])) == (
        "/problems/cap-exhausted",
        {"rho", "delta", "epsilon"},
    ) or (problem["type"] == "/problems/budget-exhausted")
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]
