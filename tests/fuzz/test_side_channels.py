"""Nothing but released values tells two neighbouring datasets apart: not a byte, a header, a step or a time.

An analyst does all an analyst can do on two datasets that differ by one record, with the same random bits and
a clock that moves by hand; then everything they were told is compared. The neighbours are chosen to hurt:
none and one record, a number of records across a power of two that is also the end of a chunk, fewer records
than clusters, and an outlier alone in its corner.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import scipy.sparse as sp
from sqlalchemy import update

from core.algorithms import registry
from service.datasets import access, view
from service.http.wire import JobKind
from service.jobs.results.transcripts import MEDIA_TYPE
from service.operations.states import DatasetState
from service.operations.tables import Dataset, Result
from service.workers import execution
from tests.support.bits import inject_bytes
from tests.support.privacy import example_options
from tests.support.service import House

# 4096 bytes hold 1024 rows of two columns: the smallest chunk there is.
CHUNK = 1024
PAIRS = {
    "none and one": (0, 1),
    "fewer than clusters": (2, 1),
    "across a power of two and a chunk": (CHUNK, CHUNK + 1),
    "an outlier": (200, -201),
}
RELEASED = ("centres", "sizes", "intervals", "draws", "details", "findings", "view")
_CHANGING = {"x-request-id", "set-cookie"}


def dense_rows(count: int) -> bytes:
    """So many rows; a negative number stands for as many with an outlier at the end, far out of bounds."""
    values = [(1 + (7 * i) % 5 / 10, 1 + (3 * i) % 4 / 10) for i in range(abs(count) - (count < 0))]
    values += [(1e30, -1e30)] if count < 0 else []
    return ("a,b\n" + "".join(f"{a},{b}\n" for a, b in values)).encode()


def sparse_rows(count: int) -> bytes:
    dense = np.zeros((abs(count), 6))
    dense[:, 0] = 0.5
    if count < 0:
        dense[-1] = [0, 0, 0, 0, 0, 1e9]
    file = io.BytesIO()
    sp.save_npz(file, sp.csr_array(dense))
    return file.getvalue()


@pytest.fixture(scope="module")
def house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("watched")
    shutil.copy(sqlite_template, folder / "cairn.sqlite3")
    made = House(f"sqlite:///{folder / 'cairn.sqlite3'}", folder, chunk_bytes=4096)
    yield made
    made.close()


class Watcher:
    """Ada, who writes down everything she is told about one dataset, without names and the like."""

    def __init__(self, house: House, dataset: str):
        self.house, self.dataset = house, dataset
        self.start = house.clock.moment
        self.told: list[Any] = []
        self.job = ""
        #: Digests that name a dataset or a job, beside values that are told.
        self.naming = "digest|quote|hash|result|answers"

    def ask(self, verb: str, path: str, *, released: bool = False, **options: Any) -> Any:
        answer = self.house.ada.call(verb, path, **options)
        released = released or answer.headers["content-type"] == MEDIA_TYPE
        skipped = _CHANGING | ({"content-length"} if released or path.endswith("/receipt") else set())
        headers = {name: value for name, value in answer.headers.items() if name not in skipped}
        text = answer.text
        if released and answer.headers["content-type"] == "application/json":
            body = answer.json()
            if (
                "noise" in body
            ):  # that of centres follows from released sizes and radii, the rest from the plan
                body["noise"]["centres"] = _shape(body["noise"]["centres"])
            # What the caller's own release says of a plan's accuracy, and which of its clusters are closest.
            if body.get("earlier"):
                body["accuracy"]["verdict"] = "released"  # its sentence ends with that of `earlier`
            for name in ("earlier", "merged"):
                if body.get(name):
                    body[name] = "released"
            body.pop("bounds", None)  # whether there are any follows from released values, too
            text = json.dumps({name: _shape(v) if name in RELEASED else v for name, v in body.items()})
        elif answer.headers["content-type"] == MEDIA_TYPE:  # released values, after what they were asked for
            text = _transcribed(answer.content)
        elif released:
            text = re.sub(rb"-?\d+\.\d+(e[+-]\d+)?", b"#", answer.content).decode("latin-1")[:80]
        self.told.append(
            [verb, self._plain(path), answer.status_code, self._plain(headers), self._plain(text)]
        )
        return answer

    def _plain(self, said: Any) -> str:
        """Without the names of dataset and job, with times counted from the start."""
        text = str(said).replace(self.dataset, "DATASET")
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
        text = re.sub(r'"(id|key)": ?"[0-9a-f]{8}"', r'"\1": "-"', text)  # of a session, random
        # Those of a receipt and of a quote name the job or the dataset.
        text = re.sub(rf'"({self.naming})": ?"[0-9a-f]{{64}}"', r'"\1": "-"', text)
        text = re.sub(r'"value": ?"[A-Za-z0-9+/]{86}=="', '"value": "-"', text)  # the signature of a digest
        text = re.sub(r'"url_slug": ?"DATASET-[0-9a-f]{8}"', '"url_slug": "-"', text)
        text = re.sub(r'"next": ?"[\w-]+"', '"next": "-"', text)  # of a page, names a job
        text = re.sub(r"20\d\d-\d\d-\d\d(?!T)", "DAY", text)  # of the submission
        text = re.sub(r'"transcript":{"format":1,"bytes":\d+,"sha256":"[0-9a-f]{64}"}', "TRANSCRIPT", text)
        return re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+Z", self._since, text)

    def _since(self, match: re.Match[str]) -> str:
        from datetime import datetime

        return f"+{(datetime.fromisoformat(match[0]) - self.start).total_seconds()}"

    def watch(self, request: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        """Plan, submit, poll while a worker works, read everything, and ask what must be refused."""
        body = {"dataset": self.dataset, **request}
        self.ask("GET", f"/v1/datasets/{self.dataset}")
        quote = self.ask("POST", "/v1/plans", json=body).json()["quote"]
        for odd in ({"epsilon": "0.000001"}, {"options": {"odd": 1}}):
            self.ask("POST", "/v1/plans", json={**body, **odd})
        for wrong in ({"k": 0}, {"epsilon": "1001"}, {"delta": "0.9"}, {"quote": "0" * 64}):
            assert self.ask("POST", "/v1/jobs", json={**body, **wrong}).status_code >= 400
        self.job = self.ask("POST", "/v1/jobs", json={**body, "quote": quote}).headers["location"]
        self.ask("GET", self.job)
        self._run(monkeypatch)
        for path in (f"{self.job}/result", f"{self.job}/receipt"):
            self.ask("GET", path, released=path.endswith("result"))
        self.ask("GET", f"{self.job}/transcript", released=True)
        self.ask("GET", f"{self.job}/result", released=True, headers={"Accept": "text/csv"})
        npy = self.ask("GET", f"{self.job}/result", released=True, headers={"Accept": "application/x-npy"})
        self.told.append(np.load(io.BytesIO(npy.content)).shape)
        self.ask("DELETE", self.job)
        self.ask("PUT", f"{self.job}/note", json={"name": "again", "note": "?"})
        self.ask("GET", "/v1/jobs", params={"dataset": self.dataset, "search": "again"})
        self._sign_in_and_out()
        for path in ("/v1/jobs", f"/v1/datasets/{self.dataset}/ledger", f"/v1/datasets/{self.dataset}"):
            self.ask("GET", path, params={"dataset": self.dataset, "limit": 50})

    def watch_question(self, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        """Plan, submit, poll while a worker works, and read the answer and its receipt."""
        quote = self.ask("POST", "/v1/plans", json=body).json()["quote"]
        self.job = self.ask("POST", "/v1/jobs", json={**body, "quote": quote}).headers["location"]
        self._run(monkeypatch)
        self.ask("GET", f"{self.job}/result", released=True)
        self.ask("GET", f"{self.job}/result", released=True, headers={"Accept": "text/csv"})
        self.ask("GET", f"{self.job}/receipt")
        self.ask("GET", f"{self.job}/transcript", released=True)

    def _sign_in_and_out(self) -> None:
        """The same dataset with a cookie instead of a key."""
        started = self.ask("POST", "/v1/sessions", json={})
        cookie = {"Cookie": started.headers["set-cookie"].partition(";")[0], "Origin": "http://localhost"}
        for verb, path in (
            ("GET", f"/v1/datasets/{self.dataset}"),
            ("GET", "/v1/sessions"),
            ("DELETE", "/v1/sessions/current"),
            ("GET", f"/v1/datasets/{self.dataset}"),
        ):
            answer = self.house.client.request(verb, path, headers=cookie)
            self.told.append([path == "/v1/sessions", answer.status_code, self._plain(answer.text)])

    def _run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run in which each measurement takes 0.7 seconds, and what is seen of it, tick by tick."""
        clock = self.house.clock
        held = self.house.worker.claim()
        assert held is not None
        start = clock.moment
        real: Callable[..., Any] = execution.execute
        steps: list[Any] = []

        def slowly(*arguments: Any) -> Any:
            *rest, listener = arguments

            def listen(*step: Any) -> None:
                clock.move(0.7)
                steps.append(step)
                listener(*step)

            return real(*rest, listen)

        with monkeypatch.context() as patched:
            patched.setattr(execution, "execute", slowly)
            assert self.house.worker.carry_out(held)
        end = clock.moment
        self.told.append(steps)  # more than an analyst sees: the sequence of steps itself
        moment = 0.5
        while start + timedelta(seconds=moment / 2) < end:
            clock.moment = start + timedelta(seconds=moment)
            self.ask("GET", self.job)
            self.ask("GET", f"{self.job}/receipt")
            self.ask("GET", f"{self.job}/transcript")
            moment *= 1.37
        clock.moment = start + timedelta(seconds=3600)


def _transcribed(content: bytes) -> str:
    """A transcript without its released values, their shapes and seeds: the plan, and the steps in turn."""
    _, line, _ = content.split(b"\n", 2)
    header = json.loads(line)
    return json.dumps([header["plan"], list(header["draws"]), [each["step"] for each in header["releases"]]])


def _shape(value: Any) -> Any:
    """What is left of released values when the numbers are taken out."""
    if isinstance(value, dict):
        return {name: _shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return type(value).__name__


def jobs() -> list[tuple[str, str]]:
    return [(name, objective) for name in registry.names() for objective in registry.get(name).objectives]


def cases() -> list[Any]:
    """Each algorithm with one of the pairs in `make test`, with all of them in `make chaos`."""
    found = []
    for number, (algorithm, objective) in enumerate(jobs()):
        for place, pair in enumerate(PAIRS):
            long = place != number % len(PAIRS)
            found.append(pytest.param(algorithm, objective, pair, marks=[pytest.mark.chaos] if long else []))
    return found


def kind_of(algorithm: str) -> str:
    return "dense" if "dense" in registry.get(algorithm).domains else "sparse"


def prepare(house: House, name: str, kind: str, count: int) -> None:
    budget = {"epsilon": "1000", "delta": "0.01"}
    if kind == "dense":
        made = house.create(name, budget=budget)
        sent = house.upload(dense_rows(count), name)
    else:
        bounds = {"sparse": {"radius": 2.0}}
        made = house.create(name, columns=None, dimension=6, bounds=bounds, budget=budget)
        sent = house.upload(sparse_rows(count), name, "application/x-npz")
    assert (made.status_code, sent.status_code) == (201, 200), sent.text
    if count == 0:  # as versions sealed it that did not refuse to
        with house.database.write() as session:
            session.execute(update(Dataset).where(Dataset.name == name).values(state=DatasetState.SEALED))
    assert house.grant("ada", name, "1000", "0.01").status_code == 200


def request_for(house: House, dataset: str, algorithm: str, objective: str) -> dict[str, Any]:
    with house.database.read() as session:
        found = session.query(Dataset).filter_by(name=dataset).one()
        domain = access.domain_of(found)
    options = example_options(registry.get(algorithm), domain)
    return {"algorithm": algorithm, "objective": objective, "k": 3, "epsilon": "1", "options": options}


@pytest.mark.parametrize(("algorithm", "objective", "pair"), cases())
def test_only_released_values_tell_neighbours_apart(
    house: House, monkeypatch: pytest.MonkeyPatch, algorithm: str, objective: str, pair: str
) -> None:
    kind = kind_of(algorithm)
    watchers = []
    for side, count in zip(("left-", "right"), PAIRS[pair], strict=True):
        name = f"{algorithm}-{objective}-{list(PAIRS).index(pair)}-{side}"
        prepare(house, name, kind, count)
        watcher = Watcher(house, name)
        inject_bytes(monkeypatch, 11)
        watcher.watch(request_for(house, name, algorithm, objective), monkeypatch)
        watchers.append(watcher.told)
    left, right = watchers
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one == other


def test_comparison_would_notice_the_number_of_records(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    real = view.warnings
    for side, count in (("left-", 300), ("right", 301)):
        prepare(house, f"leaky-{side}", "dense", count)
        watcher = Watcher(house, f"leaky-{side}")
        with monkeypatch.context() as patched:
            patched.setattr(
                view,
                "warnings",
                lambda dataset, domain: [*real(dataset, domain), str(dataset.upload["rows"])],
            )
            watcher.ask("GET", f"/v1/datasets/leaky-{side}")
        told.append(watcher.told)
    assert told[0] != told[1]


QUESTIONS: dict[str, dict[str, Any]] = {
    "profile": {"columns": ["a"], "clusterings": 1},
    "explain": {"options": {"picks": 1}, "clusterings": 1},
    "compare": {"clusterings": 2},
    "table": {"columns": ["a", "b"]},
    "quantiles": {},
    "summary": {},
}


def question_cases() -> list[Any]:
    """Each kind with one of the pairs in `make test`, with all of them in `make chaos`."""
    return [
        pytest.param(kind, pair, marks=[pytest.mark.chaos] if place != number % len(PAIRS) else [])
        for number, kind in enumerate(QUESTIONS)
        for place, pair in enumerate(PAIRS)
    ]


def released_clustering(house: House, dataset: str) -> str:
    """The job of a clustering; its centres, which are public to a question, are the same on both sides."""
    job = str(house.submit("1", dataset=dataset).json()["id"])
    assert house.work()
    house.clock.move(3600)
    with house.database.write() as session:
        result = session.get_one(Result, job)
        result.body = {**result.body, "centres": [[1.2, 1.1], [8.0, 3.0]]}
    return job


@pytest.mark.parametrize(("kind", "pair"), question_cases())
def test_only_released_values_tell_neighbours_apart_by_questions(
    house: House, monkeypatch: pytest.MonkeyPatch, kind: str, pair: str
) -> None:
    assert {"cluster", *QUESTIONS} == set(get_args(JobKind))
    watchers = []
    for side, count in zip(("left-", "right"), PAIRS[pair], strict=True):
        name = f"{kind}-{list(PAIRS).index(pair)}-{side}"
        prepare(house, name, "dense", count)
        granted = {"epsilon": "1000", "delta": "0.01", "kinds": list(get_args(JobKind))}
        house.carla.put(f"/v1/datasets/{name}/grants/ada", granted)
        inject_bytes(monkeypatch, 11)
        asked = dict(QUESTIONS[kind])
        about = [{"job": released_clustering(house, name)}] * asked.pop("clusterings", 0)
        watcher = Watcher(house, name)
        if about:
            asked["clusterings"] = about
            watcher.naming += "|plan_digest"  # a plan names the job of its clustering
        watcher.watch_question({"dataset": name, "kind": kind, "epsilon": "1", **asked}, monkeypatch)
        watchers.append(watcher.told)
    left, right = watchers
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one == other
