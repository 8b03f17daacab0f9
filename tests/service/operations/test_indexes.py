"""Every list is read by an index, in order: no query walks through all jobs or entries, or sorts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text

from tests.support.service import House

#: Tables that grow with use.
GROWING = ("jobs", "ledger_entries", "results", "audit_events")


@contextmanager
def plans_of_queries(house: House) -> Iterator[list[str]]:
    """Collect the steps by which SQLite answers each query of the block."""
    seen: list[tuple[str, Any]] = []
    steps: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            seen.append((statement, parameters))

    engine = house.database.engine
    event.listen(engine, "before_cursor_execute", note)
    yield steps
    event.remove(engine, "before_cursor_execute", note)
    with engine.connect() as connection:
        for statement, parameters in seen:
            found = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps += [f"{row.detail} -- {statement}" for row in found]


def walks(steps: list[str]) -> list[str]:
    """Return the steps that read a whole table, or sort what they found in it."""
    scans = tuple(f"SCAN {table}" for table in GROWING)
    sorts = [f"FROM {table} " for table in GROWING]
    return [
        each
        for each in steps
        if each.startswith(scans)
        or ("TEMP B-TREE FOR ORDER" in each and any(table in each for table in sorts))
    ]


@pytest.fixture
def used_house(small_house: House) -> House:
    small_house.ready(planned_release=False)
    small_house.submit("0.1", key="a", delta="0")
    assert small_house.work()
    small_house.submit("0.1", key="b", delta="0")
    with small_house.database.write() as session:
        session.execute(text("ANALYZE"))
    return small_house


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs",
        "/v1/jobs?limit=1",
        "/v1/jobs?dataset=flowers",
        "/v1/jobs/latest",
        "/v1/jobs/latest/result",
        "/v1/datasets",
        "/v1/datasets/flowers/ledger",
        "/v1/datasets/flowers/ledger?cursor=MQ",
    ],
)
@pytest.mark.parametrize("who", ["ada", "carla"])
def test_list_is_read_by_an_index(used_house: House, who: str, path: str) -> None:
    person = getattr(used_house, who)
    with plans_of_queries(used_house) as steps:
        answer = person.get(path)
        assert answer.status_code == (404 if path.endswith("result") else 200)
        if answer.is_success and answer.json().get("next") and "cursor" not in path:
            assert person.get(f"{path}&cursor={answer.json()['next']}").status_code == 200
    assert steps
    assert walks(steps) == []


def test_metrics_walk_through_no_table_that_grows(used_house: House) -> None:
    with plans_of_queries(used_house) as steps:
        assert used_house.carla.get("/metrics").status_code == 200
    read = [each for each in steps if "FROM jobs" in each or "FROM ledger_entries" in each]
    searched = [each for each in read if each.startswith(("SEARCH", "SCAN"))]
    assert searched
    assert all("INDEX ix_jobs_state_number (state=?)" in each for each in searched), searched
    # A minimum alone is looked for by a walk through the table, once the planner knows a million ended jobs.
    assert all("GROUP BY" in each for each in searched), searched


def test_submission_rehearsal_claim_and_cancellation_are_answered_by_indexes(used_house: House) -> None:
    with plans_of_queries(used_house) as steps:
        assert used_house.submit("0.1", key="c", delta="0", rehearsal=True).status_code == 202
        job = used_house.submit("0.1", key="d", delta="0").json()["id"]
        assert used_house.ada.delete(f"/v1/jobs/{job}").status_code == 200
        assert used_house.worker.claim() is not None
    assert [each for each in walks(steps) if "rehearsal, coalesce" not in each] == []  # the queue's own order
    assert any("ix_jobs_rehearsals" in each for each in steps)
    entries = [each for each in steps if each.startswith("SEARCH ledger_entries")]
    assert entries
    assert all("(job_id=?)" in each for each in entries)


@pytest.mark.parametrize("who", ["ada", "carla"])
def test_lists_of_jobs_do_not_read_plans(used_house: House, who: str) -> None:
    """A plan may have 64 KiB, and a page 500 jobs."""
    with plans_of_queries(used_house) as steps:
        assert getattr(used_house, who).get("/v1/jobs?limit=500").status_code == 200
        assert getattr(used_house, who).get("/v1/jobs/latest").status_code == 200
    assert any("FROM jobs" in each for each in steps)
    assert not any("jobs.plan," in each for each in steps)
