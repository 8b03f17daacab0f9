"""A soak: eight analysts use a real service for an hour, through restarts, and nothing may grow.

`make soak` runs it on PostgreSQL; `make soak SECONDS=300` is shorter. It prints how memory, descriptors,
threads and connections changed between restarts, and fails on an answer of 500 and above, or a fault in a
ledger.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import httpx
import psutil
from sqlalchemy import create_engine, text

from benchmarks.harness.processes import RemotePerson, RunningService, server
from benchmarks.pages import small_dataset
from service.operations.database import Database
from tests.chaos.stage import Stage, Tally

_CLIENTS = 8
#: The service is started so many times; slopes are taken within each run.
_RUNS = 3
_JOB = {"dataset": "shared", "k": 2, "algorithm": "sulq", "epsilon": "0.001", "delta": "0"}


class Client(threading.Thread):
    """An analyst or a curator who does one thing after the other until told to stop."""

    def __init__(self, address: str, key: str, number: int, stop: threading.Event):
        super().__init__()
        self._person = RemotePerson(address, key)
        self._number, self._stop_asked = number, stop
        self.answers: Counter[int] = Counter()

    def run(self) -> None:
        for turn in itertools.count():
            if self._stop_asked.wait(0.1):
                break
            with suppress(httpx.TransportError):  # the service is being restarted
                self.act(turn)
        self._person.close()

    def call(self, verb: str, path: str, **options: Any) -> httpx.Response:
        answer = self._person.call(verb, path, **options)
        self.answers[answer.status_code] += 1
        return answer

    def act(self, turn: int) -> None:
        """Submit a job, or a rehearsal every fourth time; read lists; cancel it or wait for its result."""
        made = self.call("POST", "/v1/jobs", json={**_JOB, "rehearsal": turn % 4 == 0})
        self.call("GET", "/v1/jobs")
        self.call("GET", "/v1/datasets/shared/ledger")
        if made.status_code != 202:
            self._stop_asked.wait(1.0)
            return
        job = made.json()["id"]
        if turn % 3 == 0:
            self.call("DELETE", f"/v1/jobs/{job}")
        for _ in range(20):
            if self.call("GET", f"/v1/jobs/{job}/result").status_code != 404 or self._stop_asked.wait(0.5):
                break


class Curator(Client):
    """Makes small datasets, uploads rows and throws the datasets away."""

    def act(self, turn: int) -> None:
        name = f"soak-{self._number}-{turn}"
        small_dataset(self._person, name)
        self.call("POST", f"/v1/datasets/{name}/retire")
        self.call("GET", "/v1/audit")
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
        "API's MiB": api.memory_info().rss / 2**20,
        "API's descriptors": api.num_fds(),
        "API's threads": api.num_threads(),
        "workers' MiB": sum(each.memory_info().rss for each in workers) / 2**20,
        "connections": connections,
    }


def _slopes(moments: list[float], samples: list[dict[str, float]]) -> list[str]:
    """Each figure at the end of a run, and its growth in an hour by the second half of the run."""
    half = len(samples) // 2
    lines = []
    for name in samples[0]:
        values = [each[name] for each in samples[half:]]
        growth = statistics.linear_regression(moments[half:], values).slope * 3600
        lines.append(f"    {name}: {values[-1]:.0f}, {growth:+.1f} an hour")
    return lines


def soak(stage: Stage, tally: Tally, seconds: float) -> list[str]:
    """Use the service for so long; return lines of figures."""
    url, lines = stage.database(), []
    answers: Counter[int] = Counter()
    keys: dict[str, str] = {}
    for number in range(_RUNS):
        stop = threading.Event()
        with server(url, stage.folder, log_level="error") as running:
            if not keys:
                keys = _people(running)
            clients = [
                (Curator if name == "carla" else Client)(running.address, key, number, stop)
                for name, key in keys.items()
            ]
            for client in clients:
                client.start()
            moments, samples = [], []
            until = time.monotonic() + seconds / _RUNS
            while time.monotonic() < until:
                time.sleep(min(10.0, seconds / _RUNS / 20))
                moments.append(time.monotonic())
                samples.append(_sample(running, url))
            tally.check(running.process.poll() is None, "the service ended by itself")
            if number < _RUNS - 1:
                running.stop()  # while everybody is at work
            stop.set()
            for client in clients:
                client.join()
                answers += client.answers
            if number == _RUNS - 1:
                carla = running.person(keys["carla"])
                report = carla.call("POST", "/v1/datasets/shared/ledger/verify", expect=200).json()
                tally.check(report["ok"], f"the ledger has faults: {report}")
                lines.append(f"  ledger of {report['entries']:,} entries verified")
        lines += [f"  run {number + 1}:", *_slopes(moments, samples)]
    lines.append("  answers: " + ", ".join(f"{status}: {n:,}" for status, n in sorted(answers.items())))
    tally.check(not any(status >= 500 for status in answers), f"answers of 500 and above: {answers}")
    database = Database(url)
    tally.audit(database, "soak")
    database.dispose()
    return lines


def _people(running: RunningService) -> dict[str, str]:
    """Make a curator and the analysts, with a dataset that they share; return their keys."""
    carla = running.person(running.bootstrap_key())
    keys = {"carla": carla.key}
    for number in range(_CLIENTS):
        name = f"analyst-{number}"
        made = carla.call("POST", "/v1/principals", json={"name": name, "role": "analyst"}, expect=201)
        keys[name] = made.json()["first_key"]["key"]
    small_dataset(carla, "shared", *(name for name in keys if name != "carla"))
    return keys


def main(seconds: float) -> int:
    """Soak PostgreSQL and print what was seen."""
    tally = Tally()
    with Stage("postgresql") as stage:
        lines = soak(stage, tally, seconds)
    lines = [f"Soak of {seconds:.0f} s with {_CLIENTS} analysts and a curator", *lines]
    lines += [f"  PROBLEM: {problem}" for problem in tally.problems]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
