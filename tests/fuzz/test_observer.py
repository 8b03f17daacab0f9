"""An observer with every request of an analyst cannot tell how long runs took, nor how many rows there are.

Two datasets have the same public facts; one has 1,000 rows and the other 200,000, or they are neighbours. A
worker takes one job after the other, one of them the curator's, each for a time that follows its rows, on a
clock that is moved by hand. The observer keeps a rehearsal running, which gives way to all of them and runs
again in between. Jobs on narrow rows read them in working bounds, and one finds clusters of few
records in a Fourier sketch; jobs on wide rows are offered public ones.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.datasets.catalogue.listings import GROUPS
from service.jobs import queue
from service.jobs.claims import Claim
from service.workers import execution
from tests.fuzz.test_side_channels import Watcher
from tests.support.service import House

REQUEST = {"k": 3, "epsilon": "0.1", "delta": "0", "algorithm": "sulq"}
OPEN_K = {"k": {"from": 1, "to": 3}, "epsilon": "1", "delta": "0", "algorithm": "summit"}
QUESTION = {"kind": "quantiles", "columns": ["x0"], "epsilon": "0.1"}
#: At so small an epsilon the declared records are few, and clusters are found in a Fourier sketch.
SKETCH = {"k": 3, "epsilon": "0.02", "delta": "0.0000001", "algorithm": "summit"}
PUBLIC = {"k": 3, "epsilon": "0.2", "delta": "0.0000001"}
NPY = "application/x-npy"
#: Runs whenever no job waits, and begins anew after each.
REHEARSAL = {**REQUEST, "rehearsal": True}
REHEARSED_SECONDS = 2.0
#: Rows that a run gets through in a second; a run of twice the planned time would overrun.
PACE = 400_000


@dataclass(frozen=True)
class Scene:
    """A dataset, what is asked about it in turn, and when the observer looks."""

    columns: int
    size: int
    asked: tuple[dict[str, Any], ...]
    #: What a plan of one of them names.
    named: str
    moments: tuple[float, ...]
    #: When the curator submits a job; the rehearsal is running again.
    interrupted_at: float
    public_rows: bool = False


NARROW = Scene(
    columns=3,
    size=10_000,
    asked=(OPEN_K, QUESTION, SKETCH, REQUEST),
    named="frequencies",
    moments=(0.05, 0.6, 1.3, 2.1, 3.1, 4.3, 5.0, 9.2, 16.1),
    interrupted_at=4.3,
)
WIDE = Scene(
    columns=65,
    size=200_000,
    asked=(PUBLIC, REQUEST),
    named="public_rows",
    moments=(0.05, 0.6, 2.1, 7.0, 10.0, 20.0),
    interrupted_at=7.0,
    public_rows=True,
)
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


_CALLS: list[str] = []


def calls_of(app: Any) -> list[str]:
    """The described calls of the service, beside the observer's own; every app has the same."""
    if not _CALLS:
        paths = app.openapi()["paths"]  # to describe them takes longer than fifty calls
        described = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
        assert described >= OWN_CALLS
        _CALLS.extend(sorted(described - OWN_CALLS))
    return _CALLS


class Observer(Watcher):
    """An analyst who makes every call of the description, about some jobs, over and over."""

    def __init__(self, house: House, dataset: str, asked: tuple[dict[str, Any], ...]) -> None:
        super().__init__(house, dataset)
        self.calls = calls_of(house.app)
        self.refused: set[str] = set()
        self.jobs = [self._submit(REHEARSAL).headers["location"]]
        self.rehearsal = house.worker.claim()
        self.jobs += [self._submit(request).headers["location"] for request in asked]
        wanted = {"epsilon": "5", "plan": {"dataset": dataset, **REQUEST}}
        self.request = self.ask("POST", "/v1/requests", json={"dataset": dataset, **wanted}).json()["id"]
        #: Jobs of which released values decide what else is released: for how many k, or how many steps.
        self.branching = {
            job for job, request in zip(self.jobs[1:], asked, strict=True) if request in (OPEN_K, PUBLIC)
        }
        #: Jobs whose result was read.
        self.read: set[str] = set()

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
                    status = self._look_at(verb, self._filled(path, job), query, job)
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
        name = self.dataset if path.startswith(("/v1/datasets", "/v1/catalogue")) else "ben"
        path = path.replace("/v1/jobs/{job_id}", job)
        others = {"slug": "not-found", "sites_name": "s", "key_id": "k", "label": "may", "population": "all"}
        others["request_id"] = self.request
        return path.format(name=name, analyst="ada", **others)

    def _look_at(self, verb: str, path: str, query: dict[str, Any], job: str) -> int:
        released = path.endswith(("/result", "/sample", "/transcript"))
        answer = self.ask(verb, path, released=released, params=query)
        if released and answer.status_code == 200:
            self.read.add(job)
            if job in self.branching:
                self.told[-1][-1] = "released"
        return int(answer.status_code)


def rows_of(count: int, columns: int) -> bytes:
    """Rows in ten groups; a wide file has single precision, so that 200,000 rows are not too large."""
    group = 7 * np.arange(count)[:, None] % 10
    file = io.BytesIO()
    np.save(file, (0.5 + (group + np.arange(columns)) % 10).astype(np.float32))
    return file.getvalue()


def prepare(house: House, dataset: str, rows: int, scene: Scene) -> None:
    """A dataset that ada may use, with working bounds or with public rows."""
    budget = {"epsilon": "5", "delta": "0.000001"}
    names = [f"x{place}" for place in range(scene.columns)]
    box = {"box": {"low": [0] * len(names), "high": [10] * len(names)}}
    made = house.create(dataset, columns=names, bounds=box, size=scene.size, budget=budget)
    assert made.status_code == 201, made.text
    assert house.upload(rows_of(rows, len(names)), dataset, NPY).status_code == 200
    granted = {**budget, "kinds": ["cluster", "quantiles"]}
    path = f"/v1/datasets/{dataset}"
    assert house.carla.put(f"{path}/grants/ada", granted).status_code == 200
    assert house.carla.put(f"{path}/listing", {"shows": list(GROUPS)}).status_code == 200
    population = {"name": "all", "budget": {"epsilon": "50", "delta": "0.00001"}}
    assert house.carla.post("/v1/populations", population).status_code == 201
    member = {"dataset": dataset, "one_row_per_person": True}
    assert house.carla.post("/v1/populations/all/datasets", member).status_code == 200
    if scene.public_rows:
        content, sent = rows_of(60, len(names)), {"Content-Type": NPY}
        answer = house.carla.call(
            "PUT", f"{path}/public-rows", content=content, params={"public": "true"}, headers=sent
        )
    else:
        bounds = {"columns": [{"column": "x0", "low": 1, "high": 8}]}
        answer = house.carla.put(f"{path}/working-bounds", bounds)
    assert answer.status_code == 200, answer.text
    plans = [house.ada.post("/v1/plans", {"dataset": dataset, **request}).text for request in scene.asked]
    assert sum(f'"{scene.named}"' in plan for plan in plans) == 1


class Shift:
    """The one worker: it takes a job when it is free, and rehearses while none waits."""

    def __init__(self, house: House, rehearsal: Claim | None) -> None:
        self.house, self.rehearsal = house, rehearsal
        #: When it began to rehearse, and from when on it takes jobs, and rehearsals.
        self.began = self.free = self.rested = house.clock.moment
        self.gave_way = 0

    def until(self, now: datetime) -> None:
        """Work until a moment; what is submitted from then on comes later."""
        clock, worker = self.house.clock, self.house.worker
        since = clock.moment
        while True:
            if self.rehearsal is not None and not self._rehearse(now, since):
                return
            if self.free > now:
                return
            clock.moment = max(self.free, since)
            claim = worker.claim(guests=clock.moment >= self.rested)
            if claim is None:
                return
            if claim.rehearsal:
                self.rehearsal, self.began = claim, clock.moment
            else:
                assert worker.carry_out(claim)
                self.free = claim.released_at(clock.moment)

    def _rehearse(self, now: datetime, since: datetime) -> bool:
        """Give way, or come to the end; False while it goes on."""
        clock, worker, claim = self.house.clock, self.house.worker, self.rehearsal
        assert claim is not None
        with self.house.database.read() as session:
            waits = queue.real_job_waits(session, since)
        if waits:
            worker.give_back(claim)
            self.gave_way += 1
        elif self.began + timedelta(seconds=REHEARSED_SECONDS) <= now:
            clock.moment = self.began
            assert worker.carry_out(claim)
            self.rested = claim.released_at(clock.moment)
        else:
            return False
        self.rehearsal = None
        return True


def observe(
    house: House, dataset: str, rows: int, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    """Everything that an analyst is told about some jobs, with the times of it.

    Between them a job of the curator is run, for which the rehearsal gives way once more.
    """
    prepare(house, dataset, rows, scene)
    observer, clock = Observer(house, dataset, scene.asked), house.clock
    granted = house.carla.post(f"/v1/requests/{observer.request}/grant", {"reason": "for now"})
    assert granted.status_code == 200, granted.text
    real: Callable[..., Any] = execution.execute

    def paced(claim: Claim, *rest: Any) -> Any:
        clock.move(REHEARSED_SECONDS if claim.rehearsal else rows / PACE)
        return real(claim, *rest)

    monkeypatch.setattr(execution, "execute", paced)
    start, shift = clock.moment, Shift(house, observer.rehearsal)
    for moment in scene.moments:
        now = start + timedelta(seconds=moment)
        shift.until(now)
        clock.moment = now
        observer.look(thorough=moment in (scene.moments[0], scene.moments[-1]))
        if moment == scene.interrupted_at:
            assert house.carla.post("/v1/jobs", {"dataset": dataset, **QUESTION}).status_code == 202
    monkeypatch.setattr(execution, "execute", real)
    assert shift.gave_way == 2
    assert observer.read == set(observer.jobs)
    return observer.told


@pytest.mark.parametrize("rows", [(1_000, 200_000), (5_000, 5_001)], ids=["size", "neighbours"])
@pytest.mark.parametrize("scene", [NARROW, WIDE], ids=["narrow", "public rows"])
def test_observer_is_told_the_same_at_the_same_times(
    sqlite_template: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scene: Scene,
    rows: tuple[int, int],
) -> None:
    told = []
    for side, number in zip(("left-rows", "rite-rows"), rows, strict=True):
        path = tmp_path / f"{side}.sqlite3"
        shutil.copy(sqlite_template, path)
        queued = len(scene.asked) + 1  # and the rehearsal
        with closing(House(f"sqlite:///{path}", tmp_path, max_queued_jobs=queued)) as house:
            told.append(observe(house, side, number, scene, monkeypatch))
    left, right = told
    assert {429, 202} <= {each[2] for each in left if len(each) == 5}
    assert len(left) == len(right)
    assert [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]] == []
