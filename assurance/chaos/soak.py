"""A soak: eight analysts use a real service for an hour, through restarts, and nothing may grow.

`make soak` runs it on PostgreSQL; `make soak SECONDS=300` is shorter, and with `ATTACKED=attacked` another
analyst makes every attack of `assurance/chaos/attacks.py` all the time. It prints a report in Markdown, for
docs/assurance/races.md, and keeps it in `build/soak.md`: memory, descriptors, threads and connections at the
end of each run, and how fast they grew. It fails on an answer of 500 and above, or a fault in a ledger.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import psutil
from sqlalchemy import create_engine, text

from assurance.chaos import attacks
from assurance.chaos.stage import Stage, Tally
from benchmarks.harness import monitoring
from benchmarks.harness.processes import RemotePerson, RunningService, server
from benchmarks.pages import small_dataset
from service.operations.database import Database

_CLIENTS = 8
#: The service is started so many times; slopes are taken within each run.
_RUNS = 3
#: With which the metrics are scraped.
_TOKEN = "soak" * 8
_REPORT = Path("build/soak.md")
_JOB = {"dataset": "shared", "k": 2, "algorithm": "sulq", "epsilon": "0.001", "delta": "0"}


class Person(RemotePerson):
    """Somebody whose answers are counted by status."""

    def __init__(self, address: str, key: str):
        super().__init__(address, key)
        self.answers: Counter[int] = Counter()

    def call(self, verb: str, path: str, *, expect: int | None = None, **options: Any) -> httpx.Response:
        answer = super().call(verb, path, **options)
        self.answers[answer.status_code] += 1
        if expect not in (None, answer.status_code):
            raise Unexpected(f"{verb} {path}: {answer.status_code} {answer.text}")
        return answer


class Unexpected(Exception):
    """An answer that was not the one expected."""


class Client(threading.Thread):
    """An analyst or a curator who does one thing after the other until told to stop."""

    def __init__(self, address: str, key: str, number: int, stop: threading.Event):
        super().__init__(daemon=True)
        self.person = Person(address, key)
        self.call = self.person.call
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []
        self._number, self._stop_asked = number, stop

    def run(self) -> None:
        for turn in itertools.count():
            if self._stop_asked.wait(0.1):
                break
            try:
                self.act(turn)
            except httpx.TransportError:
                self.done["requests without an answer while the service restarted"] += 1
            except Unexpected as unexpected:
                self.problems.append(str(unexpected))
        self.person.close()

    def act(self, turn: int) -> None:
        """Submit a job, or a rehearsal every fourth time; read lists; cancel it or wait for its result."""
        made = self.call("POST", "/v1/jobs", json={**_JOB, "rehearsal": turn % 4 == 0})
        self.call("GET", "/v1/jobs")
        self.call("GET", "/v1/datasets/shared/ledger")
        if made.status_code != 202:
            self._stop_asked.wait(1.0)
            return
        job = made.json()["id"]
        self.done["rehearsals" if turn % 4 == 0 else "jobs"] += 1
        if turn % 3 == 0 and self.call("DELETE", f"/v1/jobs/{job}").status_code == 200:
            self.done["cancelled"] += 1
            return
        for _ in range(20):
            status = self.call("GET", f"/v1/jobs/{job}/result").status_code
            if status != 404:
                self.done["results read"] += status == 200
                return
            if self._stop_asked.wait(0.5):
                return


class Curator(Client):
    """Makes small datasets, uploads rows, seals the datasets and retires them."""

    def act(self, turn: int) -> None:
        name = f"soak-{self._number}-{turn}"
        small_dataset(self.person, name)
        self.call("POST", f"/v1/datasets/{name}/retire", expect=200)
        self.call("GET", "/v1/audit", expect=200)
        self.done["uploads"] += 1
        self._stop_asked.wait(1.0)


def _sample(running: RunningService, url: str) -> dict[str, float]:
    """What the API and its workers take now."""
    api = psutil.Process(running.process.pid)
    workers = [each for each in api.children(recursive=True) if "worker" in " ".join(each.cmdline())]
    engine = create_engine(url)
    with engine.connect() as connection:
        query = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        connections = connection.execute(query).scalar_one() - 1
    engine.dispose()
    return {
        "API, MiB": api.memory_info().rss / 2**20,
        "API, descriptors": api.num_fds(),
        "API, threads": api.num_threads(),
        "workers, MiB": sum(each.memory_info().rss for each in workers) / 2**20,
        "workers, descriptors": sum(each.num_fds() for each in workers),
        "workers, threads": sum(each.num_threads() for each in workers),
        "connections to the database": connections,
    }


class Run:
    """One run of the service, from a start to a restart: what it took, moment by moment."""

    def __init__(self) -> None:
        self._moments: list[float] = []
        self._samples: list[dict[str, float]] = []
        #: Seconds that each scrape of the metrics took.
        self.scrapes: list[float] = []
        #: How many scrapes left a query of the dashboard or of an alert without data, by selector.
        self.unanswered: Counter[str] = Counter()

    def watch(self, running: RunningService, url: str, seconds: float) -> None:
        """Sample what the service takes for so long, and scrape it as Prometheus would."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(10.0, seconds / 20))
            self._moments.append(time.monotonic())
            self._samples.append(_sample(running, url))
            self._scrape(running)

    def _scrape(self, running: RunningService) -> None:
        begun = time.monotonic()
        answer = httpx.get(f"{running.address}/metrics", headers={"Authorization": f"Bearer {_TOKEN}"})
        self.scrapes.append(time.monotonic() - begun)
        scraped = monitoring.samples(answer.text)
        missing = (monitoring.unanswered(query, scraped) for query in monitoring.queries().values())
        self.unanswered.update({selector for found in missing for selector in found})

    def cells(self) -> dict[str, str]:
        """Each figure at the end of the run, and its growth in an hour by the run's second half."""
        half = len(self._samples) // 2
        found = {}
        for name in self._samples[0]:
            values = [each[name] for each in self._samples[half:]]
            growth = statistics.linear_regression(self._moments[half:], values).slope * 3600
            found[name] = f"{values[-1]:.0f} ({growth:+.1f})"
        return found


def soak(stage: Stage, tally: Tally, seconds: float, *, attacked: bool = False) -> list[str]:
    """Use the service for so long, under attack or not; return the lines of a report."""
    url, lines = stage.database(), []
    answers: Counter[int] = Counter()
    done: Counter[str] = Counter()
    keys: dict[str, str] = {}
    runs = [Run() for _ in range(_RUNS)]
    for number, run in enumerate(runs):
        stop = threading.Event()
        with server(url, stage.folder, log_level="error", metrics_token=_TOKEN) as running:
            if not keys:
                keys = _people(running)
            clients = [
                (Curator if name == "carla" else Client)(running.address, key, number, stop)
                for name, key in keys.items()
                if name != "mal"
            ]
            for client in clients:
                client.start()
            with _attackers(running, keys["mal"], tally) if attacked else nullcontext():
                run.watch(running, url, seconds / _RUNS)
            tally.check(running.process.poll() is None, "the service ended by itself")
            if number < _RUNS - 1:
                running.stop()  # while everybody is at work
            stop.set()
            for client in clients:
                client.join()
                answers += client.person.answers
                done += client.done
                tally.problems += client.problems
            if number == _RUNS - 1:
                carla = running.person(keys["carla"])
                report = carla.call("POST", "/v1/datasets/shared/ledger/verify").json()
                verified = report.get("ok", False)
                tally.check(verified, f"the ledger was not verified: {report}")
                if verified:
                    lines.append(f"The ledger of {report['entries']:,} entries was verified at the end.")
    done["restarts"] = _RUNS - 1
    lines.append("Done: " + ", ".join(f"{number:,} {what}" for what, number in sorted(done.items())) + ".")
    counted = ", ".join(f"{status}: {number:,}" for status, number in sorted(answers.items()))
    lines.append(f"Answers by status: {counted}.")
    allowed = {503} if attacked else set()
    wrong = {status for status in answers if status >= 500} - allowed
    tally.check(not wrong, f"answers of 500 and above: {answers}")
    lines.append(_scraped(runs))
    database = Database(url)
    tally.audit(database, "soak")
    database.dispose()
    return [*lines, "", *_table(runs)]


def _attackers(running: RunningService, key: str, tally: Tally) -> AbstractContextManager[None]:
    """Make every attack at once while the others work."""
    return attacks.under_attack(tuple(attacks.ATTACKS), running.address, key, tally)


def _scraped(runs: list[Run]) -> str:
    """What scrapes took, and which selectors of dashboard and alerts had no data, in how many of them."""
    seconds = [taken for run in runs for taken in run.scrapes]
    missing = sum((run.unanswered for run in runs), Counter[str]())
    found = ", ".join(f"{selector} ({times})" for selector, times in missing.items()) or "none"
    return (
        f"{len(seconds)} scrapes took {statistics.median(seconds) * 1000:.0f} ms in the median, "
        f"{max(seconds) * 1000:.0f} ms at most. Selectors of dashboard and alerts without data: {found}."
    )


def _table(runs: list[Run]) -> list[str]:
    columns = [run.cells() for run in runs]
    head = ["at the end (growth in an hour)", *(f"run {number + 1}" for number in range(len(runs)))]
    rows = [[name, *(each[name] for each in columns)] for name in columns[0]]
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]


def _people(running: RunningService) -> dict[str, str]:
    """Make a curator and the analysts, with a dataset that they share; return their keys."""
    carla = running.person(running.bootstrap_key())
    keys = {"carla": carla.key}
    for number in range(_CLIENTS):
        name = f"analyst-{number}"
        made = carla.call("POST", "/v1/principals", json={"name": name, "role": "analyst"}, expect=201)
        keys[name] = made.json()["first_key"]["key"]
    analysts = [name for name in keys if name != "carla"]
    small_dataset(carla, "shared", *analysts, jobs_per_hour=10**6)
    made = carla.call("POST", "/v1/principals", json={"name": "mal", "role": "analyst"}, expect=201)
    keys["mal"] = made.json()["first_key"]["key"]
    small_dataset(carla, "theirs", "mal")
    return keys


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "an unknown commit"


def main(arguments: list[str]) -> int:
    """Soak PostgreSQL for an hour or some seconds, `attacked` or not; print and keep the report."""
    attacked = "attacked" in arguments
    seconds = next((float(each) for each in arguments if each != "attacked"), 3600.0)
    tally = Tally()
    began = f"{time.strftime('%Y-%m-%d %H:%M')}, commit {_commit()}"
    with Stage("postgresql") as stage:
        lines = soak(stage, tally, seconds, attacked=attacked)
    beside = " beside every attack" if attacked else ""
    title = f"Soak of {seconds:.0f} s with {_CLIENTS} analysts and a curator{beside}, begun {began}."
    lines = [title, *lines, *(f"PROBLEM: {problem}" for problem in tally.problems)]
    _REPORT.parent.mkdir(parents=True, exist_ok=True)
    _REPORT.write_text("\n".join(lines) + "\n")
    sys.stdout.write(_REPORT.read_text())
    return 1 if tally.problems else 0
