"""Two services, one record apart: told what the first released, the second answers byte for byte the same.

The second service is a copy of the first one with jobs in its queue; its rows are those of a neighbour. Every
job runs in the first service. Its worker's noise is real. In the second service the same jobs run on their
rows, but every measurement releases what it released in the first. Status, headers and body of all answers
about these jobs must then be equal: whatever else differs would follow from rows, and nothing paid for it.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sqlalchemy import delete, insert, select

from core.algorithms import registry
from core.arrays import Integers
from core.data import Stored
from core.plan import Step
from core.questions import registry as questions
from service.datasets import access
from service.jobs.results import transcripts
from service.operations.tables import Dataset, DatasetChunk, Job, Period
from service.workers import execution
from service.workers.journal import StoredJournal
from tests.support.privacy import example_options
from tests.support.service import DOUBTS, House

BUDGET = {"epsilon": "1000", "delta": "0.01"}
#: Drawn for each answer.
CHANGING = {"x-request-id"}
COLUMNS = [
    {"name": "age", "kind": "number", "low": 0, "high": 100, "whole": True},
    {"name": "ward", "kind": "category", "levels": ["north", "south", "west"]},
    {"name": "smoker", "kind": "boolean"},
    {"name": "seen", "kind": "date", "low": "2020-01-01", "high": "2030-01-01"},
]


def npy(rows: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


def dense(extra: bool) -> bytes:
    rows = np.array([(1 + 7 * i % 5, 1 + 3 * i % 4 / 2) for i in range(120)], dtype=np.float64)
    return npy(np.concatenate([rows, [(10.0, 0.0)]]) if extra else rows)


def sparse(extra: bool) -> bytes:
    file, rows = io.BytesIO(), np.eye(60, 6)
    sp.save_npz(file, sp.csr_array(np.concatenate([rows, [[0, 0, 0, 0, 0, 2.0]]]) if extra else rows))
    return file.getvalue()


def ids(extra: bool) -> bytes:
    return "\n".join(["site", *(str(i % 11) for i in range(90)), *(["11"] if extra else []), ""]).encode()


def table(extra: bool) -> bytes:
    rows = [
        f"{20 + 7 * i % 50},{['north', 'south'][i % 2]},{i % 2},2024-05-{1 + i % 28:02}" for i in range(120)
    ]
    last = ["100,west,1,2020-01-01"] if extra else []
    return "\n".join(["age,ward,smoker,seen", *rows, *last, ""]).encode()


@dataclass(frozen=True)
class Kind:
    """A kind of dataset: its public facts, and its rows with and without one record."""

    facts: dict[str, Any]
    rows: Callable[[bool], bytes]
    media_type: str


KINDS = {
    "dense": Kind({}, dense, "application/x-npy"),
    "sparse": Kind(
        {"columns": None, "dimension": 6, "bounds": {"sparse": {"radius": 2.0}}}, sparse, "application/x-npz"
    ),
    "ids": Kind({"columns": None, "bounds": {"ids": {"count": 12}}}, ids, "text/csv"),
    "table": Kind({"columns": None, "bounds": None, "table": COLUMNS}, table, "text/csv"),
    "periods": Kind({"unit": "record"}, dense, "application/x-npy"),
}


def prepare(house: House, kind: str, accountant: str) -> Stored:
    """The dataset `flowers`, and its neighbour, which has one record more."""
    made = KINDS[kind]
    for name, extra in (("flowers", False), ("neighbour", True)):
        created = house.create(name, budget=BUDGET, accountant=accountant, **made.facts)
        assert created.status_code == 201, created.text
        if "unit" in made.facts:
            add_periods(house, name, extra)
        else:
            assert house.upload(made.rows(extra), name, made.media_type).status_code == 200
    granted = {**BUDGET, "kinds": ["cluster", *questions.names()]}
    assert house.carla.put("/v1/datasets/flowers/grants/ada", granted).status_code == 200
    with house.database.read() as session:
        return access.domain_of(session.scalars(select(Dataset).where(Dataset.name == "flowers")).one())


def add_periods(house: House, name: str, extra: bool) -> None:
    """Seal a month, and one that is then corrected, both versions of it with one record more if `extra`."""
    periods = f"/v1/datasets/{name}/periods"
    for label, act in (("2026-01", ""), ("2026-02", ""), ("2026-02", "/2026-02/correction")):
        begun = house.carla.post(periods + act, None if act else {"label": label})
        content, sent = dense(extra and label == "2026-02"), {"Content-Type": KINDS["dense"].media_type}
        taken = house.carla.call("PUT", f"{periods}/{label}/data", content=content, headers=sent)
        sealed = house.carla.post(f"{periods}/{label}/seal", {"confirm": list(DOUBTS)})
        assert [each.status_code for each in (begun, taken, sealed)] == [201, 200, 200], sealed.text


def on_periods() -> Iterator[dict[str, Any]]:
    """Jobs on the corrected period, on the other one, and on both."""
    yield {"k": 3, "algorithm": "sulq", "periods": ["2026-02"]}
    yield {"kind": "quantiles", "columns": ["a"], "periods": {"to": "2026-01"}}
    yield {"k": {"from": 1, "to": 3}, "algorithm": "summit"}


def clusterings(domain: Stored) -> Iterator[dict[str, Any]]:
    """A job of every algorithm and objective, under each guarantee that it offers, and one of open k."""
    for name in registry.names():
        algorithm = registry.get(name)
        if domain.kind not in algorithm.domains:
            continue
        options = example_options(algorithm, domain)
        deltas = {"pure": ["0"], "approximate": ["0.000001"]}.get(algorithm.guarantee, ["0", "0.000001"])
        for objective in algorithm.objectives:
            for delta in deltas:
                yield {"algorithm": name, "objective": objective, "k": 3, "delta": delta, "options": options}
    if domain.kind in ("dense", "table"):
        yield {"algorithm": "summit", "k": {"from": 1, "to": 3}}


def asked(domain: Stored, clustered: str) -> Iterator[dict[str, Any]]:
    """Every kind of question, with the noise of a pure budget and with the default of the accountant."""
    number = "age" if domain.kind == "table" else "a"
    own: dict[str, dict[str, Any]] = {
        "profile": {"columns": [number]},
        "explain": {"options": {"picks": 1}},
        "table": {"columns": ["age", "ward"] if domain.kind == "table" else ["a", "b"]},
        "quantiles": {"columns": [number]},
    }
    for kind in questions.names():
        named = {"profile": [clustered], "explain": [clustered], "compare": [clustered, clustered + "?k=2"]}
        request = {"kind": kind, **own.get(kind, {})}
        if kind in named:
            request["clusterings"] = [_clustering(each) for each in named[kind]]
        yield {**request, "delta": "0"}
        yield request


def _clustering(named: str) -> dict[str, Any]:
    job, _, k = named.partition("?k=")
    return {"job": job, **({"k": int(k)} if k else {})}


def submit(house: House, request: dict[str, Any]) -> str:
    """Submit a job of Ada's; its address."""
    answer = house.ada.post("/v1/jobs", {"dataset": "flowers", "epsilon": "1", **request})
    assert answer.status_code == 202, (request, answer.text)
    return str(answer.headers["location"])


def swap_rows(house: House) -> None:
    """Give `flowers` the rows of its neighbour."""
    with house.database.write() as session:
        named = {each.name: each.id for each in session.scalars(select(Dataset))}
        versions: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for each in session.scalars(select(Period)):
            versions[each.label, each.version][each.dataset_id] = each.id
        places = {of[named["neighbour"]]: of[named["flowers"]] for of in versions.values()} | {0: 0}
        columns = [each for each in DatasetChunk.__table__.columns if each.name != "id"]
        chunks = session.execute(select(*columns).where(DatasetChunk.dataset_id == named["neighbour"])).all()
        assert sum(chunk.rows for chunk in chunks) > 1
        session.execute(delete(DatasetChunk).where(DatasetChunk.dataset_id == named["flowers"]))
        for chunk in chunks:
            place = {"dataset_id": named["flowers"], "period_id": places[chunk.period_id]}
            session.execute(insert(DatasetChunk).values({**chunk._mapping, **place}))


class Told:
    """The journal of a worker that releases, on its own rows, what another service released."""

    def __init__(self, kept: list[Any], *, tell: bool) -> None:
        self._kept, self._tell, self._place = kept, tell, 0
        #: Measurements whose exact totals were computed on the rows of the second service.
        self.measured = 0

    def _next(self, make: Callable[[], Any], *, run: bool) -> Any:
        if not self._tell:
            self._kept.append(made := make())
            return made
        if run:
            make()
            self.measured += 1
        told = self._kept[self._place]
        self._place += 1
        return told

    def release(self, step: Step, statistic: Any, measure: Callable[[], Integers]) -> Integers:
        found: Integers = self._next(measure, run=True)
        return found

    def seed(self, name: str, draw: Callable[[], bytes]) -> bytes:
        found: bytes = self._next(draw, run=False)
        return found

    def require_used_up(self) -> None:
        assert not self._tell or self._place == len(self._kept), "the runs released other steps"


def work(house: House, journals: dict[str, list[Any]], *, tell: bool, patch: pytest.MonkeyPatch) -> int:
    """Run every queued job, telling it what the first service released; how much was measured."""
    opened: list[Told] = []

    def open_journal(_database: Any, claim: Any, _most: int) -> Told:
        opened.append(Told(journals.setdefault(claim.job_id, []), tell=tell))
        return opened[-1]

    with patch.context() as patched:
        patched.setattr(StoredJournal, "open", open_journal)
        while (claim := house.worker.claim()) is not None:
            assert house.worker.carry_out(claim)
    return sum(each.measured for each in opened)


def answers(house: House, jobs: list[str]) -> Iterator[tuple[Any, ...]]:
    """Everything that Ada can read about the jobs."""
    about = "/v1/datasets/flowers"
    paths = ["/v1/jobs", about, f"{about}/ledger", f"{about}/periods", *jobs]
    kinds = ("application/json", "text/csv", "application/x-npy")
    wanted: list[tuple[str, str, dict[str, int]]] = [(path, "application/json", {}) for path in paths]
    for job in jobs:
        wanted += [(f"{job}/result", kind, query) for kind in kinds for query in ({}, {"k": 2})]
        wanted += [(f"{job}/{part}", "*/*", {}) for part in ("receipt", "transcript")]
        wanted += [(f"{job}/sample", "text/csv", {"n": 5})]
    for path, kind, query in wanted:
        answer = house.ada.get(path, headers={"Accept": kind}, params=query)
        headers = {name: value for name, value in answer.headers.items() if name not in CHANGING}
        yield path, kind, query, answer.status_code, headers, answer.content


@dataclass
class Services:
    """Two services with the same jobs in their queues, one record apart."""

    first: House
    second: House
    jobs: list[str]


def services(stack: ExitStack, template: Path, folder: Path, kind: str, accountant: str) -> Services:
    """Cluster `flowers` once, queue every kind of job, copy the service, and swap the copy's rows."""
    shutil.copy(template, folder / "first.sqlite3")
    limits: dict[str, Any] = {"max_queued_jobs": 1000}
    first = stack.enter_context(closing(House(f"sqlite:///{folder / 'first.sqlite3'}", folder, **limits)))
    domain = prepare(first, kind, accountant)
    requests = list(on_periods() if kind == "periods" else clusterings(domain))
    if kind in ("dense", "table"):
        clustered = submit(first, {"k": {"from": 1, "to": 3}, "algorithm": "summit"})
        assert first.work()
        first.clock.move(3600)
        requests += asked(domain, clustered.rsplit("/", 1)[1])
    jobs = [submit(first, request) for request in requests]
    with (
        closing(sqlite3.connect(folder / "first.sqlite3")) as source,
        closing(sqlite3.connect(folder / "second.sqlite3")) as copy,
    ):
        source.backup(copy)
    people = {person.name: person.key for person in (first.carla, first.ada, first.ben)}
    second = House(f"sqlite:///{folder / 'second.sqlite3'}", folder, keys=people, **limits)
    stack.enter_context(closing(second))
    second.clock.moment = first.clock.moment
    swap_rows(second)
    return Services(first, second, jobs)


def compare(both: Services, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """Run all jobs in both services; every answer of each."""
    journals: dict[str, list[Any]] = {}
    assert work(both.first, journals, tell=False, patch=monkeypatch) == 0
    assert work(both.second, journals, tell=True, patch=monkeypatch) >= len(both.jobs)
    told = []
    for house in (both.first, both.second):
        house.clock.move(3600)
        with house.database.read() as session:
            assert set(session.scalars(select(Job.state))) == {"succeeded"}
        told.append(list(answers(house, both.jobs)))
    return told[0], told[1]


# The accountant decides the default noise of questions, which only these kinds of rows can answer.
@pytest.mark.parametrize(
    ("kind", "accountant"), [*((kind, "sum") for kind in KINDS), ("dense", "zcdp"), ("table", "zcdp")]
)
def test_answers_of_neighbours_are_equal_once_released_values_are(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, accountant: str
) -> None:
    with ExitStack() as stack:
        both = services(stack, sqlite_template, tmp_path, kind, accountant)
        first, second = compare(both, monkeypatch)
        assert len(first) == len(second) > 9 * len(both.jobs)
        assert [each[3] for each in first].count(200) > 4 * len(both.jobs)
        assert [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]] == []


def test_jobs_on_periods_are_replayed_from_their_transcripts(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        both = services(stack, sqlite_template, tmp_path, "periods", "sum")
        work(both.first, {}, tell=False, patch=monkeypatch)
        both.first.clock.move(3600)
        read = []
        for job in both.jobs:
            result, receipt, transcript = (
                both.first.ada.get(f"{job}/{part}") for part in ("result", "receipt", "transcript")
            )
            replayed = transcripts.replay(receipt.json(), transcript.content)
            assert {**result.json(), **json.loads(json.dumps(replayed))} == result.json()
            read.append([each["version"] for each in receipt.json()["periods"]])
        assert read == [[2], [1], [1, 2]]


def test_an_exact_number_in_an_answer_is_noticed(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = execution._body

    def with_count(run: Any, released: Any) -> dict[str, Any]:
        with house.database.read() as session:
            rows = sum(
                session.scalars(select(DatasetChunk.rows).where(DatasetChunk.dataset_id == run.dataset.id))
            )
        return {**body(run, released), "rows": rows}

    with ExitStack() as stack:
        both = services(stack, sqlite_template, tmp_path, "ids", "sum")
        monkeypatch.setattr(execution, "_body", with_count)
        journals: dict[str, list[Any]] = {}
        told = []
        for house, tell in ((both.first, False), (both.second, True)):
            work(house, journals, tell=tell, patch=monkeypatch)
            house.clock.move(3600)
            told.append(list(answers(house, both.jobs)))
        assert told[0] != told[1]
