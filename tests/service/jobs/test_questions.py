"""Questions about a dataset and its clusterings: planned, charged, released and replayed like any job."""

from __future__ import annotations

import csv
import io
from typing import Any, get_args

import pytest

from core.jobs import kinds
from service.http.wire import JobKind
from service.jobs.results.transcripts import replay
from tests.service.jobs.test_tables import COLUMNS, rows
from tests.support.service import House

KINDS = list(get_args(JobKind))


@pytest.fixture
def patients(small_house: House) -> House:
    return with_patients(small_house)


def with_patients(house: House) -> House:
    """A table that ada may ask everything about, and ben nothing but clusterings."""
    budget = {"epsilon": "10", "delta": "0.00001"}
    table = {"name": "patients", "table": COLUMNS, "size": 4000, "budget": budget}
    assert house.carla.post("/v1/datasets", table).status_code == 201
    assert house.upload(rows(), "patients").status_code == 200
    granted = house.carla.put("/v1/datasets/patients/grants/ada", {**budget, "kinds": KINDS})
    assert granted.json()["kinds"] == KINDS
    assert house.grant("ben", "patients", epsilon="1", delta="0.000001").json()["kinds"] == ["cluster"]
    return house


def done(house: House, **body: Any) -> str:
    """The id of a job that has ended."""
    submitted = house.ada.post("/v1/jobs", {"dataset": "patients", "epsilon": "1", **body})
    assert submitted.status_code == 202, submitted.text
    assert house.work()
    house.clock.move(100)
    return str(submitted.json()["id"])


def clustering(house: House, **body: Any) -> str:
    return done(house, **{"k": 2, "columns": ["age", "region"], **body})


def result(house: House, job: str) -> dict[str, Any]:
    answer = house.ada.get(f"/v1/jobs/{job}/result")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


ASKED: dict[str, dict[str, Any]] = {
    "profile": {"columns": ["smoker", "bmi"], "clusterings": 1},
    "explain": {"clusterings": 1, "options": {"picks": 2}},
    "table": {"columns": ["region", "smoker"]},
    "quantiles": {"columns": ["bmi", "cost"], "options": {"levels": [0.5]}},
    "summary": {},
    "compare": {"clusterings": 2},
}


def test_the_wire_knows_every_kind() -> None:
    assert set(KINDS) == set(kinds.names()) == {"cluster", *ASKED}


def test_every_kind_is_planned_charged_released_and_replayed(patients: House) -> None:
    about = clustering(patients)
    for kind, asked in ASKED.items():
        named = {"clusterings": [{"job": about}] * asked["clusterings"]} if "clusterings" in asked else {}
        body = {**asked, "kind": kind, "epsilon": "0.5", **named}
        planned = patients.ada.post("/v1/plans", {"dataset": "patients", **body}).json()
        assert planned["fits"], planned
        assert planned["forecast"]["visible_count"] > 0
        before = patients.ada.get("/v1/datasets/patients").json()["cap"]["spent"]["epsilon"]
        job = done(patients, **body, quote=planned["quote"])
        after = patients.ada.get("/v1/datasets/patients").json()["cap"]["spent"]["epsilon"]
        assert float(after) - float(before) == pytest.approx(0.5)
        facts = patients.ada.get(f"/v1/jobs/{job}").json()
        assert (facts["state"], facts["algorithm"], facts["request"]["kind"]) == ("succeeded", kind, kind)
        found = result(patients, job)
        assert found["kind"] == kind
        assert [each["job"] for each in found["clusterings"]] == [about] * len(named.get("clusterings", ()))
        receipt = patients.ada.get(f"/v1/jobs/{job}/receipt").json()
        assert (receipt["format"], receipt["kind"]) == (7, kind)
        assert receipt["charged"] == planned["cost"]
        transcript = patients.ada.get(f"/v1/jobs/{job}/transcript").content
        assert replay(receipt, transcript)["findings"] == found["findings"]
        lines = patients.ada.get(f"/v1/jobs/{job}/result", headers={"Accept": "text/csv"}).text
        assert len(list(csv.reader(io.StringIO(lines)))) > 2
    assert patients.carla.post("/v1/datasets/patients/ledger/verify").json()["ok"]


def test_a_profile_tells_who_is_in_each_cluster(house: House) -> None:
    with_patients(house)
    about = clustering(house, epsilon="3")
    centres = result(house, about)["centres"]
    job = done(house, kind="profile", clusterings=[{"job": about, "k": 2}], columns=["smoker", "bmi"])
    findings = result(house, job)["findings"]
    smoker, bmi = findings["columns"]
    old = 0 if centres[0][0] > centres[1][0] else 1
    assert smoker["rates"][old] > 0.8 > 0.2 > smoker["rates"][1 - old]
    assert bmi["missing"]
    assert sum(counts[-1] for counts in bmi["counts"]) == pytest.approx(200, abs=60)


def test_a_question_is_repeated_under_its_idempotency_key(patients: House) -> None:
    body = {"dataset": "patients", "kind": "summary", "epsilon": "0.1"}
    first, again = (
        patients.ada.post("/v1/jobs", body, headers={"Idempotency-Key": "once"}) for _ in range(2)
    )
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    other = patients.ada.post("/v1/jobs", {**body, "kind": "quantiles"}, headers={"Idempotency-Key": "once"})
    assert other.json()["type"] == "/problems/idempotency-mismatch"


def test_a_rehearsed_question_is_free_and_may_be_about_a_rehearsed_clustering(patients: House) -> None:
    about = clustering(patients, rehearsal=True)
    asked = {"kind": "profile", "clusterings": [{"job": about}]}
    refused = patients.ada.post("/v1/plans", {"dataset": "patients", "epsilon": "1", **asked})
    assert "rehearsal" in refused.json()["detail"]
    job = done(patients, **asked, rehearsal=True)
    assert result(patients, job)["rehearsal"]
    assert patients.ada.get("/v1/datasets/patients").json()["cap"]["spent"]["epsilon"] == "0"


def test_a_clustering_must_be_visible_to_the_caller(patients: House) -> None:
    about = clustering(patients)
    patients.carla.put(
        "/v1/datasets/patients/grants/ben", {"epsilon": "1", "delta": "0.000001", "kinds": KINDS}
    )
    body = {"dataset": "patients", "kind": "profile", "epsilon": "0.1", "clusterings": [{"job": about}]}
    assert patients.ben.post("/v1/plans", body).status_code == 404
    assert patients.ada.post("/v1/plans", body).status_code == 200
    running = patients.ada.post("/v1/jobs", {"dataset": "patients", "k": 2, "epsilon": "0.1"}).json()["id"]
    assert patients.work()  # it has ended, but not yet for its analyst
    unseen = {**body, "clusterings": [{"job": running}]}
    assert patients.ada.post("/v1/plans", unseen).status_code == 404


def test_a_question_that_cannot_be_asked_is_refused(patients: House) -> None:
    about = clustering(patients)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"clusterings": None}, "one clustering"),
        ({"clusterings": [{"digest": "0" * 64}]}, "another digest"),
        ({"clusterings": [{"k": 7}]}, "k = 7"),
        ({"k": 3}, "a request of kind profile takes no k: leave it out"),
        ({"columns": ["nothing"]}, "no column 'nothing'"),
        ({"options": {"bins": 0}}, "bins"),
        ({"kind": "cluster"}, "must be given"),
        ({"kind": "guess"}, "kind"),
    ]
    for change, detail in changes:
        body = {"dataset": "patients", "kind": "profile", "epsilon": "0.1", "clusterings": [{}], **change}
        if body["clusterings"]:
            body["clusterings"] = [{"job": about, **each} for each in body["clusterings"]]
        given = {name: value for name, value in body.items() if value is not None}
        answer = patients.ada.post("/v1/plans", given).json()
        assert answer["type"] == "/problems/invalid-request"
        assert detail in answer["detail"]


def test_a_grant_says_which_kinds_may_be_asked(patients: House) -> None:
    body = {"dataset": "patients", "kind": "summary", "epsilon": "0.1"}
    refused = patients.ben.post("/v1/jobs", body)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/kind-not-granted")
    assert refused.json()["kinds"] == ["cluster"]
    assert patients.ben.get("/v1/datasets/patients").json()["kinds"] == ["cluster"]
    cap = {"epsilon": "1", "delta": "0.000001"}
    patients.carla.put("/v1/datasets/patients/grants/ben", {**cap, "kinds": ["summary"]})
    assert patients.ben.post("/v1/plans", body).status_code == 200
    # A cap that is changed without naming kinds leaves them as they are.
    patients.carla.put("/v1/datasets/patients/grants/ben", {**cap, "epsilon": "2"})
    assert patients.ben.get("/v1/datasets/patients").json()["kinds"] == ["summary"]
    assert patients.ben.post("/v1/plans", {**body, "kind": "cluster", "k": 2}).status_code == 403


def test_a_job_of_every_k_is_asked_about_at_any_of_them(small_house: House) -> None:
    house = small_house
    house.ready(budget={"epsilon": "10", "delta": "0.00001"})
    house.carla.put("/v1/datasets/flowers/grants/ada", {"epsilon": "10", "delta": "0.00001", "kinds": KINDS})
    about = done(house, dataset="flowers", k={"from": 2, "to": 5}, epsilon="3")
    job = done(house, dataset="flowers", kind="compare", clusterings=[{"job": about, "k": k} for k in (2, 4)])
    sizes = result(house, job)["findings"]["sizes"]
    assert [len(each) for each in sizes] == [2, 4]


def test_noise_follows_the_accountant(small_house: House) -> None:
    """Under `sum` Laplace noise saves delta; under zCDP Gaussian noise costs far less rho."""
    budget = {"epsilon": "1", "delta": "0.000001"}
    steps = {}
    for accountant in ("sum", "zcdp"):
        small_house.ready(accountant, accountant=accountant, budget=budget)
        small_house.carla.put(f"/v1/datasets/{accountant}/grants/ada", {**budget, "kinds": KINDS})
        body = {"dataset": accountant, "kind": "table", "epsilon": "0.1", "columns": ["a"]}
        planned = small_house.ada.post("/v1/plans", body).json()
        steps[accountant] = (planned["plan"]["steps"][0]["mechanism"]["kind"], planned["cost"]["delta"])
    assert steps == {"sum": ("laplace", "0"), "zcdp": ("gaussian", "0")}
