"""Public sites travel by digest: stored once, named in plans, loaded by workers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from service.jobs import plans
from service.operations.tables import Job, SiteSet
from tests.support.service import House

SHOPS = {"kind": "coordinates", "metric": "euclidean", "points": [[1, 1], [5, 2], [9, 3]]}


def ask(house: House, **changes: Any) -> Any:
    body = {"dataset": "flowers", "k": 2, "algorithm": "gupta", "objective": "medians"}
    return house.ada.post("/v1/jobs", {**body, "epsilon": "0.1", "delta": "0", **changes})


def stored(house: House) -> tuple[list[Job], list[SiteSet]]:
    with house.database.read() as session:
        return list(session.scalars(select(Job))), list(session.scalars(select(SiteSet)))


@pytest.mark.parametrize("algorithm", ["gupta", "jones"])
@pytest.mark.both_databases
def test_sites_sent_with_jobs_are_stored_once_and_named_by_digest(house: House, algorithm: str) -> None:
    house.ready(planned_release=False)
    for _ in range(2):
        answer = ask(house, algorithm=algorithm, options={"sites": SHOPS})
        assert answer.status_code == 202, answer.text
        assert house.work()
        centres = house.ada.get("/v1/jobs/latest/result").json()["centres"]
        assert all(centre in SHOPS["points"] for centre in centres)
    jobs, sets = stored(house)
    assert [(each.name, each.count) for each in sets] == [(None, 3)]
    for job in jobs:
        assert job.plan["inputs"]["sites"]["digest"] == sets[0].digest
        assert "points" not in json.dumps([job.plan, job.request])
    assert house.carla.get("/v1/datasets/flowers/sites").json()["items"] == []


def test_the_receipt_shows_the_whole_domain_and_the_digest_of_the_sites(small_house: House) -> None:
    small_house.ready(planned_release=False)
    ask(small_house, options={"sites": SHOPS})
    assert small_house.work()
    receipt = small_house.ada.get("/v1/jobs/latest/receipt").json()
    assert receipt["domain"]["columns"] == ["a", "b"]
    assert receipt["inputs"]["sites"]["count"] == 3
    assert receipt["request"]["options"]["sites"] == receipt["inputs"]["sites"]


def test_too_many_sites_in_a_request_are_refused_with_advice(small_house: House) -> None:
    small_house.ready()
    many = np.random.default_rng(1).uniform([0, 0], [10, 4], (7200, 2)).tolist()
    answer = ask(small_house, options={"sites": {**SHOPS, "points": many}})
    assert answer.json()["type"] == "/problems/invalid-request"
    assert "store them as a site set" in answer.json()["detail"]


def test_plans_are_kept_within_a_bound_of_bytes(small_house: House) -> None:
    """Eight MiB in all: so many plans, none of which may be longer, of requests that name few sites."""
    kept = plans._cached_plan.cache_info
    assert (kept().maxsize or 0) * plans._LONGEST_PLAN <= 8 << 20
    small_house.ready()
    plans._cached_plan.cache_clear()
    before = kept()
    many = np.random.default_rng(1).uniform([0, 0], [10, 4], (1000, 2)).tolist()
    assert ask(small_house, options={"sites": {**SHOPS, "points": many}}).status_code == 202
    assert kept() == before
    assert ask(small_house, options={"sites": SHOPS}).status_code == 202
    assert kept().misses == before.misses + 1


def test_a_job_on_a_large_matrix_has_a_short_row_and_plans_without_its_payload(small_house: House) -> None:
    count = 300
    small_house.create(columns=None, dimension=None, bounds={"ids": {"count": count}}, size=400)
    rows = b"site\n" + b"".join(b"%d\n" % (i % count) for i in range(400))
    assert small_house.upload(rows).status_code == 200
    assert small_house.grant().status_code == 200
    places = np.arange(count)
    matrix = "\n".join(",".join(map(str, np.abs(places - i))) for i in places)
    put = {"content": matrix.encode(), "params": {"kind": "distances"}}
    assert small_house.carla.call("PUT", "/v1/datasets/flowers/sites/towns", **put).status_code == 200
    with small_house.database.write() as session:
        payload = session.scalars(select(SiteSet.payload)).one()
        session.connection().exec_driver_sql("UPDATE site_sets SET payload = x'00'")
    answer = ask(small_house, sites="towns")
    assert answer.status_code == 202, answer.text
    (job,), _ = stored(small_house)
    assert len(json.dumps([job.plan, job.request])) < 10_000
    with small_house.database.write() as session:
        session.scalars(select(SiteSet)).one().payload = payload
    assert small_house.work()
    assert small_house.ada.get(f"/v1/jobs/{job.id}").json()["state"] in ("running", "succeeded")
