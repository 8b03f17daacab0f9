"""Attacks by one caller on a real server while another analyst works, on loopback and bounded in time.

Attackers run in a process of their own and never pause. The analyst asks for lists, datasets and plans, one
request after the other; what matters is how long those take beside the attack and without it, and how much
memory the API takes meanwhile.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import psutil
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import Session

from assurance.chaos.stage import Stage, Tally
from benchmarks.harness.processes import RemotePerson, RunningService, server
from benchmarks.pages import fill, small_dataset
from service.operations.tables import Job, Result

#: Bars beside one attack: the analyst's median over that without one, or in seconds; the 99th percentile.
_MOST_RATIO, _MOST_MEDIAN, _MOST_SECONDS = 3.0, 0.04, 0.5
#: Bars beside all attacks at once, and always: the 99th percentile, and the memory of the API.
_MOST_SECONDS_BESIDE_ALL, _MOST_BYTES = 1.5, 500 << 20
#: The longest that a job may wait for a worker that rehearses.
_MOST_START_SECONDS = 2.0
_TOGETHER = "all of them at once"
_JOBS = 10_000
_SITES = [[place / 20_001, 0.987654321098765] for place in range(20_000)]
#: Copies of these in the largest result that a clustering may have, of 500,000 numbers.
_RESULT_COPIES = 12
#: Seconds after which an attacker hangs up.
_PATIENCE = 0.5
_JOB = {"dataset": "theirs", "k": 2, "algorithm": "sulq", "epsilon": "0.001", "delta": "0"}


class Attacker:
    """One connection of an attacker, which is opened again whenever the server closes it."""

    def __init__(self, address: str, key: str):
        self._place = urlsplit(address).netloc
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._connection = http.client.HTTPConnection(self._place, timeout=30)
        self.answers: dict[int, int] = {}

    def send(self, verb: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        """Send a request and read its answer; a connection that was closed on the way is no answer."""
        content = {"Content-Type": "application/json"} if body else {}
        try:
            self._connection.request(verb, path, body or None, {**self._headers, **content, **headers})
            answer = self._connection.getresponse()
            found = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self.answers[0] = self.answers.get(0, 0) + 1
            return b""
        self.count(answer.status, answer.headers.get("Retry-After"))
        return found

    def count(self, status: int, retry_after: str | None) -> None:
        """Count an answer; 503 without a time to come back at counts as 500."""
        status = 500 if status == 503 and retry_after is None else status
        self.answers[status] = self.answers.get(status, 0) + 1

    def ask_and_hang_up(self, path: str, **headers: str) -> None:
        """Send a request and hang up after a moment, whatever has come by then."""
        self._connection.timeout = _PATIENCE
        self.send("GET", path, b"", **headers)
        self._connection.close()


def _nested(attacker: Attacker) -> None:
    attacker.send("POST", "/v1/jobs", b"[" * (1 << 20))


def _sites(attacker: Attacker, count: int = 20_000) -> None:
    sites = {"kind": "coordinates", "points": _SITES[:count]}
    plan = {**_JOB, "algorithm": "gupta", "objective": "medians", "options": {"sites": sites}}
    attacker.send("POST", "/v1/plans", json.dumps(plan).encode())


def _fewer_sites(attacker: Attacker) -> None:
    _sites(attacker, 6_000)


def _lists(attacker: Attacker) -> None:
    attacker.send("GET", "/v1/jobs?limit=500")


def _ledger(attacker: Attacker) -> None:
    attacker.send("GET", "/v1/datasets/theirs/ledger", Accept="text/csv")


def _results(attacker: Attacker) -> None:
    attacker.send("GET", "/v1/jobs/latest/result")


def _abandoned_csv(attacker: Attacker) -> None:
    attacker.ask_and_hang_up("/v1/jobs/latest/result", Accept="text/csv")


def _csv(attacker: Attacker) -> None:
    attacker.send("GET", "/v1/jobs/latest/result", Accept="text/csv")


def _search(attacker: Attacker) -> None:
    attacker.send("GET", "/v1/jobs?search=nothing")


def _wrong_columns(attacker: Attacker) -> None:
    plan = {**_JOB, "columns": [[]] * 40_000}
    attacker.send("POST", "/v1/plans", json.dumps(plan).encode())


def _getting(path: str) -> Callable[[Attacker], None]:
    """Return an attack that asks for an address over and over."""

    def get(attacker: Attacker) -> None:
        attacker.send("GET", path)

    return get


def _submit_and_cancel(attacker: Attacker) -> None:
    with suppress(KeyError, ValueError):  # a refusal has no id, a closed connection no answer
        job = json.loads(attacker.send("POST", "/v1/jobs", json.dumps(_JOB).encode()))["id"]
        attacker.send("DELETE", f"/v1/jobs/{job}")


def _rehearse(attacker: Attacker) -> None:
    attacker.send("POST", "/v1/jobs", json.dumps({**_JOB, "k": 10_000, "rehearsal": True}).encode())


#: What one request of each attack does, how many connections it has, and whether it has a key.
ATTACKS: dict[str, tuple[Callable[[Attacker], None], int, bool]] = {
    "nested JSON without a key": (_nested, 16, False),
    "description of the API without a key": (_getting("/openapi.json"), 16, False),
    "page of the API without a key": (_getting("/docs"), 16, False),
    "readiness without a key": (_getting("/readyz"), 16, False),
    "20,000 sites in a plan": (_sites, 16, True),
    "6,000 sites in a plan": (_fewer_sites, 16, True),
    "40,000 wrong columns in a plan": (_wrong_columns, 16, True),
    "lists of 500 jobs": (_lists, 16, True),
    "searches": (_search, 16, True),
    "ledger as CSV": (_ledger, 16, True),
    "results of 10 MB": (_results, 16, True),
    "results as CSV": (_csv, 16, True),
    "results as CSV, abandoned": (_abandoned_csv, 16, True),
    "submit and cancel": (_submit_and_cancel, 16, True),
    "rehearsals": (_rehearse, 16, True),
}


#: What connections that never read ask for, and in which format.
_SILENT = {
    "silent readers of a ledger": ("/v1/datasets/theirs/ledger", "text/csv"),
    "silent readers of results": ("/v1/jobs/latest/result", "application/json"),
    "silent readers of results as CSV": ("/v1/jobs/latest/result", "text/csv"),
}
#: Each alone, and those that send requests all at once.
EVERY_ATTACK = (*ATTACKS, *_SILENT, _TOGETHER)


def _attack(names: tuple[str, ...], address: str, key: str, ready: Any, stop: Any, answers: Any) -> None:
    """Repeat attacks from their connections until `stop` is set; report the answers by status."""
    attackers: list[tuple[str, Attacker]] = []

    def repeat(act: Callable[[Attacker], None], attacker: Attacker) -> None:
        while not stop.is_set():
            act(attacker)

    threads = []
    for name in names:
        act, connections, with_key = ATTACKS[name]
        own = [Attacker(address, key if with_key else "") for _ in range(connections)]
        threads += [threading.Thread(target=repeat, args=(act, each)) for each in own]
        attackers += [(name, each) for each in own]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    answers.put([(name, each.answers) for name, each in attackers])


@contextmanager
def under_attack(names: tuple[str, ...], address: str, key: str, tally: Tally) -> Iterator[None]:
    """Make these attacks all at once, from a process of their own."""
    spawn = multiprocessing.get_context("spawn")
    ready, stop, answers = spawn.Event(), spawn.Event(), spawn.Queue()
    process = spawn.Process(target=_attack, args=(names, address, key, ready, stop, answers))
    process.start()
    assert ready.wait(300)  # a busy machine takes its time to start a process
    try:
        yield
    finally:
        stop.set()
        for name, found in answers.get(timeout=60):
            for status, number in found.items():
                tally.add(f"attacks: {name}: {status or 'connection closed'}", number)
                tally.check(status < 500 or status == 503, f"attacks: {name}: answered with {status}")
        process.join()


@contextmanager
def _silent_readers(address: str, key: str, path: str, accept: str) -> Iterator[None]:
    """Sixteen connections that ask for something long and never read the answer."""
    place = urlsplit(address)
    assert place.hostname is not None
    head = {"Host": place.netloc, "Accept": accept, "Authorization": f"Bearer {key}"}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    opened = [socket.create_connection((place.hostname, place.port)) for _ in range(16)]
    for each in opened:
        each.sendall("\r\n".join([*lines, "", ""]).encode())
    try:
        yield
    finally:
        for each in opened:
            each.close()


class Analyst:
    """The other analyst: asks in turn for what people ask for, within the allowance."""

    def __init__(self, person: RemotePerson, process: int):
        self._person, self._process = person, psutil.Process(process)

    def start_seconds(self) -> float:
        """Return how long a job of the analyst waits for the worker."""
        job = self._person.call("POST", "/v1/jobs", json={**_JOB, "dataset": "ours"}, expect=202).json()["id"]
        facts = self._person.wait(job)
        queued, claimed = (datetime.fromisoformat(facts[name]) for name in ("queued_at", "claimed_at"))
        return (claimed - queued).total_seconds()

    def work(self, seconds: float) -> tuple[float, float, int]:
        """Return the median and the 99th percentile of the seconds of a request, and the API's most bytes."""
        taken, most = [], 0
        until = time.monotonic() + seconds
        plan = {**_JOB, "dataset": "ours"}
        while time.monotonic() < until:
            for verb, path, body in (
                ("GET", "/v1/datasets", None),
                ("GET", "/v1/datasets/ours", None),
                ("GET", "/v1/jobs", None),
                ("GET", "/v1/datasets/ours/ledger", None),
                ("POST", "/v1/plans", plan),
            ):
                begun = time.perf_counter()
                self._person.call(verb, path, expect=200, **({"json": body} if body else {}))
                taken.append(time.perf_counter() - begun)
                most = max(most, self._process.memory_info().rss)
                time.sleep(0.04)  # a person's pace, which keeps the allowance
        return statistics.median(taken), statistics.quantiles(taken, n=100)[98], most


def _prepare(running: RunningService, url: str) -> tuple[RemotePerson, str]:
    """Make a dataset for the analyst and one for the attacker, who has many jobs; return her and his key."""
    carla = running.person(running.bootstrap_key())
    people = {}
    for name in ("ada", "mal"):
        made = carla.call("POST", "/v1/principals", json={"name": name, "role": "analyst"}, expect=201)
        people[name] = running.person(made.json()["first_key"]["key"])
    small_dataset(carla, "ours", "ada")
    small_dataset(carla, "theirs", "mal")
    engine = create_engine(url)
    job = people["mal"].call("POST", "/v1/jobs", json={**_JOB, "epsilon": "0.1"}, expect=202).json()["id"]
    people["mal"].wait(job)
    fill(engine, {job: 100}, range(_JOBS))
    _enlarge_result(engine, job)
    engine.dispose()
    return people["ada"], people["mal"].key


def _enlarge_result(engine: Engine, job: str) -> None:
    """Give the attacker's newest job the longest result that a clustering may have."""
    with Session(engine) as session, session.begin():
        newest = session.scalars(select(Job.id).order_by(Job.number.desc()).limit(1)).one()
        small = session.get_one(Result, job)
        centres = _SITES * _RESULT_COPIES
        large = {**small.body, "centres": centres, "sizes": [1.5] * len(centres)}
        session.add(Result(job_id=newest, body=large, receipt=small.receipt, created_at=small.created_at))


def attack(
    stage: Stage, tally: Tally, *, seconds: float, names: tuple[str, ...] = EVERY_ATTACK
) -> Iterator[str]:
    """Run attacks one after the other; yield a line of figures for each, which says if a bar was missed."""
    url = stage.database()
    with server(url, stage.folder, command=("serve", "--workers", "1"), log_level="error") as running:
        person, key = _prepare(running, url)
        analyst = Analyst(person, running.process.pid)
        analyst.work(seconds / 4)
        for name in names:
            quiet, _, _ = analyst.work(seconds)
            if name in _SILENT:
                hostile = _silent_readers(running.address, key, *_SILENT[name])
            else:
                chosen = tuple(ATTACKS) if name == _TOGETHER else (name,)
                hostile = under_attack(chosen, running.address, key, tally)
            with hostile:
                median, slow, most = analyst.work(seconds)
                waited = analyst.start_seconds() if name in ("rehearsals", _TOGETHER) else None
            tally.add("attacks: tried")
            figures = (
                f"{name}: median {median * 1e3:.0f} ms, {median / quiet:.1f} times quiet; "
                f"p99 {slow * 1e3:.0f} ms; API {most >> 20} MiB"
            )
            figures += "" if waited is None else f"; a job waits {waited:.1f} s"
            missed = _missed(name, median, quiet, slow, waited)  # no fault: it depends on the machine
            tally.check(most <= _MOST_BYTES, f"attack fills memory: {figures}")
            yield f"  {stage.kind}: {figures}{' (missed)' if missed else ''}"


def _missed(name: str, median: float, quiet: float, slow: float, waited: float | None) -> bool:
    """Return True if the analyst waited for longer than a bar."""
    late = waited is not None and waited > _MOST_START_SECONDS
    if name == _TOGETHER:
        return late or slow > _MOST_SECONDS_BESIDE_ALL
    return late or median > max(_MOST_RATIO * quiet, _MOST_MEDIAN) or slow > _MOST_SECONDS
