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
from typing import Any
from urllib.parse import urlsplit

import psutil
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import Session

from assurance.chaos.stage import Stage, Tally
from benchmarks.harness.processes import RemotePerson, RunningService, server
from benchmarks.pages import fill, small_dataset
from service.operations.tables import Job, Result

#: Bars: the analyst's median beside an attack over that without one, 99th percentile, memory of the API.
_MOST_RATIO, _MOST_SECONDS, _MOST_BYTES = 3.0, 1.0, 500 << 20
_JOBS = 10_000
_SITES = [[place / 20_001, 0.987654321098765] for place in range(20_000)]
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
        self.answers[answer.status] = self.answers.get(answer.status, 0) + 1
        return found


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


def _submit_and_cancel(attacker: Attacker) -> None:
    with suppress(KeyError, ValueError):  # a refusal has no id, a closed connection no answer
        job = json.loads(attacker.send("POST", "/v1/jobs", json.dumps(_JOB).encode()))["id"]
        attacker.send("DELETE", f"/v1/jobs/{job}")


def _rehearse(attacker: Attacker) -> None:
    attacker.send("POST", "/v1/jobs", json.dumps({**_JOB, "k": 200, "rehearsal": True}).encode())


#: What one request of each attack does, how many connections it has, and whether it has a key.
ATTACKS: dict[str, tuple[Callable[[Attacker], None], int, bool]] = {
    "nested JSON without a key": (_nested, 16, False),
    "20,000 sites in a plan": (_sites, 4, True),
    "6,000 sites in a plan": (_fewer_sites, 4, True),
    "lists of 500 jobs": (_lists, 4, True),
    "ledger as CSV": (_ledger, 12, True),
    "results of 4 MB": (_results, 8, True),
    "submit and cancel": (_submit_and_cancel, 4, True),
    "rehearsals": (_rehearse, 4, True),
}


def _attack(name: str, address: str, key: str, ready: Any, stop: Any, answers: Any) -> None:
    """Repeat an attack from its connections until `stop` is set; report the answers by status."""
    act, connections, with_key = ATTACKS[name]
    attackers = [Attacker(address, key if with_key else "") for _ in range(connections)]

    def repeat(attacker: Attacker) -> None:
        while not stop.is_set():
            act(attacker)

    threads = [threading.Thread(target=repeat, args=(each,)) for each in attackers]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    answers.put([each.answers for each in attackers])


@contextmanager
def _under_attack(name: str, address: str, key: str, tally: Tally) -> Iterator[None]:
    spawn = multiprocessing.get_context("spawn")
    ready, stop, answers = spawn.Event(), spawn.Event(), spawn.Queue()
    process = spawn.Process(target=_attack, args=(name, address, key, ready, stop, answers))
    process.start()
    assert ready.wait(300)  # a busy machine takes its time to start a process
    try:
        yield
    finally:
        stop.set()
        for found in answers.get(timeout=60):
            for status, number in found.items():
                tally.add(f"attacks: {name}: {status or 'connection closed'}", number)
        process.join()


@contextmanager
def _silent_readers(address: str, key: str, count: int) -> Iterator[None]:
    """Connections that ask for a ledger and never read the answer."""
    place = urlsplit(address)
    assert place.hostname is not None
    head = {"Host": place.netloc, "Accept": "text/csv", "Authorization": f"Bearer {key}"}
    lines = ["GET /v1/datasets/theirs/ledger HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    opened = [socket.create_connection((place.hostname, place.port)) for _ in range(count)]
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
    """Give the attacker's newest job the result of one: centres of 4 MB."""
    with Session(engine) as session, session.begin():
        newest = session.scalars(select(Job.id).order_by(Job.number.desc()).limit(1)).one()
        small = session.get_one(Result, job)
        centres = _SITES * 5
        large = {**small.body, "centres": centres, "sizes": [1.5] * len(centres)}
        session.add(Result(job_id=newest, body=large, receipt=small.receipt, created_at=small.created_at))


def attack(
    stage: Stage, tally: Tally, *, seconds: float, names: tuple[str, ...] = tuple(ATTACKS)
) -> list[str]:
    """Run attacks one after the other; return a line of figures for each, which says if a bar was missed."""
    url, lines = stage.database(), []
    with server(url, stage.folder, command=("serve", "--workers", "1"), log_level="error") as running:
        person, key = _prepare(running, url)
        analyst = Analyst(person, running.process.pid)
        analyst.work(seconds / 4)
        for name in (*names, "silent readers"):
            quiet, _, _ = analyst.work(seconds)
            hostile = (
                _silent_readers(running.address, key, 12)
                if name not in ATTACKS
                else _under_attack(name, running.address, key, tally)
            )
            with hostile:
                median, slow, most = analyst.work(seconds)
            tally.add("attacks: tried")
            figures = (
                f"{name}: median {median * 1e3:.0f} ms, {median / quiet:.1f} times quiet; "
                f"p99 {slow * 1e3:.0f} ms; API {most >> 20} MiB"
            )
            missed = (
                median > _MOST_RATIO * quiet or slow > _MOST_SECONDS
            )  # no fault: it depends on the machine
            lines.append(f"  {stage.kind}: {figures}{' (missed)' if missed else ''}")
            tally.check(most <= _MOST_BYTES, f"attack fills memory: {figures}")
    return lines
