"""Populations: jobs on all their datasets share one total, by hand to the last unit, whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import event

from assurance.chaos import populations
from service import ledger
from service.datasets import access
from service.datasets.populations import lifecycle
from service.operations.database import Database
from service.operations.states import Role
from service.people import keys, principals
from service.people.authentication import Caller
from tests.service.datasets.test_periods import MONTHS, add, people
from tests.support.service import House, Person

pytestmark = pytest.mark.both_databases

PEOPLE = "/v1/populations/north"
FLOWERS = {"dataset": "flowers", "one_row_per_person": True}
STAYS = {"dataset": "stays"}


def create(house: House, epsilon: str = "1", accountant: str = "sum", **more: Any) -> None:
    body = {"name": "north", "accountant": accountant, "budget": {"epsilon": epsilon, "delta": "0.000001"}}
    answer = house.carla.post("/v1/populations", {**body, **more})
    assert answer.status_code == 201, answer.text


def join(house: House, **body: Any) -> dict[str, Any]:
    answer = house.carla.post(f"{PEOPLE}/datasets", body)
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def balance(house: House) -> dict[str, dict[str, str]]:
    return house.carla.get(PEOPLE).json()["budget"]  # type: ignore[no-any-return]


def used(house: House) -> tuple[str, str]:
    found = balance(house)
    return found["spent"]["epsilon"], found["reserved"]["epsilon"]


def verified(house: House) -> None:
    for name in ("flowers", "stays"):
        report = house.carla.post(f"/v1/datasets/{name}/ledger/verify", params={"whole": "true"}).json()
        assert report["faults"] == []


def ask(house: House, epsilon: str = "0.1", dataset: str = "flowers", **body: Any) -> Any:
    return house.submit(epsilon, dataset=dataset, delta="0", algorithm="sulq", **body)


@pytest.fixture
def north(house: House) -> House:
    """A dataset of rows and one of people in three months; ada may use both."""
    house.ready(planned_release=False)
    ids = {"id_column": "who", "rows_per_person": 2}
    assert house.create("stays", unit="person-in-period", planned_release=False, **ids).status_code == 201
    for label in MONTHS:
        add(house, label, people(40))
    assert house.grant("ada", "stays").status_code == 200
    return house


def test_jobs_of_everybody_on_all_datasets_are_charged_what_they_cost_one_person(north: House) -> None:
    create(north, "1")
    join(north, **FLOWERS)
    join(north, **STAYS)
    assert ask(north, "0.1").status_code == 202
    assert ask(north, "0.2", who=north.carla).status_code == 202
    months = ask(north, "0.2", "stays")  # three of them: 0.6 for one person
    assert months.status_code == 202
    assert used(north) == ("0", "0.9")
    assert [north.work() for _ in range(3)] == [True] * 3
    assert used(north) == ("0.9", "0")
    receipt = north.ada.get(f"/v1/jobs/{months.json()['id']}/receipt").json()
    lost = {"epsilon": "0.6", "delta": "0"}
    assert receipt["population"] == {"name": "north", "accountant": "sum", "lost": lost}
    for who in (north.ada, north.carla):
        refused = ask(north, "0.100000000001", who=who)
        assert refused.json()["type"] == "/problems/population-exhausted", refused.text
        assert "north" in refused.json()["detail"]
        assert "stays" not in refused.text
        assert refused.json()["remaining"]["epsilon"] == "0.1"
    assert ask(north, "0.1", "stays").json()["requested"]["epsilon"] == "0.3"
    assert ask(north, "0.1", "stays", periods=[MONTHS[0]]).status_code == 202
    assert used(north) == ("0.9", "0.1")
    verified(north)


def test_plan_says_what_a_person_loses_and_what_is_left(north: House) -> None:
    create(north, "0.5")
    join(north, **FLOWERS)
    join(north, **STAYS)
    asked = {"dataset": "stays", "k": 2, "algorithm": "sulq", "epsilon": "0.2", "delta": "0"}
    plan = north.ada.post("/v1/plans", asked).json()
    assert plan["population"]["cost"]["epsilon"] == "0.6"
    assert not plan["fits"]
    assert "the population north epsilon 0.6 and delta 0, of epsilon 0.5" in plan["shortfall"]["sentence"]
    alike = north.ada.post("/v1/plans", {**asked, "periods": [MONTHS[0]], "epsilon": "0.6"}).json()
    assert alike["shortfall"]["offer"]["epsilon"] == "0.5"
    facts = north.ada.get("/v1/datasets/stays").json()["population"]
    assert (facts["name"], facts["remaining"]["epsilon"]) == ("north", "0.5")
    assert north.ada.get(PEOPLE).status_code == 403


def test_a_dataset_brings_its_history_and_what_waits(north: House) -> None:
    assert ask(north, "0.1", "stays").status_code == 202
    assert north.work()
    assert ask(north, "0.05", "stays", periods=list(MONTHS[:2])).status_code == 202
    waiting = ask(north, "0.2", "stays", periods=[MONTHS[0]])
    cancelled = ask(north, "0.3", "stays")
    assert north.ada.delete(f"/v1/jobs/{cancelled.json()['id']}").status_code == 200
    create(north, "0.5")
    refused = north.carla.post(f"{PEOPLE}/datasets", STAYS)
    assert refused.json()["type"] == "/problems/cannot-join", refused.text
    assert refused.json()["requested"]["epsilon"] == "0.6"
    assert north.carla.get("/v1/datasets/stays").json()["population"] is None
    assert north.carla.post(f"{PEOPLE}/budget", {"epsilon": "0.6", "delta": "0.000001"}).status_code == 200
    join(north, **STAYS)
    assert used(north) == ("0.3", "0.3")
    assert north.ada.delete(f"/v1/jobs/{waiting.json()['id']}").status_code == 200
    assert used(north) == ("0.3", "0.1")
    assert north.work()
    assert used(north) == ("0.4", "0")
    verified(north)
    rows = [(each["kind"], each["of_person"]) for each in _entries(north, "stays")]
    assert ("join", {"epsilon": "0.3", "delta": "0"}) in rows
    assert rows[-1] == ("charge", {"epsilon": "0.1", "delta": "0"})


def _entries(house: House, dataset: str) -> list[dict[str, Any]]:
    return house.carla.get(f"/v1/datasets/{dataset}/ledger").json()["items"]  # type: ignore[no-any-return]


def test_history_counts_under_another_accountant_job_by_job(north: House) -> None:
    jobs = [ask(north, epsilon) for epsilon in ("0.1", "0.3")]
    assert [north.work() for _ in jobs] == [True, True]
    create(north, "3", accountant="zcdp")
    join(north, **FLOWERS)
    rhos = [_rho(north, job.json()["id"]) for job in jobs]
    assert Decimal(balance(north)["spent"]["rho"]) == sum(rhos)
    assert ask(north, "0.2").status_code == 202
    assert north.work()
    plan = _entries(north, "flowers")[-1]
    assert Decimal(plan["of_person"]["rho"]) == Decimal(balance(north)["spent"]["rho"]) - sum(rhos)
    verified(north)


def _rho(house: House, job: str) -> Decimal:
    return Decimal(house.ada.get(f"/v1/jobs/{job}/receipt").json()["privacy"]["rho"])


def test_a_sum_counts_epsilon_and_delta_of_jobs_that_were_charged_rho(north: House) -> None:
    north.ready("rhos", accountant="zcdp", budget={"epsilon": "1", "delta": "0.000001"})
    job = north.submit("0.2", dataset="rhos", delta="0.0000001")
    assert job.status_code == 202
    create(north, "1")
    join(north, dataset="rhos", one_row_per_person=True)
    assert balance(north)["reserved"] == {"epsilon": "0.2", "delta": "0.0000001"}


def test_who_cannot_join_is_told_why(north: House) -> None:
    create(north)

    def refusal(**body: Any) -> str:
        answer = north.carla.post(f"{PEOPLE}/datasets", body)
        assert answer.status_code == 409, answer.text
        return str(answer.json()["detail"])

    assert "no id column" in refusal(dataset="flowers")
    assert north.create("half").status_code == 201
    assert "draft" in refusal(dataset="half")
    join(north, **STAYS)
    assert "never leaves" in refusal(**STAYS)
    assert north.carla.post("/v1/datasets/flowers/retire").status_code == 200
    states = {each["name"]: each["state"] for each in join(north, **FLOWERS)["datasets"]}
    assert states == {"flowers": "retired", "stays": "sealed"}


def test_a_retired_dataset_goes_on_counting(north: House) -> None:
    create(north)
    join(north, **FLOWERS)
    assert ask(north, "0.25").status_code == 202
    assert north.work()
    assert ask(north, "0.5").status_code == 202
    assert north.carla.post("/v1/datasets/flowers/retire").status_code == 200
    assert used(north) == ("0.25", "0")
    verified(north)


def curator(house: House, name: str) -> Person:
    with house.database.write() as session:
        by = Caller(1, "carla", Role.CURATOR)
        person = principals.create(session, name, Role.CURATOR, by=by, at=house.clock.now())
        key = keys.issue(session, person, by="carla", at=house.clock.now())
    return Person(house.client, name, key.text)


def test_curators_see_their_own_datasets_and_the_owner_of_the_population_all(north: House) -> None:
    bruno, stranger = curator(north, "bruno"), curator(north, "stella")
    create(north)
    handed = north.carla.post("/v1/datasets/flowers/owner", {"curator": "bruno"})
    assert handed.status_code == 204
    assert bruno.post(f"{PEOPLE}/datasets", FLOWERS).status_code == 404
    assert north.carla.call("PATCH", PEOPLE, json={"curators": ["bruno"]}).status_code == 200
    assert bruno.post(f"{PEOPLE}/datasets", STAYS).status_code == 404  # not his dataset
    assert bruno.post(f"{PEOPLE}/datasets", FLOWERS).status_code == 200
    join(north, **STAYS)
    assert ask(north, "0.1", "stays", periods=[MONTHS[0]]).status_code == 202
    own, all_of_them = bruno.get(PEOPLE).json(), north.carla.get(PEOPLE).json()
    assert [each["name"] for each in all_of_them["datasets"]] == ["stays", "flowers"]
    assert all_of_them["others"] is None
    assert [each["name"] for each in own["datasets"]] == ["flowers"]
    assert "stays" not in str(own)
    assert (own["others"]["datasets"], own["others"]["reserved"]["epsilon"]) == (1, "0.1")
    for body, verb, path in (
        ({"epsilon": "2", "delta": "0.000001"}, "POST", f"{PEOPLE}/budget"),
        ({"curators": []}, "PATCH", PEOPLE),
    ):
        assert bruno.call(verb, path, json=body).status_code == 403
        assert stranger.call(verb, path, json=body).status_code == 404
    assert stranger.get("/v1/populations").json()["items"] == []
    assert len(bruno.get("/v1/populations").json()["items"]) == 1


def test_a_total_is_only_raised(north: House) -> None:
    create(north, "1")
    for epsilon, status in (("2", 200), ("1.5", 422)):
        answer = north.carla.post(f"{PEOPLE}/budget", {"epsilon": epsilon, "delta": "0.000001"})
        assert answer.status_code == status, answer.text
    assert balance(north)["total"]["epsilon"] == "2"


def test_submission_to_a_dataset_that_joins_meanwhile_is_charged_to_the_population(
    north: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dataset joins after the job is planned, and before its accounts are locked."""
    create(north, "0.5")
    real: Callable[..., Any] = ledger.lock_paying

    def join_now() -> None:
        with north.database.write() as session:
            caller = Caller(1, "carla", Role.CURATOR)
            population = lifecycle.find(session, "north", caller)
            dataset = access.find(session, "flowers", caller).dataset
            moment = north.clock.now()
            lifecycle.join(session, population, dataset, one_row_per_person=True, caller=caller, at=moment)

    def join_first(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(ledger, "lock_paying", real)
        join_now()
        return real(*given, **more)

    if north.database.is_sqlite:
        join_now()  # whoever submits holds the only lock there is
    else:
        monkeypatch.setattr(ledger, "lock_paying", join_first)
    assert ask(north, "0.5").status_code == 202
    assert used(north) == ("0", "0.5")
    assert ask(north, "0.1").json()["type"] == "/problems/population-exhausted"


def test_the_last_budget_is_spent_once_by_two_datasets(database: Database) -> None:
    assert populations.race(database, 5) == []


def test_locking_a_population_costs_one_statement(north: House) -> None:
    create(north)
    join(north, **STAYS)
    statements: list[str] = []
    note = event.listens_for(north.database.engine, "before_cursor_execute")
    note(lambda _c, _u, statement, *_: statements.append(statement))
    with north.database.write() as session:
        statements.clear()
        accounts = ledger.lock_paying(session, 2, 2, MONTHS)
        assert len(statements) == 2
        assert len(accounts.paying) == 2 * len(MONTHS) + 1
