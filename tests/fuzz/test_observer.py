"""An observer with every request of an analyst cannot tell how long runs took, nor how many rows there are.

Two datasets have the same public facts; one has 1,000 rows and the other 200,000, or they are neighbours. A
worker takes one job after the other, one of them the curator's, each for a time that follows its rows, on a
clock that is moved by hand. All of them read rows in working bounds.
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
OPEN_K = {"k": {"from": 1, "to": 3}, "epsilon": "1", "delta": "0", "algorithm": "summit"}
QUESTION = {"kind": "quantiles", "columns": ["a"], "epsilon": "0.1"}
#: Rows that a run gets through in a second; a run of twice the planned time would overrun.
PACE = 400_000
MOMENTS = (0.05, 0.6, 1.3, 1.8, 2.1, 2.6, 3.1, 4.3, 5.0)
#: Calls that the observer makes with a body, or as a browser does; all others are made as they are described.
OWN_CALLS = {
    "POST /v1/plans",
    "POST /v1/jobs",
    "DELETE /v1/jobs/{job_id}",
    "PUT /v1/jobs/{job_id}/note",
    "POST /v1/sessions",
    "GET /v1/sessions",
    "DELETE /v1/sessions/{session_id}",
}
#: What is asked for beside the plain address of a call.
QUERIES: dict[str, tuple[dict[str, Any], ...]] = {
    "/v1/jobs": ({"limit": 2}, {"search": "again"}),
    "/v1/jobs/{job_id}/result": ({"k": 2}, {"k": 9}),
    "/v1/jobs/{job_id}/sample": ({"n": 5},),
}


class Observer(Watcher):
    """An analyst who makes every call of the description, about three jobs, over and over."""

    def __init__(self, house: House, dataset: str):
        super().__init__(house, dataset)
        paths = house.app.openapi()["paths"]
        described = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
        assert described >= OWN_CALLS
        self.calls = sorted(described - OWN_CALLS)
        self.refused: set[str] = set()
        asked = (OPEN_K, QUESTION, REQUEST)
        self.jobs = [self._submit(request).headers["location"] for request in asked]

    def _submit(self, request: dict[str, Any]) -> Any:
        return self.ask("POST", "/v1/jobs", json={"dataset": self.dataset, **request})

    def look(self, *, thorough: bool) -> None:
        """Make every call once, about every job; what was refused before, only now and then."""
        for call in self.calls:
            if call in self.refused and not thorough:
                continue
            verb, path = call.split()
            of_each_job = self.jobs if "{job_id}" in path else self.jobs[:1]
            for job in of_each_job:
                for query in ({}, *QUERIES.get(path, ())):
                    status = self._look_at(verb, self._filled(path, job), query, job == self.jobs[0])
                    if status == 403:
                        self.refused.add(call)
        for job in self.jobs:
            self.ask("PUT", f"{job}/note", json={"name": "again"})
        self.ask("DELETE", self.jobs[0])
        self.ask("POST", "/v1/plans", released=True, json={"dataset": self.dataset, **REQUEST})
        submitted = self._submit(REQUEST)
        if submitted.status_code == 202:
            self.ask("DELETE", submitted.headers["location"])
        self._sign_in_and_out()

    def _filled(self, path: str, job: str) -> str:
        name = self.dataset if path.startswith("/v1/datasets") else "ben"
        path = path.replace("/v1/jobs/{job_id}", job)
        return path.format(name=name, analyst="ada", slug="not-found", sites_name="s", key_id="k")

    def _look_at(self, verb: str, path: str, query: dict[str, Any], open_k: bool) -> int:
        released = path.endswith(("/result", "/sample", "/transcript"))
        answer = self.ask(verb, path, released=released, params=query)
        if released and open_k and answer.status_code == 200:
            self.told[-1][-1] = "released"  # for how many k, too, is a matter of what was released
        return int(answer.status_code)


def observe(house: House, dataset: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Everything that an analyst is told about three jobs, with the times of it.

    Between them a job of the curator is run.
    """
    budget = {"epsilon": "5", "delta": "0.000001"}
    assert house.create(dataset, size=200_000, budget=budget).status_code == 201
    assert house.upload(table(rows), dataset).status_code == 200
    granted = {**budget, "kinds": ["cluster", "quantiles"]}
    assert house.carla.put(f"/v1/datasets/{dataset}/grants/ada", granted).status_code == 200
    bounds = {"columns": [{"column": "a", "low": 1, "high": 8}]}
    assert house.carla.put(f"/v1/datasets/{dataset}/working-bounds", bounds).status_code == 200
    observer, clock = Observer(house, dataset), house.clock
    assert house.carla.post("/v1/jobs", {"dataset": dataset, **QUESTION}).status_code == 202
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
        observer.look(thorough=moment in (MOMENTS[0], MOMENTS[-1]))
    monkeypatch.setattr(execution, "execute", real)
    return observer.told


@pytest.mark.parametrize("rows", [(1_000, 200_000), (5_000, 5_001)])
def test_observer_is_told_the_same_at_the_same_times(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: tuple[int, int]
) -> None:
    told = []
    for side, number in zip(("left-rows", "rite-rows"), rows, strict=True):
        path = tmp_path / f"{side}.sqlite3"
        shutil.copy(sqlite_template, path)
        with closing(House(f"sqlite:///{path}", tmp_path, max_queued_jobs=3)) as house:
            told.append(observe(house, side, number, monkeypatch))
    left, right = told
    assert sum(each[-1] == "released" for each in left) >= 3  # a result, another k of it, made-up rows
    assert {429, 202} <= {each[2] for each in left if len(each) == 5}
    assert len(left) == len(right)
    assert [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]] == []
