"""A curator asks on their own dataset: no grant, no cap, only the dataset's total."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from service.operations.tables import Job, LedgerEntry
from tests.service.jobs.test_questions import KINDS, with_patients
from tests.support.service import House


@pytest.fixture
def patients(house: House) -> House:
    return with_patients(house)


def ask(house: House, kind: str, **body: Any) -> dict[str, Any]:
    request = {"dataset": "patients", "kind": kind, "epsilon": "0.5", **body}
    answer = house.carla.post("/v1/jobs", request)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_curator_asks_every_kind_of_question_and_the_dataset_alone_pays(patients: House) -> None:
    house = patients
    cap_before = house.ada.get("/v1/datasets/patients").json()["cap"]
    job = ask(house, "cluster", k=2, columns=["age", "region"])
    assert house.work()
    about = {"job": job["id"]}
    asked: dict[str, dict[str, Any]] = {
        "profile": {"columns": ["smoker"], "clusterings": [about]},
        "explain": {"clusterings": [about], "options": {"picks": 2}},
        "table": {"columns": ["region", "smoker"]},
        "quantiles": {"columns": ["bmi"]},
        "summary": {},
        "compare": {"clusterings": [about, about]},
    }
    assert {"cluster", *asked} == set(KINDS)
    for kind, body in asked.items():
        request = {"dataset": "patients", "kind": kind, "epsilon": "0.5", **body}
        planned = house.carla.post("/v1/plans", request).json()
        assert planned["fits"]
        assert list(planned["remaining_after"]) == ["budget"]
        answer = house.carla.post("/v1/jobs", {**request, "quote": planned["quote"]})
        assert answer.status_code == 202, answer.text
        assert house.work()
        receipt = house.carla.get(f"/v1/jobs/{answer.json()['id']}/receipt").json()
        assert (receipt["analyst"], receipt["charged"]["epsilon"]) == ("carla", "0.5")
    facts = house.ada.get("/v1/datasets/patients").json()
    assert facts["cap"] == cap_before
    assert facts["budget"]["spent"]["epsilon"] == "3.5"
    found = house.carla.post("/v1/datasets/patients/ledger/verify?whole=true").json()
    assert (found["ok"], found["faults"]) == (True, [])
    entries = house.carla.get("/v1/datasets/patients/ledger?limit=100").json()["items"]
    assert {each["analyst"] for each in entries if each["job"]} == {"carla"}


def test_analysts_see_nothing_of_a_curators_job_but_what_is_left(patients: House) -> None:
    house = patients
    job = ask(house, "quantiles", columns=["bmi"])["id"]
    assert house.ada.get(f"/v1/jobs/{job}").status_code == 404
    assert house.ada.get("/v1/jobs").json()["items"] == []
    assert house.ada.get("/v1/jobs?dataset=patients").json()["items"] == []
    mine = house.ada.get("/v1/datasets/patients/ledger").json()["items"]
    assert [each["kind"] for each in mine] == ["cap"]
    assert house.ada.get("/v1/datasets/patients").json()["budget"]["reserved"]["epsilon"] == "0.5"
    assert [each["id"] for each in house.carla.get("/v1/jobs").json()["items"]] == [job]
    cancelled = house.carla.delete(f"/v1/jobs/{job}").json()
    assert (cancelled["state"], cancelled["analyst"]) == ("cancelled", "carla")
    assert house.ada.get("/v1/datasets/patients").json()["budget"]["reserved"]["epsilon"] == "0"


def test_only_the_total_binds_a_curator(patients: House) -> None:
    house = patients
    ask(house, "summary", epsilon="9.8")
    refused = house.carla.post(
        "/v1/jobs", {"dataset": "patients", "kind": "summary", "epsilon": "0.3", "delta": "0"}
    )
    assert refused.json()["type"] == "/problems/budget-exhausted"
    assert "cap" not in refused.json()["detail"]
    # The analyst's cap has room, the dataset has none left.
    assert house.submit("0.3", dataset="patients", algorithm="auto").status_code == 409


def test_a_curator_cancels_their_own_jobs_and_ends_those_of_analysts(patients: House) -> None:
    house = patients
    job = house.submit("0.3", dataset="patients", algorithm="auto").json()["id"]
    assert house.carla.delete(f"/v1/jobs/{job}").status_code == 403
    assert house.carla.put(f"/v1/jobs/{job}/note", {"name": "mine"}).status_code == 403
    assert house.carla.post(f"/v1/jobs/{job}/end").json()["state"] == "cancelled"


def test_a_curators_queued_job_ends_void_when_the_dataset_is_retired(patients: House) -> None:
    job = ask(patients, "summary")["id"]
    assert patients.carla.post("/v1/datasets/patients/retire").json()["voided_jobs"] == 1
    assert patients.carla.get(f"/v1/jobs/{job}").json()["state"] == "cancelled"
    assert patients.carla.post("/v1/datasets/patients/ledger/verify").json()["ok"]


@pytest.mark.both_databases
def test_the_database_refuses_an_analysts_job_without_a_grant(patients: House) -> None:
    job = patients.submit("0.3", dataset="patients", algorithm="auto").json()["id"]
    with pytest.raises(IntegrityError), patients.database.write() as session:
        session.execute(text("UPDATE jobs SET grant_id = NULL WHERE id = :id"), {"id": job})


def test_verification_notices_a_job_that_was_paid_without_its_grant(patients: House) -> None:
    """The broken twin: an analyst's job that leaves the cap aside."""
    house = patients
    job = ask(house, "summary")["id"]
    with house.database.write() as session:
        row = session.scalars(select(Job).where(Job.id == job)).one()
        grant = session.scalars(select(LedgerEntry.grant_id).where(LedgerEntry.kind == "cap")).first()
        row.grant_id = grant
    assert house.carla.get(f"/v1/jobs/{job}").json()["state"] == "queued"
    with pytest.raises(Exception, match=job):
        house.work()
    with house.database.write() as session:
        session.scalars(select(Job).where(Job.id == job)).one().grant_id = None
    assert house.work()
    with house.database.write() as session:
        session.scalars(select(Job).where(Job.id == job)).one().grant_id = grant
    found = house.carla.post("/v1/datasets/patients/ledger/verify").json()
    assert "under another grant" in found["faults"][0]


@pytest.mark.both_databases
def test_narrowing_the_kinds_of_a_grant_ends_queued_jobs_of_the_others(patients: House) -> None:
    house = patients
    request = {"dataset": "patients", "kind": "summary", "epsilon": "0.3"}
    asked = [house.ada.post("/v1/jobs", request).json()["id"]]
    asked.append(house.submit("0.3", dataset="patients", algorithm="auto").json()["id"])
    cap = {"epsilon": "10", "delta": "0.00001", "kinds": ["cluster"]}
    assert house.carla.put("/v1/datasets/patients/grants/ada", cap).status_code == 200
    states = [house.ada.get(f"/v1/jobs/{job}").json()["state"] for job in asked]
    assert states == ["cancelled", "queued"]
    assert house.ada.get("/v1/datasets/patients").json()["cap"]["reserved"]["epsilon"] == "0.3"
    refused = house.ada.post("/v1/jobs", request)
    assert refused.json()["type"] == "/problems/kind-not-granted"
    assert house.carla.post("/v1/datasets/patients/ledger/verify").json()["ok"]
