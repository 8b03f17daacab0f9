"""Jobs are planned for free, reserved and enqueued at once, charged at the claim, released once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, text

from core.algorithms import registry
from service.jobs.results.receipts import digest_of
from service.operations.tables import Job
from tests.support.service import House


def remaining(house: House) -> str:
    left: str = house.ada.get("/v1/datasets/flowers").json()["budget"]["remaining"]["epsilon"]
    return left


@pytest.mark.both_databases
def test_job_runs_from_submission_to_result(house: House) -> None:
    house.ready(planned_release=False)
    accepted = house.submit("0.5")
    job = accepted.json()
    assert (accepted.status_code, accepted.headers["location"]) == (202, f"/v1/jobs/{job['id']}")
    assert house.ada.get("/v1/datasets/flowers").json()["budget"]["reserved"]["epsilon"] == "0.5"
    assert house.ada.get(f"/v1/jobs/{job['id']}/result").status_code == 404
    assert house.work()
    assert house.ada.get(f"/v1/jobs/{job['id']}").json()["state"] == "succeeded"
    result = house.ada.get(f"/v1/jobs/{job['id']}/result").json()
    centres = np.array(result["centres"])
    assert centres.shape == (2, 2)
    assert ((centres >= 0) & (centres <= [10, 4])).all()
    budget = house.ada.get("/v1/datasets/flowers").json()["budget"]
    assert (budget["spent"]["epsilon"], budget["reserved"]["epsilon"]) == ("0.5", "0")
    assert not house.work()


def test_result_states_the_size_of_its_noise_as_the_plan_forecast_it(small_house: House) -> None:
    small_house.ready(planned_release=False)
    request = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1"}
    plan = small_house.ada.post("/v1/plans", request).json()
    small_house.submit()
    assert small_house.work()
    noise = small_house.ada.get("/v1/jobs/latest/result").json()["noise"]
    assert noise["size"] == plan["forecast"]["size_noise"]
    assert len(noise["centres"]) == 2
    assert noise["columns"] == pytest.approx([1.0, 0.4])  # columns of widths 10 and 4


def test_result_comes_as_json_csv_and_npy(small_house: House) -> None:
    small_house.ready(planned_release=False)
    small_house.submit()
    assert small_house.work()
    place = "/v1/jobs/latest/result"
    result = small_house.ada.get(place).json()
    centres, intervals = result["centres"], result["intervals"]
    lines = small_house.ada.get(place, headers={"Accept": "text/csv"}).text.splitlines()
    assert lines[0] == "cluster,a,b,size,size_noise,size_low,size_high,a_low,a_high,b_low,b_high"
    table = np.array([[float(x) for x in line.split(",")] for line in lines[1:]])
    assert table[:, 0].tolist() == list(range(1, len(centres) + 1))
    low, high = (np.array(intervals[f"centre_{end}"]) for end in ("low", "high"))
    # Rounded to the noise, and never to less than a tenth of it; intervals are rounded outwards.
    assert np.all(np.abs(table[:, 1:3] - centres) <= (high - low) / 4)
    assert np.all((table[:, [7, 9]] <= low) & (high <= table[:, [8, 10]]))
    assert np.all((table[:, 5] <= intervals["size_low"]) & (intervals["size_high"] <= table[:, 6]))
    assert np.all((low >= 0) & (low <= centres) & (centres <= high) & (high <= [10, 4]))
    npy = small_house.ada.get(place, headers={"Accept": "application/x-npy"})
    assert np.load(io.BytesIO(npy.content)).tolist() == centres


@pytest.mark.parametrize("algorithm", ["gupta", "jones"])
def test_facilities_are_placed_among_a_named_set_of_sites(small_house: House, algorithm: str) -> None:
    small_house.ready(planned_release=False)
    put = {"content": b"1,1\n5,2\n9,3\n", "headers": {"Content-Type": "text/csv"}}
    assert small_house.carla.call("PUT", "/v1/datasets/flowers/sites/shops", **put).status_code == 200
    request = {"dataset": "flowers", "k": 2, "algorithm": algorithm, "objective": "medians", "sites": "shops"}
    answer = small_house.ada.post("/v1/jobs", {**request, "epsilon": "0.5"})
    assert answer.status_code == 202, answer.text
    assert small_house.work()
    centres = small_house.ada.get("/v1/jobs/latest/result").json()["centres"]
    assert all(
        np.abs(np.array([[1, 1], [5, 2], [9, 3]]) - centre).max(axis=1).min() < 1e-9 for centre in centres
    )


@pytest.mark.parametrize("algorithm", ["gupta", "jones"])
@pytest.mark.parametrize(("kind", "nearest"), [("great-circle", [0, -179]), ("coordinates", [0, 150])])
def test_sites_on_the_globe_are_measured_around_it(
    small_house: House, algorithm: str, kind: str, nearest: list[float]
) -> None:
    """Everybody lives just west of the date line; the site just east of it is near, but not on a map."""
    small_house.create(
        bounds={"box": {"low": [-90, -180], "high": [90, 180]}},
        size=4000,
        scaling="none",
        planned_release=False,
    )
    assert small_house.upload(b"a,b\n" + b"0,179\n" * 4000).status_code == 200
    assert small_house.grant().status_code == 200
    put = {"content": b"0,-179\n0,150\n", "params": {"kind": kind}}
    assert small_house.carla.call("PUT", "/v1/datasets/flowers/sites/ports", **put).status_code == 200
    # A false alarm has odds below exp(-50): each of 4000 records is at least 0.15 reaches nearer.
    request = {"dataset": "flowers", "k": 1, "algorithm": algorithm, "objective": "medians", "sites": "ports"}
    answer = small_house.ada.post("/v1/jobs", {**request, "epsilon": "1", "delta": "0"})
    assert answer.status_code == 202, answer.text
    assert small_house.work()
    assert small_house.ada.get("/v1/jobs/latest/result").json()["centres"] == [nearest]


def test_receipt_carries_every_step_and_its_own_digest(small_house: House) -> None:
    small_house.ready(planned_release=False)
    job = small_house.submit("0.25").json()
    assert small_house.work()
    receipt = small_house.ada.get(f"/v1/jobs/{job['id']}/receipt").json()
    assert receipt["digest"] == digest_of(receipt)
    assert receipt["charged"] == {"epsilon": "0.25", "delta": "0.000001"}
    assert abs(sum(step["share"] for step in receipt["steps"]) - 1) < 1e-5
    assert receipt["privacy_unit"] == "row"
    assert "protected less" in receipt["statement"]


def test_plan_costs_nothing_and_promises_what_is_charged(house: House) -> None:
    house.ready()
    quoted = house.ada.post(
        "/v1/plans", {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.4"}
    )
    assert quoted.json()["cost"] == {"epsilon": "0.4", "delta": "0.000001"}
    assert quoted.json()["remaining_after"]["budget"] == {"epsilon": "0.6", "delta": "0"}
    assert remaining(house) == "1"
    assert house.submit("0.4").json()["plan_digest"] == quoted.json()["digest"]


def test_plans_and_jobs_are_answered_without_any_chunk(house: House) -> None:
    house.ready()
    with house.database.engine.begin() as connection:
        connection.execute(text("DROP TABLE dataset_chunks"))
    body = {"dataset": "flowers", "k": 2, "epsilon": "0.1"}
    assert house.ada.post("/v1/plans", body).status_code == 200
    submitted = house.submit()
    assert submitted.status_code == 202
    assert house.ada.get(submitted.headers["location"]).status_code == 200
    assert house.ada.get("/v1/jobs").status_code == 200
    assert house.ada.get("/v1/datasets/flowers").status_code == 200


@pytest.mark.both_databases
def test_same_idempotency_key_is_the_same_job(house: House) -> None:
    house.ready()
    first, second = house.submit(key="once"), house.submit(key="once")
    assert (second.status_code, second.json()["id"]) == (202, first.json()["id"])
    assert second.headers["idempotency-replayed"] == "true"
    assert remaining(house) == "0.9"
    mismatch = house.submit("0.2", key="once")
    assert (mismatch.status_code, mismatch.json()["type"]) == (422, "/problems/idempotency-mismatch")
    house.grant("ben")
    assert house.submit(who=house.ben, key="once", delta="0").json()["id"] != first.json()["id"]


@pytest.mark.both_databases
def test_cancelled_job_gives_its_reservation_back(house: House) -> None:
    house.ready()
    job = house.submit("0.7").json()
    assert remaining(house) == "0.3"
    assert house.ada.delete(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert remaining(house) == "1"
    again = house.ada.delete(f"/v1/jobs/{job['id']}")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/not-cancellable")
    assert not house.work()
    assert house.ada.get(f"/v1/jobs/{job['id']}/result").status_code == 404


def test_running_and_finished_jobs_cannot_be_cancelled(house: House) -> None:
    house.ready(planned_release=False)
    job = house.submit().json()
    held = house.worker.claim()
    assert held is not None
    assert house.ada.delete(f"/v1/jobs/{job['id']}").json()["type"] == "/problems/not-cancellable"
    house.worker.carry_out(held)
    assert house.ada.delete(f"/v1/jobs/{job['id']}").json()["type"] == "/problems/not-cancellable"
    assert remaining(house) == "0.9"


def test_job_is_seen_by_its_analyst_and_by_the_datasets_owner_alone(house: House) -> None:
    house.ready()
    house.grant("ben")
    job = house.submit().json()
    for person, status in ((house.ada, 200), (house.carla, 200), (house.ben, 404)):
        assert person.get(f"/v1/jobs/{job['id']}").status_code == status
    assert house.ben.delete(f"/v1/jobs/{job['id']}").status_code == 404
    assert house.ben.get("/v1/jobs").json()["items"] == []
    assert [each["id"] for each in house.carla.get("/v1/jobs").json()["items"]] == [job["id"]]


def test_rehearsal_touches_neither_rows_nor_budget(house: House) -> None:
    house.ready()
    before = house.carla.get("/v1/datasets/flowers/ledger").json()
    with house.database.engine.begin() as connection:
        connection.execute(text("DELETE FROM dataset_chunks"))
    job = house.submit("0.5", rehearsal=True).json()
    assert (job["rehearsal"], job["cost"]) == (True, {"epsilon": "0", "delta": "0"})
    assert house.work()
    house.clock.move(1)
    result = house.ada.get(f"/v1/jobs/{job['id']}/result").json()
    assert result["rehearsal"] is True
    assert house.ada.get(f"/v1/jobs/{job['id']}/receipt").json()["statement"].startswith("A rehearsal")
    assert house.carla.get("/v1/datasets/flowers/ledger").json() == before
    assert remaining(house) == "1"


@pytest.mark.parametrize(
    "kind",
    [
        {"bounds": {"ball": {"radius": 3}}},
        {"columns": None, "dimension": 30, "bounds": {"sparse": {"radius": 2}}},
    ],
)
def test_rehearsal_works_on_every_kind_of_rows(
    small_house: House, kind: dict[str, Any], tmp_path: Path
) -> None:
    from tests.service.datasets.ingest.test_uploads import as_npz
    from tests.support.service import table

    small_house.create(**kind)
    sparse = "dimension" in kind
    content, media = (as_npz(np_eye(30)), "application/x-npz") if sparse else (table(5), "text/csv")
    assert small_house.upload(content, kind=media).status_code == 200
    small_house.grant()
    assert small_house.submit(rehearsal=True).status_code == 202
    assert small_house.work()
    small_house.clock.move(1)
    assert small_house.ada.get("/v1/jobs/latest").json()["state"] == "succeeded"


def np_eye(size: int) -> object:
    import scipy.sparse as sp

    return sp.csr_array(np.eye(size))


def test_failure_keeps_the_charge_and_says_nothing_about_its_cause(house: House) -> None:
    house.ready(planned_release=False)
    job = house.submit("0.4").json()
    with house.database.engine.begin() as connection:
        connection.execute(text("DELETE FROM dataset_chunks"))
    assert house.work()
    seen = house.ada.get(f"/v1/jobs/{job['id']}").json()
    assert (seen["state"], seen["message"]) == ("failed", "the job ended without a result; its charge stands")
    problem = house.ada.get(f"/v1/jobs/{job['id']}/result")
    assert (problem.status_code, problem.json()["type"]) == (409, "/problems/job-failed")
    assert remaining(house) == "0.6"
    assert not house.work()


def test_plan_that_cannot_run_any_more_is_void_before_the_charge(house: House) -> None:
    house.ready()
    job = house.submit("0.4").json()
    with house.database.write() as session:
        row = session.scalars(select(Job)).one()
        row.plan = {**row.plan, "algorithm": "forgotten"}
    assert not house.work()
    assert house.ada.get(f"/v1/jobs/{job['id']}").json()["state"] == "failed"
    assert remaining(house) == "1"
    kinds = [row["kind"] for row in house.carla.get("/v1/datasets/flowers/ledger").json()["items"]]
    assert kinds == ["open", "cap", "reserve", "void"]


def test_plan_with_a_parameter_of_another_version_is_void_before_the_charge(house: House) -> None:
    house.ready()
    house.submit("0.4", algorithm="summit")
    with house.database.write() as session:
        row = session.scalars(select(Job)).one()
        row.plan = {**row.plan, "parameters": {**row.plan["parameters"], "forgotten": True}}
    assert not house.work()
    assert remaining(house) == "1"


@pytest.mark.parametrize(("factor", "runs"), [(1 + 1e-12, True), (1.01, False)])
def test_plan_runs_where_its_work_is_counted_alike(house: House, factor: float, runs: bool) -> None:
    """Another machine may round otherwise; another version counts otherwise, and its jobs are void."""
    house.ready()
    house.submit("0.4")
    with house.database.write() as session:
        row = session.scalars(select(Job)).one()
        work = {**row.plan["work"], "operations": factor * row.plan["work"]["operations"]}
        row.plan = {**row.plan, "work": work}
    assert house.work() == runs
    assert remaining(house) == ("0.6" if runs else "1")


def test_plan_that_was_altered_is_not_run(house: House) -> None:
    house.ready()
    house.submit("0.4")
    with house.database.write() as session:
        row = session.scalars(select(Job)).one()
        row.plan = {**row.plan, "privacy": {**row.plan["privacy"], "rho": "0"}}
    assert not house.work()
    assert remaining(house) == "1"


WRONG = [
    ({"k": 0}, "invalid-request"),
    ({"k": True}, "invalid-request"),
    ({"k": 2.5}, "invalid-request"),
    ({"epsilon": "0"}, "invalid-request"),
    ({"epsilon": "-1"}, "invalid-request"),
    ({"epsilon": "nan"}, "invalid-request"),
    ({"epsilon": False}, "invalid-request"),
    ({"delta": "1"}, "invalid-request"),
    ({"delta": "2e-19"}, "invalid-request"),
    ({"algorithm": "magic"}, "unknown-algorithm"),
    ({"objective": "modes"}, "invalid-request"),
    ({"objective": "medians"}, "unknown-algorithm"),
    ({"options": {"rounds": 0}}, "invalid-request"),
    ({"options": {"rounds": 10**400}}, "invalid-request"),
    ({"options": {"surprise": 1}}, "invalid-request"),
    ({"sites": "none"}, "not-found"),
    ({"surprise": 1}, "invalid-request"),
]


@pytest.mark.parametrize(("change", "slug"), WRONG, ids=str)
def test_wrong_request_is_refused_with_its_problem(
    shared_house: House, change: dict[str, Any], slug: str
) -> None:
    answer = (
        shared_house.submit(**change)
        if "epsilon" not in change
        else shared_house.submit(str(change["epsilon"]))
    )
    if change.get("epsilon") is False:
        answer = shared_house.ada.post("/v1/jobs", {"dataset": "flowers", "k": 2, "epsilon": False})
    assert answer.json()["type"] == f"/problems/{slug}", answer.text


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"epsilon": "0,5"}, "epsilon must be a number: write decimals with a point"),
        ({"options": {"pace": 1}}, "there is no option 'pace'; sulq takes rounds, clip"),
        (
            {"algorithm": "summit", "options": {"rounds": 1}},
            "there is no option 'rounds'; summit takes no options",
        ),
    ],
)
def test_a_refusal_says_what_to_write_instead(
    shared_house: House, change: dict[str, Any], detail: str
) -> None:
    body = {"dataset": "flowers", "k": 2, "epsilon": "0.1", "algorithm": "sulq", **change}
    assert shared_house.ada.post("/v1/plans", body).json()["detail"] == detail


@pytest.mark.parametrize("change", [{"algorithm": "magic"}, {"algorithm": "sulq", "objective": "medians"}])
def test_title_of_a_refused_algorithm_is_true_of_unknown_and_of_known_ones(
    shared_house: House, change: dict[str, Any]
) -> None:
    body = {"dataset": "flowers", "k": 2, "epsilon": "0.1", **change}
    assert shared_house.ada.post("/v1/plans", body).json()["title"] == "Algorithm not available"


def test_work_beyond_the_limit_is_refused_from_public_numbers(sqlite_url: str, tmp_path: Path) -> None:
    house = House(sqlite_url, tmp_path, max_operations=1000.0)
    house.ready()
    assert house.submit().json()["type"] == "/problems/work-limit"
    assert remaining(house) == "1"
    house.close()


def test_too_many_unfinished_jobs_are_refused(sqlite_url: str, tmp_path: Path) -> None:
    house = House(sqlite_url, tmp_path, max_queued_jobs=2, rehearsals_per_minute=1)
    house.ready(planned_release=False)
    house.submit("0.01", delta="0")
    house.submit("0.01", delta="0")
    answer = house.submit("0.01", delta="0")
    assert (answer.status_code, answer.json()["type"]) == (429, "/problems/too-many-queued")
    while house.work():
        pass
    assert house.submit(rehearsal=True).status_code == 202
    limited = house.submit(rehearsal=True)
    assert (limited.status_code, limited.json()["type"]) == (429, "/problems/rate-limited")
    house.clock.move(61)
    assert house.submit(rehearsal=True).status_code == 202
    house.close()


def test_jobs_are_listed_newest_first_in_pages(small_house: House) -> None:
    small_house.ready()
    made = [small_house.submit("0.01", delta="0").json()["id"] for _ in range(5)]
    first = small_house.ada.get("/v1/jobs", params={"limit": 3}).json()
    second = small_house.ada.get("/v1/jobs", params={"limit": 3, "cursor": first["next"]}).json()
    assert [job["id"] for job in first["items"] + second["items"]] == made[::-1]
    assert small_house.ada.get("/v1/jobs", params={"dataset": "other"}).json()["items"] == []


def test_algorithms_are_listed_with_their_options(shared_house: House) -> None:
    items = shared_house.ada.get("/v1/algorithms").json()["items"]
    assert [each["name"] for each in items] == list(registry.names())
    assert all(each["options"]["type"] == "object" for each in items)
