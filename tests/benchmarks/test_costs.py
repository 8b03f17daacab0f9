"""The map of costs: work on the event loop does not grow with answers or bodies, whatever the call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.costs import Call, Meter, described_calls
from tests.support.service import House

#: Entries of each list that can have many, and functions that a request may call on the event loop for them.
_MANY, _MORE_CALLS = 60, 150
#: Functions for a long body: of a table each wrong column is named, and there are at most 1,000.
_CALLS_FOR_A_BODY = 2_500
#: A body that a thread parses, as it does long ones.
_SHORT = b'{"unknown": []}' + b" " * (9 << 10)
_VALUES = {"analyst": "ada", "name": "flowers", "slug": "not-found", "k": 2, "search": "x", "limit": _MANY}


@pytest.fixture(scope="module")
def house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with many jobs, entries of the ledger and audit events, and one long result."""
    folder = tmp_path_factory.mktemp("costs")
    (folder / "cairn.sqlite3").write_bytes(sqlite_template.read_bytes())
    with closing(House(f"sqlite:///{folder / 'cairn.sqlite3'}", folder, max_queued_jobs=1000)) as made:
        made.ready(release_ticks=False, budget={"epsilon": "100", "delta": "0.000001"})
        made.submit(k=2000, epsilon="0.01")
        assert made.work()
        for _ in range(_MANY):
            made.submit("0.001")
        yield made


def calls_to(house: House, **values: Any) -> list[Call]:
    jobs = house.ada.get("/v1/jobs?limit=500").json()["items"]
    known = {**_VALUES, "job_id": jobs[-1]["id"], **values}
    return list(described_calls(house.app, house.settings, known))


def test_event_loop_does_no_more_for_long_answers(house: House) -> None:
    """Functions are counted, not seconds: what loops over an answer calls some for each entry."""
    short = {(each.route, each.accept): each for each in calls_to(house, limit=1, k=1) if each.query}
    grown = []
    with Meter(house.app) as meter:
        for call in calls_to(house):
            small = short.get((call.route, call.accept), call)
            if call.changes_something or not call.query:
                continue
            for key in (house.carla.key, house.ada.key):
                for each in (small, call):  # what is made at the first request is made now
                    meter.request(each, key)
                more = meter.calls(call, key) - meter.calls(small, key)
                if more > _MORE_CALLS:
                    grown.append(f"{call.route} {call.accept}: {more}")
    assert grown == []


def test_event_loop_does_no_more_for_long_bodies(house: House) -> None:
    """Every list of a body is long and wrong in turn; nobody has a list of the lists."""
    grown, tried = [], 0
    with Meter(house.app) as meter:
        calls = [each for each in calls_to(house) if each.what.startswith("long")]
        for call in calls:
            small = Call(**{**vars(call), "body": _SHORT})
            tried += 1
            for each in (small, call):
                cost = meter.request(each, house.carla.key)
                assert 400 <= cost.status < 500, (call.route, call.what)
            more = meter.calls(call, house.carla.key) - meter.calls(small, house.carla.key)
            if more > _CALLS_FOR_A_BODY:
                grown.append(f"{call.route} {call.what}: {more}")
    assert tried > 10
    assert grown == []
