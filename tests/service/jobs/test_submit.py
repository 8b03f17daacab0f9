"""Tests of submissions that arrive at the same moment: each is accepted or refused by itself."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from sqlalchemy import event, func, select, text

from core.privacy import Budget
from service import ledger
from service.datasets import grants, lifecycle
from service.datasets.decisions import Decision
from service.jobs import plans
from service.ledger import verification
from service.operations.tables import Dataset, Job, LedgerEntry
from service.people import principals
from tests.support.service import House, Person

pytestmark = pytest.mark.both_databases


def at_once(house: House, *bodies: dict[str, Any]) -> list[Response]:
    """Submit several jobs at the same moment."""
    request = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0"}

    async def all_of_them() -> list[Response]:
        calls = []
        for body in bodies:
            key = body.get("key")
            headers = {"Authorization": f"Bearer {body.get('who', house.ada).key}"}
            headers |= {"Idempotency-Key": key} if key else {}
            content = request | {name: body[name] for name in body if name not in ("key", "who")}
            calls.append(house.client._client.post("/v1/jobs", json=content, headers=headers))
        return list(await asyncio.gather(*calls))

    return house.client._loop.run(all_of_them())


def verified(house: House) -> bool:
    with house.database.read() as session:
        dataset = session.scalars(select(Dataset)).one()
        return verification.verify(session, dataset.id).ok


def test_jobs_of_one_moment_are_all_reserved_in_one_chain(house: House) -> None:
    house.ready()
    answers = at_once(house, *({} for _ in range(8)))
    assert [answer.status_code for answer in answers] == [202] * 8
    assert len({answer.json()["id"] for answer in answers}) == 8
    assert verified(house)
    with house.database.read() as session:
        reserved = select(func.count()).where(LedgerEntry.kind == "reserve")
        assert session.scalar(reserved) == session.scalar(select(func.count()).select_from(Job)) == 8


def test_submission_takes_few_statements(house: House) -> None:
    """Statements are most of what a submission costs the service; the first one finds the caller."""
    house.ready()
    house.submit(key="first", delta="0")
    seen: list[str] = []
    event.listen(house.database.engine, "before_cursor_execute", lambda *given: seen.append(given[2]))
    assert house.submit(key="second", delta="0").status_code == 202
    begun = [each for each in seen if each.startswith("BEGIN")]  # only SQLite's are statements here
    assert len(seen) - len(begun) == 13


def test_jobs_of_one_moment_cannot_overdraw_together(house: House) -> None:
    house.ready()
    answers = at_once(house, *({"epsilon": "0.3"} for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [202] * 3 + [409] * 3
    refused = next(answer for answer in answers if answer.status_code == 409).json()
    assert refused["type"] == "/problems/budget-exhausted"
    assert verified(house)


def test_one_key_at_one_moment_makes_one_job(house: House) -> None:
    house.ready()
    answers = at_once(house, *({"key": "twice"} for _ in range(4)))
    assert [answer.status_code for answer in answers] == [202] * 4
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert [answer.headers.get("idempotency-replayed") for answer in answers].count("true") == 3


def test_one_key_at_one_moment_for_two_requests_refuses_the_second(house: House) -> None:
    house.ready()
    answers = at_once(house, {"key": "mixed"}, {"key": "mixed", "epsilon": "0.2"}, {})
    assert sorted(answer.status_code for answer in answers) == [202, 202, 422]


def test_one_key_at_one_moment_for_two_datasets_makes_one_job(house: House) -> None:
    house.ready()
    house.ready("birds")
    answers = at_once(house, {"key": "both"}, {"key": "both", "dataset": "birds"}, {}, {"dataset": "birds"})
    assert sorted(answer.status_code for answer in answers) == [202, 202, 202, 422]
    with house.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Job)) == 3


def test_limit_of_unfinished_jobs_counts_those_of_the_same_moment(house: House) -> None:
    house.ready()
    answers = at_once(house, *({"epsilon": "0.01"} for _ in range(25)))
    assert sorted(answer.status_code for answer in answers) == [202] * 20 + [429] * 5


def test_a_refused_neighbour_changes_nothing(house: House) -> None:
    house.ready()
    answers = at_once(house, {"epsilon": "0.9"}, {"who": house.ben}, {"epsilon": "0.9"}, {"epsilon": "0.1"})
    assert answers[1].status_code == 404
    assert sorted(answer.status_code for answer in answers) == [202, 202, 404, 409]
    assert verified(house)


def second_key_of_ada(house: House) -> tuple[Person, str]:
    issued = house.carla.post("/v1/principals/ada/keys", {"label": "laptop"}).json()
    return Person(house.client, "ada", issued["key"]), f"/v1/principals/ada/keys/{issued['id']}"


def test_keys_of_one_moment_are_judged_each_by_itself(house: House) -> None:
    house.ready()
    laptop, address = second_key_of_ada(house)
    assert [answer.status_code for answer in at_once(house, {"who": laptop})] == [202]
    assert house.carla.delete(address).status_code == 204
    answers = at_once(house, {"who": laptop}, {}, {"who": house.ben}, {"epsilon": "0.2"})
    assert [answer.status_code for answer in answers] == [401, 202, 404, 202]
    assert verified(house)


def test_strangers_are_not_told_what_is_wrong_with_their_request(small_house: House) -> None:
    laptop, address = second_key_of_ada(small_house)
    malformed = {"k": 2}
    assert laptop.post("/v1/jobs", malformed).status_code == 422
    assert small_house.carla.delete(address).status_code == 204
    assert laptop.post("/v1/jobs", malformed).status_code == 401
    assert small_house.client.request("POST", "/v1/jobs", json=malformed).status_code == 401


def test_submission_notices_a_dataset_that_was_retired_after_it_was_planned(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready()
    make_plan = plans.make_plan

    def retired_meanwhile(*arguments: Any, **named: Any) -> Any:
        plan = make_plan(*arguments, **named)
        with house.database.write() as session:
            dataset = session.scalars(select(Dataset)).one()
            lifecycle.retire(session, dataset, actor="carla", at=house.clock.now())
        return plan

    monkeypatch.setattr(plans, "make_plan", retired_meanwhile)
    answers = at_once(house, {})
    assert [answer.json()["type"] for answer in answers] == ["/problems/retired"]
    assert verified(house)


def test_submission_and_change_of_a_cap_never_wait_for_each_other(house: House) -> None:
    if house.database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    house.ready()
    with ThreadPoolExecutor(1) as pool:
        with house.database.write() as session:
            dataset = session.scalars(select(Dataset)).one()
            ledger.lock(session, dataset.id)
            submission = pool.submit(at_once, house, {})
            waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while session.scalar(waiting) == 0:
                time.sleep(0.01)  # waiting for another transaction, which offers nothing to wait on
            ada, cap = principals.find(session, "ada"), Budget.of("0.5", "0")
            grants.grant(session, dataset, ada, cap, by=Decision("carla", house.clock.now()))
        assert [answer.status_code for answer in submission.result()] == [202]


def test_job_below_the_least_epsilon_of_its_dataset_is_refused(small_house: House) -> None:
    small_house.ready(least_epsilon="0.05")
    for send in (small_house.submit, lambda epsilon: small_house.ada.post("/v1/plans", _body(epsilon))):
        refused = send("0.049")
        assert (refused.status_code, refused.json()["type"]) == (422, "/problems/epsilon-too-small")
        assert refused.json()["least_epsilon"] == "0.05"
        assert send("0.05").status_code in (200, 202)
    assert small_house.ada.get("/v1/datasets/flowers").json()["least_epsilon"] == "0.05"


def test_jobs_of_an_analyst_are_limited_by_the_hour(small_house: House) -> None:
    small_house.ready(jobs_per_hour=2)
    small_house.grant("ben")
    small_house.submit("0.01", delta="0")
    small_house.clock.move(1800)
    cancelled = small_house.submit("0.01", delta="0").headers["location"]
    assert small_house.ada.delete(cancelled).status_code == 200
    refused = small_house.submit("0.01", delta="0")
    assert (refused.status_code, refused.json()["type"]) == (429, "/problems/rate-limited")
    assert small_house.submit("0.01", delta="0", who=small_house.ben).status_code == 202
    assert small_house.submit(rehearsal=True).status_code == 202
    small_house.clock.move(1801)
    assert small_house.submit("0.01", delta="0").status_code == 202


def test_jobs_on_another_dataset_do_not_count_in_the_hour(small_house: House) -> None:
    small_house.ready(jobs_per_hour=1)
    small_house.ready("trees", jobs_per_hour=1)
    for name in ("flowers", "trees"):
        assert small_house.submit("0.01", delta="0", dataset=name).status_code == 202
        assert small_house.submit("0.01", delta="0", dataset=name).status_code == 429


@pytest.mark.parametrize("limit", [1, 2])
def test_as_many_rehearsals_as_a_minute_allows_are_accepted(
    sqlite_url: str, tmp_path: Path, limit: int
) -> None:
    with closing(House(sqlite_url, tmp_path, rehearsals_per_minute=limit)) as house:
        house.ready()
        answers = [house.submit(rehearsal=True).status_code for _ in range(limit + 1)]
        assert answers == [202] * limit + [429]
        house.clock.move(61)
        assert house.submit(rehearsal=True).status_code == 202


def test_a_rehearsal_with_too_much_work_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    with closing(House(sqlite_url, tmp_path, rehearsal_operations=1.0)) as house:
        house.ready()
        refused = house.submit(rehearsal=True)
        assert (refused.status_code, refused.json()["type"]) == (422, "/problems/work-limit")
        assert house.submit().status_code == 202


def _body(epsilon: str) -> dict[str, Any]:
    return {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": epsilon}
