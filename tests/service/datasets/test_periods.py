"""Periods: rows arrive label by label; each unit of privacy charges the accounts that its argument needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select

from service.datasets import drafts, lifecycle
from service.operations.states import DatasetState
from service.operations.tables import Dataset, DatasetChunk, Period
from tests.support.databases import migrated_database
from tests.support.service import DOUBTS, START, House, table

pytestmark = pytest.mark.both_databases

MONTHS = ("2026-01", "2026-02", "2026-03")
PERIODS = "/v1/datasets/stays/periods"


def people(rows: int, first: int = 0) -> bytes:
    """A small CSV file with two rows for each person."""
    lines = [f"{(7 * i) % 10},{(3 * i) % 4},p{first + i // 2}" for i in range(rows)]
    return ("a,b,who\n" + "\n".join(lines) + "\n").encode()


def create(house: House, unit: str = "record", **changes: Any) -> None:
    ids = {} if unit == "record" else {"id_column": "who", "rows_per_person": 2}
    answer = house.create("stays", unit=unit, **ids, **changes)
    assert answer.status_code == 201, answer.text


def add(house: House, label: str, content: bytes | None = None, **facts: Any) -> None:
    """Add a period, upload its rows and seal it."""
    assert house.carla.post(PERIODS, {"label": label, **facts}).status_code == 201
    answer = house.carla.call("PUT", f"{PERIODS}/{label}/data", content=content or table(40))
    assert answer.status_code == 200, answer.text
    sealed = house.carla.post(f"{PERIODS}/{label}/seal", {"confirm": list(DOUBTS)})
    assert sealed.status_code == 200, sealed.text


@pytest.fixture
def stays(house: House) -> House:
    """Three months of the unit record, where ada has a cap of epsilon 0.5 in each."""
    create(house, release_ticks=False)
    for label in MONTHS[:2]:
        add(house, label)
    assert house.grant("ada", "stays", "0.5").status_code == 200
    add(house, MONTHS[2])
    return house


def spent(house: House, who: Any = None) -> dict[str, str]:
    """Epsilon spent in each period, or in ada's cap of each."""
    whole = who is None
    items = (house.carla if whole else who).get(PERIODS).json()["items"]
    return {each["label"]: each["budget" if whole else "cap"]["spent"]["epsilon"] for each in items}


def submit(house: House, epsilon: str = "0.1", **body: Any) -> Any:
    return house.submit(epsilon, dataset="stays", **body)


def verified(house: House) -> None:
    report = house.carla.post("/v1/datasets/stays/ledger/verify").json()
    assert report["faults"] == []


def test_job_is_charged_in_full_to_each_period_that_it_reads(stays: House) -> None:
    job = submit(stays, periods={"from": "2026-02"})
    assert job.status_code == 202, job.text
    assert job.json()["periods"] == [{"label": label, "version": 1} for label in MONTHS[1:]]
    assert stays.work()
    assert spent(stays) == {"2026-01": "0", "2026-02": "0.1", "2026-03": "0.1"}
    assert spent(stays, stays.ada) == spent(stays)
    receipt = stays.ada.get(f"/v1/jobs/{job.json()['id']}/receipt").json()
    assert receipt["periods"] == job.json()["periods"]
    assert receipt["domain"]["size"] == 2000
    assert "its periods 2026-02, 2026-03" in str(receipt["explanation"])
    verified(stays)


def test_default_is_every_period_that_is_sealed_when_the_job_is_planned(stays: House) -> None:
    assert stays.carla.post(PERIODS, {"label": "2026-04"}).status_code == 201
    job = submit(stays).json()
    add_later = stays.carla.call("PUT", f"{PERIODS}/2026-04/data", content=table(40))
    assert add_later.status_code == 200
    assert stays.work()
    assert stays.ada.get(f"/v1/jobs/{job['id']}").json()["state"] == "succeeded"
    assert [each["label"] for each in job["periods"]] == list(MONTHS)


def test_refusal_names_the_period_that_lacks_room_and_the_largest_range_that_fits(stays: House) -> None:
    assert submit(stays, "0.4", periods=["2026-01"], delta="0").status_code == 202
    refused = submit(stays, "0.2", delta="0")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/cap-exhausted")
    assert refused.json()["period"] == "2026-01"
    assert refused.json()["largest_range"] == {"from": "2026-02", "to": "2026-03"}
    assert "the largest range with room for this one is 2026-02 to 2026-03" in refused.json()["detail"]
    assert submit(stays, "0.2", periods=refused.json()["largest_range"], delta="0").status_code == 202
    asked = {"dataset": "stays", "k": 2, "epsilon": "0.2", "delta": "0"}
    plan = stays.ada.post("/v1/plans", asked).json()
    assert not plan["fits"]
    assert "your cap in 2026-01 has epsilon 0.1" in plan["shortfall"]["sentence"]
    assert plan["shortfall"]["largest_range"] == {"from": "2026-02", "to": "2026-03"}
    assert (plan["accounts"]["cap"]["period"], plan["accounts"]["cap"]["remaining"]["epsilon"]) == (
        "2026-01",
        "0.1",
    )
    chosen = stays.ada.post("/v1/plans", {**asked, "periods": {"from": "2026-02"}}).json()
    assert chosen["accounts"]["cap"]["remaining"]["epsilon"] == "0.3"
    assert chosen["accounts"]["budget"]["period"] == "2026-02"


def test_cancelled_job_gives_back_what_it_reserved_in_every_period(stays: House) -> None:
    job = submit(stays, "0.5", delta="0").json()
    assert submit(stays, "0.1", periods=["2026-03"], delta="0").status_code == 409
    assert stays.ada.delete(f"/v1/jobs/{job['id']}").status_code == 200
    assert submit(stays, "0.5", delta="0").status_code == 202
    verified(stays)


def test_new_period_brings_a_new_budget_and_the_others_keep_theirs(stays: House) -> None:
    assert submit(stays, "0.5", delta="0").status_code == 202
    assert stays.work()
    add(stays, "2026-04", budget={"epsilon": "2", "delta": "0.000001"})
    assert submit(stays, "0.5", periods=["2026-04"], delta="0").status_code == 202
    assert submit(stays, "0.5", delta="0").status_code == 409
    facts = stays.ada.get("/v1/datasets/stays").json()
    assert facts["cap"]["remaining"]["epsilon"] == "0"
    verified(stays)


def test_budget_of_a_period_is_raised_alone(stays: House) -> None:
    refused = stays.carla.post("/v1/datasets/stays/budget", {"epsilon": "5", "delta": "0.000001"})
    assert "each period of stays has a budget of its own" in refused.json()["detail"]
    raised = stays.carla.post(f"{PERIODS}/2026-01/budget", {"epsilon": "5", "delta": "0.000001"})
    assert raised.json()["budget"]["total"]["epsilon"] == "5"
    lowered = stays.carla.post(f"{PERIODS}/2026-01/budget", {"epsilon": "4", "delta": "0.000001"})
    assert lowered.status_code == 422
    verified(stays)


@pytest.mark.parametrize(
    ("periods", "words"),
    [
        (["2026-09"], "stays has no sealed period 2026-09"),
        ({"from": "2027-01"}, "stays has no sealed period from 2027-01 to 2026-03"),
    ],
)
def test_periods_that_are_not_there_are_refused(stays: House, periods: Any, words: str) -> None:
    refused = submit(stays, periods=periods).json()
    assert refused["detail"] == words
    assert refused["next"] == "Its periods are 2026-01, 2026-02, 2026-03."


def test_dataset_without_periods_takes_none(house: House) -> None:
    house.ready()
    assert "flowers has no periods" in house.submit(periods=["2026-01"]).json()["detail"]
    assert house.carla.post("/v1/datasets/flowers/periods", {"label": "x"}).status_code == 409
    assert house.carla.get("/v1/datasets/flowers/periods").json()["items"] == []


def test_person_pays_from_one_account_and_noise_protects_their_rows_in_all_periods(house: House) -> None:
    create(house, "person")
    for label in MONTHS:
        add(house, label, people(40))
    assert house.grant("ada", "stays").status_code == 200
    asked = {"dataset": "stays", "k": 2, "epsilon": "0.1", "algorithm": "sulq"}
    one, all_three = (
        house.ada.post("/v1/plans", {**asked, **more}).json() for more in ({"periods": ["2026-01"]}, {})
    )
    assert one["plan"]["privacy"]["rows_per_person"] == 2
    assert all_three["plan"]["privacy"]["rows_per_person"] == 6
    assert all_three["cost"] == one["cost"]
    assert submit(house).status_code == 202
    assert house.work()
    facts = house.carla.get("/v1/datasets/stays").json()
    assert facts["budget"]["spent"]["epsilon"] == "0.1"
    assert facts["privacy_unit"] == "person"
    assert house.carla.get(f"{PERIODS}/2026-01").json()["budget"] is None
    verified(house)


def test_person_in_a_period_sees_what_somebody_in_all_of_them_has_lost(house: House) -> None:
    create(house, "person-in-period", accountant="zcdp", release_ticks=False)
    for label in MONTHS:
        add(house, label, people(40))
    assert house.grant("ada", "stays").status_code == 200
    job = submit(house, delta="0.0000001").json()
    assert house.work()
    receipt = house.ada.get(f"/v1/jobs/{job['id']}/receipt").json()
    one, group = (Decimal(receipt[each]["rho"]) for each in ("charged", "lost_in_all"))
    assert 9 * one <= group <= 9 * one + 10 * Decimal("1e-12")
    assert receipt["privacy_unit"] == "person in a period"
    assert house.carla.get("/v1/datasets/stays").json()["lost_in_all"]["rho"] == str(group)


@pytest.mark.parametrize(
    ("unit", "facts"),
    [("record", {"id_column": "who"}), ("person", {}), ("person-in-period", {})],
)
def test_unit_must_agree_with_the_id_column(small_house: House, unit: str, facts: dict[str, Any]) -> None:
    assert small_house.create("stays", unit=unit, **facts).status_code == 422


def test_draft_of_a_period_is_seen_by_its_owner_alone_and_can_be_discarded(stays: House) -> None:
    assert stays.carla.post(PERIODS, {"label": "2026-04"}).status_code == 201
    assert stays.carla.call("PUT", f"{PERIODS}/2026-04/data", content=table(40)).status_code == 200
    assert stays.ada.get(f"{PERIODS}/2026-04").status_code == 404
    assert "2026-04" not in spent(stays, stays.ada)
    assert stays.carla.delete(f"{PERIODS}/2026-04").status_code == 204
    assert stays.carla.get(f"{PERIODS}/2026-04").status_code == 404
    assert stays.carla.delete(f"{PERIODS}/2026-01").json()["type"] == "/problems/already-sealed"


def test_sealed_period_takes_no_rows_and_the_same_file_again_is_answered(stays: House) -> None:
    again = stays.carla.call("PUT", f"{PERIODS}/2026-01/data", content=table(41))
    assert again.json()["type"] == "/problems/already-sealed"
    digest = stays.carla.get(f"{PERIODS}/2026-01").json()["upload"]["sha256"]
    same = stays.carla.call("PUT", f"{PERIODS}/2026-01/data", content=table(40), params={"sha256": digest})
    assert same.status_code == 200


def test_rows_of_a_dataset_with_periods_go_into_a_period(stays: House) -> None:
    assert "stays has periods" in stays.check(table(40), "stays").json()["detail"]


def test_retirement_deletes_every_period_and_queued_jobs_are_not_charged(stays: House) -> None:
    job = submit(stays).json()
    assert stays.carla.post("/v1/datasets/stays/retire").json()["voided_jobs"] == 1
    assert stays.ada.get(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert {each["state"] for each in stays.carla.get(PERIODS).json()["items"]} == {"retired"}
    assert submit(stays).json()["type"] == "/problems/retired"
    assert set(spent(stays).values()) == {"0"}
    verified(stays)


def correct(house: House, label: str, content: bytes) -> Any:
    """Upload and seal corrected rows of a period; the answer to the seal."""
    assert house.carla.post(f"{PERIODS}/{label}/correction").status_code == 201
    assert house.carla.call("PUT", f"{PERIODS}/{label}/data", content=content).status_code == 200
    return house.carla.post(f"{PERIODS}/{label}/seal", {"confirm": list(DOUBTS)})


def chunks(house: House) -> int:
    with house.database.read() as session:
        return session.execute(select(func.count()).select_from(DatasetChunk)).scalar_one()


def test_corrected_period_has_other_rows_and_the_account_that_it_had(stays: House) -> None:
    assert submit(stays, "0.4", periods=["2026-01"], delta="0").status_code == 202
    assert stays.work()
    before = chunks(stays)
    sealed = correct(stays, "2026-01", table(50))
    assert (sealed.status_code, sealed.json()["version"], sealed.json()["upload"]["rows"]) == (200, 2, 50)
    assert chunks(stays) == before
    assert spent(stays)["2026-01"] == "0.4"
    assert submit(stays, "0.2", periods=["2026-01"], delta="0").status_code == 409
    job = submit(stays, "0.1", periods=["2026-01"], delta="0").json()
    assert job["periods"] == [{"label": "2026-01", "version": 2}]
    assert stays.work()
    receipt = stays.ada.get(f"/v1/jobs/{job['id']}/receipt").json()
    assert "2026-01 (version 2)" in str(receipt["explanation"])
    verified(stays)


def test_queued_job_runs_on_the_version_that_is_there_when_it_is_claimed_and_says_so(stays: House) -> None:
    job = submit(stays).json()
    assert job["periods"][0] == {"label": "2026-01", "version": 1}
    assert correct(stays, "2026-01", table(50)).status_code == 200
    assert stays.work()
    receipt = stays.ada.get(f"/v1/jobs/{job['id']}/receipt").json()
    assert [each["version"] for each in receipt["periods"]] == [2, 1, 1]
    assert stays.ada.get(f"/v1/jobs/{job['id']}").json()["periods"] == receipt["periods"]
    verified(stays)


def test_running_job_ends_on_the_version_that_it_began_with(stays: House) -> None:
    job = submit(stays).json()
    held = stays.worker.claim()
    assert held is not None
    refused = correct(stays, "2026-01", table(50))
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/cannot-seal")
    assert "jobs are running on 2026-01" in refused.json()["detail"]
    assert stays.worker.carry_out(held)
    assert stays.ada.get(f"/v1/jobs/{job['id']}/receipt").json()["periods"][0]["version"] == 1
    assert stays.carla.post(f"{PERIODS}/2026-01/seal", {"confirm": list(DOUBTS)}).status_code == 200
    verified(stays)


def test_draft_of_a_correction_changes_nothing_until_it_is_sealed(stays: House) -> None:
    assert stays.carla.post(f"{PERIODS}/2026-01/correction").json()["correction"] == {
        "version": 2,
        "upload": None,
    }
    assert stays.carla.call("PUT", f"{PERIODS}/2026-01/data", content=table(50)).status_code == 200
    for person, shown in ((stays.carla, 50), (stays.ada, None)):
        found = person.get(f"{PERIODS}/2026-01").json()
        assert (found["version"], found["state"]) == (1, "sealed")
        assert (found["correction"] and found["correction"]["upload"]["rows"]) == shown
    assert submit(stays).json()["periods"][0]["version"] == 1
    assert stays.carla.delete(f"{PERIODS}/2026-01").status_code == 204
    assert stays.carla.get(f"{PERIODS}/2026-01").json()["correction"] is None
    assert stays.work()
    verified(stays)


def test_rows_are_deleted_before_the_account_is_locked_for_which_analysts_wait(stays: House) -> None:
    """How long it takes to delete them depends on how many there are."""
    said: list[str] = []
    event.listen(stays.database.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    for act in ("seal", "discard"):
        assert stays.carla.post(f"{PERIODS}/2026-01/correction").status_code == 201
        assert stays.carla.call("PUT", f"{PERIODS}/2026-01/data", content=table(50)).status_code == 200
        said.clear()
        if act == "seal":
            sealed = stays.carla.post(f"{PERIODS}/2026-01/seal", {"confirm": list(DOUBTS)})
            assert sealed.status_code == 200, sealed.text
        else:
            assert stays.carla.delete(f"{PERIODS}/2026-01").status_code == 204
        deleted = [place for place, each in enumerate(said) if each.startswith("DELETE FROM dataset_chunks")]
        locked = [place for place, each in enumerate(said) if "FROM accounts" in each]
        assert len(deleted) == 1
        assert deleted[0] < locked[0]


def test_all_periods_together_hold_as_many_records_as_sums_are_exact_for(
    stays: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stays.carla.post(PERIODS, {"label": "2026-04", "size": 1}).status_code == 201
    monkeypatch.setattr("service.datasets.drafts.MAX_RECORDS", 130)
    assert correct(stays, "2026-01", table(50)).status_code == 200
    assert stays.carla.call("PUT", f"{PERIODS}/2026-04/data", content=table(1)).status_code == 200
    refused = stays.carla.post(f"{PERIODS}/2026-04/seal", {"confirm": list(DOUBTS)}).json()
    assert refused["detail"] == (
        "a dataset holds at most 130 records, and the other periods of stays hold 130"
    )


def test_budget_that_was_raised_during_a_correction_stays_raised(stays: House) -> None:
    assert stays.carla.post(f"{PERIODS}/2026-01/correction").status_code == 201
    more = {"epsilon": "5", "delta": "0.000001"}
    assert stays.carla.post(f"{PERIODS}/2026-01/budget", more).status_code == 200
    assert correct(stays, "2026-01", table(50)).json()["budget"]["declared"]["epsilon"] == "5"
    verified(stays)


def test_clusters_of_one_month_are_asked_about_in_another_in_the_same_bounds(stays: House) -> None:
    bounds = {"columns": [{"column": "a", "low": 1, "high": 9}]}
    assert stays.carla.put("/v1/datasets/stays/working-bounds", bounds).status_code == 200
    clustered = stays.carla.post(
        "/v1/jobs", {"dataset": "stays", "k": 2, "epsilon": "0.2", "periods": ["2026-01"]}
    ).json()
    assert stays.work()
    asked = {"dataset": "stays", "kind": "profile", "epsilon": "0.1", "periods": ["2026-02"]}
    job = stays.carla.post("/v1/jobs", {**asked, "clusterings": [{"job": clustered["id"]}]})
    assert job.status_code == 202, job.text
    assert stays.work()
    receipt = stays.carla.get(f"/v1/jobs/{job.json()['id']}/receipt").json()
    assert receipt["periods"] == [{"label": "2026-02", "version": 1}]
    assert [each["column"] for each in receipt["working_bounds"]] == ["a"]
    assert spent(stays) == {"2026-01": "0.2", "2026-02": "0.1", "2026-03": "0"}
    verified(stays)


def test_sizes_that_no_job_could_read_together_are_refused_when_they_are_declared(stays: House) -> None:
    most = 2**30
    for size in (most + 1, most - 2999):
        refused = stays.carla.post(PERIODS, {"label": "2026-04", "size": size})
        assert refused.status_code == 422, refused.text
    assert refused.json()["detail"] == (
        "the sizes of all periods of a dataset add up to at most 1,073,741,824, and stays declares 3,000 "
        "already"
    )
    assert stays.carla.post(PERIODS, {"label": "2026-04", "size": most - 3000}).status_code == 201


@pytest.fixture
def on_postgres(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """A service on PostgreSQL, where transactions overtake each other; SQLite has one writer."""
    with (
        migrated_database(request, "postgresql", tmp_path) as url,
        closing(House(url, tmp_path)) as made,
    ):
        yield made


def _overtake(house: House, act: Callable[[Any, Dataset], object]) -> None:
    """Have the next request that waits for uploads overtaken by another transaction."""
    waiting = iter([True])

    def before(*given: Any) -> None:
        if "pg_advisory_xact_lock" in given[2] and next(waiting, False):
            with house.database.write() as session:
                act(session, session.scalars(select(Dataset)).one())

    event.listen(house.database.engine, "before_cursor_execute", before)


def _discard(session: Any, dataset: Dataset) -> None:
    draft = session.scalars(select(Period).where(Period.state == DatasetState.DRAFT)).one()
    drafts.discard_period(session, dataset, draft, actor="carla", at=START)


def _retire(session: Any, dataset: Dataset) -> None:
    lifecycle.retire(session, dataset, actor="carla", at=START)


def _correct(session: Any, dataset: Dataset) -> None:
    drafts.correct(session, dataset, "2026-01", actor="carla", at=START)


def test_request_that_another_one_overtakes_is_told_so(on_postgres: House) -> None:
    house = on_postgres
    create(house)
    add(house, "2026-01")
    draft = f"{PERIODS}/2026-02"
    upload: tuple[str, str, dict[str, Any]] = ("PUT", f"{draft}/data", {"content": table(40)})
    seal: tuple[str, str, dict[str, Any]] = ("POST", f"{draft}/seal", {"json": {}})
    for winner, (verb, place, sent), slug in (
        (_discard, upload, "/problems/not-found"),
        (_discard, seal, "/problems/not-found"),
        (_discard, ("DELETE", draft, {}), "/problems/not-found"),
        (_correct, ("POST", f"{PERIODS}/2026-01/correction", {}), None),
        (_retire, seal, "/problems/retired"),
    ):
        house.carla.post(PERIODS, {"label": "2026-02"})
        assert house.carla.call("PUT", f"{draft}/data", content=table(40)).status_code == 200
        _overtake(house, winner)
        answer = house.carla.call(verb, place, **sent)
        assert answer.json().get("type") == slug, answer.text
