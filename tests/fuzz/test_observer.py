"""An observer with every request of an analyst cannot tell how long runs took, nor how many rows there are.

Two datasets have the same public facts; one has 1,000 rows and the other 200,000, or they are neighbours. A
worker takes one job after the other, each for a time that follows its rows, on a clock that is moved by hand.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from service.workers import execution
from tests.fuzz.test_side_channels import Watcher
from tests.support.service import House, table

REQUEST = {"k": 3, "epsilon": "0.1", "delta": "0", "algorithm": "sulq"}
#: Rows that a run gets through in a second; a run of twice the planned time would overrun.
PACE = 400_000
MOMENTS = (0.05, 0.2, 0.45, 0.6, 0.8, 1.05, 1.3, 1.55, 1.8, 2.1, 2.6, 3.1, 4.3, 5.0)


def observe(house: House, dataset: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Everything that an analyst is told about three jobs, of which two are run, with the times of it."""
    budget = {"epsilon": "5", "delta": "0.000001"}
    assert house.create(dataset, size=200_000, budget=budget).status_code == 201
    assert house.upload(table(rows), dataset).status_code == 200
    assert house.grant("ada", dataset, epsilon="5").status_code == 200
    watcher, clock = Watcher(house, dataset), house.clock
    body = {"dataset": dataset, **REQUEST}
    jobs = [watcher.ask("POST", "/v1/jobs", json=body).headers["location"] for _ in range(3)]
    real: Callable[..., Any] = execution.execute

    def paced(*arguments: Any) -> Any:
        clock.move(rows / PACE)
        return real(*arguments)

    monkeypatch.setattr(execution, "execute", paced)
    start = free = clock.moment
    for moment in MOMENTS:
        now = start + timedelta(seconds=moment)
        if free <= now:  # the worker is free, and takes the next job
            clock.moment = free
            claim = house.worker.claim()
            if claim is not None:
                assert house.worker.carry_out(claim)
                free = claim.released_at(clock.moment)
        clock.moment = now
        for job in jobs:
            for part in ("", "/result", "/receipt", "/transcript"):
                watcher.ask("GET", job + part, released=part == "/result")
        watcher.ask("DELETE", jobs[0])
        submitted = watcher.ask("POST", "/v1/jobs", json=body)
        if submitted.status_code == 202:
            watcher.ask("DELETE", submitted.headers["location"])
        watcher.ask("POST", "/v1/plans", json=body)
        for path in ("/v1/jobs", f"/v1/datasets/{dataset}", f"/v1/datasets/{dataset}/ledger"):
            watcher.ask("GET", path, params={"dataset": dataset, "limit": 50})
    clock.moment = start + timedelta(hours=2)
    while house.work():
        pass
    clock.move(7200)
    return watcher.told


@pytest.mark.parametrize("rows", [(1_000, 200_000), (5_000, 5_001)])
def test_observer_is_told_the_same_at_the_same_times(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: tuple[int, int]
) -> None:
    shutil.copy(sqlite_template, tmp_path / "cairn.sqlite3")
    with closing(House(f"sqlite:///{tmp_path / 'cairn.sqlite3'}", tmp_path, max_queued_jobs=3)) as house:
        left, right = (
            observe(house, f"{side}-rows", number, monkeypatch)
            for side, number in zip(("left", "rite"), rows, strict=True)
        )
    assert any('"state":"succeeded"' in str(each) for each in left)
    assert {429, 202} <= {each[2] for each in left}
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one == other
