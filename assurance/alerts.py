"""Raise every alert by its fault: a real Prometheus, with the rules of `deploy/monitoring`, beside a service.

`python -m assurance alerts` takes about 50 minutes and little processor time. It needs `prometheus` on the
path, for instance Debian's package. It starts a service on PostgreSQL with two workers apart, makes one fault
after the other, and reports how often each alert fired and whether it cleared, and which queries of the
dashboard had no data. It fails unless each alert fired exactly once, within its fault, and cleared.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import psycopg

from assurance.chaos.stage import Stage
from benchmarks.harness import monitoring
from benchmarks.harness.processes import ROOT, RemotePerson, RunningService, free_port, server
from benchmarks.pages import small_dataset

_TOKEN = "alerts" * 6
_REPORT = Path("build/alerts.md")
#: The longest a job may run; a job that waits behind one for so long has an alert of its own before.
_JOB_SECONDS = 720
#: What alerts about events wait for until they clear, and a little more.
_CLEARED_SECONDS = 32 * 60
#: Share of a second for which a process that is slowed down may run.
_SLOW = 0.01
_JOB = {"dataset": "shared", "k": 2, "algorithm": "sulq", "epsilon": "0.01", "delta": "0"}


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


class Scene:
    """A service, its workers in processes of their own, and somebody who uses it."""

    def __init__(self, stage: Stage, disk: Path):
        self.url, self.folder, self.disk = stage.database(), stage.folder, disk
        self.workers: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self._settings = {"metrics_token": _TOKEN, "log_level": "error", "job_seconds": str(_JOB_SECONDS)}

    def api(self) -> AbstractContextManager[RunningService]:
        """The API alone; it comes back at the same address."""
        command = ("serve", "--workers", "0")
        return server(self.url, self.folder, command=command, port=str(self._port), **self._settings)

    def start_workers(self, number: int) -> None:
        """Start worker processes, each as if on a machine of its own."""
        environment = {
            **os.environ,
            "CAIRN_DATABASE_URL": self.url,
            "CAIRN_CACHE_DIRECTORY": str(self.disk / "cache"),
            "CAIRN_SIGNING_KEY_FILE": str(self.folder / "signing-key.pem"),
            **{f"CAIRN_{name.upper()}": value for name, value in self._settings.items()},
        }
        command = [sys.executable, "-m", "service.cli", "worker", "--processes", "1"]
        with (self.folder / "workers.log").open("ab") as log:
            started = [
                subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
                for _ in range(number)
            ]
        self.workers += started

    def stop_workers(self) -> None:
        """Stop all workers in good order."""
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(timeout=60)
        self.workers.clear()

    def lose_worker(self) -> None:
        """End the newest worker with all of its processes at once, as when a machine is lost."""
        worker = self.workers.pop()
        for process in (*psutil.Process(worker.pid).children(recursive=True), psutil.Process(worker.pid)):
            process.kill()
        worker.wait(timeout=60)

    def working(self) -> list[psutil.Process]:
        """The processes that run jobs."""
        return [child for worker in self.workers for child in psutil.Process(worker.pid).children()]

    @contextmanager
    def slow_workers(self) -> Iterator[None]:
        """Let the processes that run jobs now have little of the processor."""
        done, held_back = threading.Event(), self.working()

        def hold_back() -> None:
            while not done.wait(_SLOW):
                _signal(held_back, signal.SIGSTOP)
                done.wait(1 - _SLOW)
                _signal(held_back, signal.SIGCONT)

        thread = threading.Thread(target=hold_back)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def sql(self, statement: str) -> None:
        address = self.url.replace("postgresql+psycopg:", "postgresql:")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement.encode())


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            continue


class Prometheus:
    """A Prometheus with the rules and the dashboard's queries of the checkout."""

    def __init__(self, folder: Path, target: str):
        program = shutil.which("prometheus")
        if program is None:
            raise SystemExit("`prometheus` is not on the path: install it, for instance Debian's package")
        text = (monitoring.MONITORING / "prometheus.yml").read_text()
        shutil.copy(monitoring.MONITORING / "alerts.yml", folder)
        (folder / "metrics-token").write_text(_TOKEN)
        (folder / "prometheus.yml").write_text(text.replace("127.0.0.1:8000", target))
        address = f"127.0.0.1:{free_port()}"
        self._begun = time.time()
        self._api = httpx.Client(base_url=f"http://{address}/api/v1", timeout=30)
        options = (
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address={address}",
        )
        with (folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen([program, *options], cwd=folder, stdout=log, stderr=log)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)

    def series(self, query: str) -> list[dict[str, Any]]:
        """The values of a query since the beginning, every 15 seconds."""
        span = {"start": self._begun, "end": time.time(), "step": 15}
        found: list[dict[str, Any]] = self._api.get("/query_range", params={"query": query, **span}).json()[
            "data"
        ]["result"]
        return found

    def fired(self) -> dict[str, list[tuple[float, float]]]:
        """By alert, the times between which it fired, for one dataset or machine or several."""
        found: dict[str, set[float]] = {}
        for series in self.series('ALERTS{alertstate="firing"}'):
            times = [float(moment) for moment, _ in series["values"]]
            found.setdefault(series["metric"]["alertname"], set()).update(times)
        return {alert: _spans(sorted(times)) for alert, times in found.items()}

    def without_data(self) -> list[str]:
        """The dashboard's queries that had no data at any time."""
        panels = set(monitoring.queries()) - set(monitoring.alerts())
        return [name for name in sorted(panels) if not self.series(monitoring.queries()[name])]


def _spans(times: list[float]) -> list[tuple[float, float]]:
    """Join times that are at most a step apart."""
    starts = [0, *(place for place in range(1, len(times)) if times[place] - times[place - 1] > 20)]
    return [(times[a], times[b - 1]) for a, b in zip(starts, [*starts[1:], len(times)], strict=True)]


@contextmanager
def small_disk(folder: Path, size: str = "128m") -> Iterator[Path]:
    """A disk of its own for the cache of chunks, which takes root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Faults:
    """Each fault, with the name of its alert, and how it is mended."""

    def __init__(self, scene: Scene, address: str, owner: RemotePerson, analyst: RemotePerson):
        self._scene, self._address, self._owner, self._analyst = scene, address, owner, analyst
        self.made: dict[str, float] = {}

    def _now(self, alert: str) -> None:
        self.made[alert] = time.time()
        say(f"fault of {alert}")

    def _submit(self, **fields: object) -> str:
        job: str = self._analyst.call("POST", "/v1/jobs", json={**_JOB, **fields}, expect=202).json()["id"]
        return job

    def overrun(self) -> None:
        self._now("CairnOverruns")
        with self._scene.slow_workers():
            self._analyst.wait(self._submit())

    def failures(self) -> None:
        """Rows of a dataset are damaged, so that its jobs fail."""
        self._now("CairnJobsFail")
        self._scene.sql(
            "UPDATE dataset_chunks SET payload = set_byte(payload, 0, 255 - get_byte(payload, 0)) "
            "WHERE dataset_id = (SELECT id FROM datasets WHERE name = 'broken')"
        )
        for _ in range(3):
            self._analyst.wait(self._submit(dataset="broken"))

    def old_queue_and_limit(self) -> None:
        """Both workers are slow; a third job waits behind theirs until a limit ends them."""
        self._now("CairnQueueOld")
        self.made["CairnJobsEndedByLimit"] = self.made["CairnQueueOld"]
        long = {"dataset": "large", "k": 500, "options": {"rounds": 60}}
        with self._scene.slow_workers():
            jobs = [self._submit(**long) for _ in range(2)]
            time.sleep(30)
            self._submit()
            time.sleep(_JOB_SECONDS)
            while any(self._state(job) in ("queued", "running") for job in jobs):
                time.sleep(5)

    def _state(self, job: str) -> str:
        found: str = self._analyst.call("GET", f"/v1/jobs/{job}", expect=200).json()["state"]
        return found

    def budget(self) -> None:
        self._now("CairnBudgetNearlySpent")
        self._submit(dataset="spent", epsilon="950")
        time.sleep(60)
        self._submit(dataset="spent", epsilon="50")  # nothing is left to warn about
        refused = self._analyst.call("POST", "/v1/jobs", json={**_JOB, "dataset": "spent"})
        assert refused.status_code == 409, refused.text

    def disk(self) -> None:
        self._now("CairnDiskNearlyFull")
        filler = self._scene.disk / "filler"
        usage = shutil.disk_usage(self._scene.disk)
        filler.write_bytes(bytes(usage.free - usage.total // 20))
        time.sleep(150)
        filler.unlink()

    def errors(self) -> None:
        self._now("CairnErrors")
        self._scene.sql("ALTER TABLE audit_events RENAME TO away")
        self._ask(240, 1.0, 503)
        self._scene.sql("ALTER TABLE away RENAME TO audit_events")

    def slow(self) -> None:
        """A table is locked for some seconds again and again; then many quick requests."""
        self._now("CairnSlow")
        done = threading.Event()

        def lock() -> None:
            while not done.is_set():
                self._scene.sql(
                    "BEGIN; LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(5); END"
                )

        thread = threading.Thread(target=lock)
        thread.start()
        _together(*[partial(self._ask, 600, 0.1, 200)] * 4)
        done.set()
        thread.join()
        self._ask(120, 0.02, 200)

    def requests(self) -> None:
        self.errors()
        time.sleep(60)
        self.slow()

    def _ask(self, seconds: float, pause: float, expect: int) -> None:
        until = time.monotonic() + seconds
        person = RemotePerson(self._address, self._owner.key)
        while time.monotonic() < until:
            person.call("GET", "/v1/audit", expect=expect)
            time.sleep(pause)
        person.close()

    def lost_process(self) -> None:
        self._now("CairnWorkerLost")
        self._scene.working()[0].kill()

    def lost_machine(self) -> None:
        self._now("CairnFewerWorkers")
        self._scene.lose_worker()
        time.sleep(480)
        self._scene.start_workers(1)

    def no_workers(self) -> None:
        self._now("CairnNoWorkers")
        count = len(self._scene.workers)
        self._scene.stop_workers()
        time.sleep(150)
        self._scene.start_workers(count)

    def calm(self) -> None:
        """Before the API goes away."""
        self._now("CairnDown")


def _together(*acts: Callable[[], None]) -> None:
    with ThreadPoolExecutor(len(acts)) as threads:
        for done in [threads.submit(act) for act in acts]:
            done.result()


def _prepare(running: RunningService) -> tuple[RemotePerson, RemotePerson]:
    owner = running.person(running.bootstrap_key())
    made = owner.call("POST", "/v1/principals", json={"name": "ada", "role": "analyst"}, expect=201)
    for name in ("shared", "broken", "spent"):
        small_dataset(owner, name, "ada", jobs_per_hour=10**6)
    rows = io.BytesIO()
    np.save(rows, np.random.default_rng(1).uniform(size=(3_000_000, 4)).astype(np.float32))
    box = {"bounds": {"box": {"low": 0, "high": 1}}, "dimension": 4, "size": 3_000_000}
    budget = {"epsilon": "1000", "delta": "0.001"}
    owner.call("POST", "/v1/datasets", json={"name": "large", **box, "budget": budget}, expect=201)
    npy = {"Content-Type": "application/x-npy"}
    owner.call("PUT", "/v1/datasets/large/data", content=rows.getvalue(), headers=npy, expect=200)
    owner.call("POST", "/v1/datasets/large/seal", json={}, expect=200)
    owner.call("PUT", "/v1/datasets/large/grants/ada", json=budget, expect=200)
    return owner, running.person(made.json()["first_key"]["key"])


def _report(prometheus: Prometheus, made: dict[str, float]) -> list[str]:
    """A line for each alert, and one for the dashboard; a line that starts with PROBLEM is one."""
    fired, lines = prometheus.fired(), []
    for alert in monitoring.alerts():
        spans = fired.get(alert, [])
        after = [
            f"{(start - made[alert]) / 60:.1f} to {(end - made[alert]) / 60:.1f}" for start, end in spans
        ]
        lasting = any(end > time.time() - 45 for _, end in spans)
        problem = len(spans) != 1 or lasting or spans[0][0] < made[alert]
        lines.append(
            f"{'PROBLEM: ' if problem else ''}{alert}: fired {len(spans)} times, minutes after its fault: "
            f"{', '.join(after) or 'never'}{'; still fires' if lasting else ''}"
        )
    lines += [f"PROBLEM: the dashboard's query {name} had no data" for name in prometheus.without_data()]
    return lines


def main(_: list[str]) -> int:
    """Make all faults, one part after the other, and print a report."""
    with Stage("postgresql") as stage, small_disk(stage.folder / "disk") as disk, ExitStack() as ending:
        scene = Scene(stage, disk)
        with scene.api() as running:
            target = running.address.removeprefix("http://")
            owner, analyst = _prepare(running)
            prometheus = ending.enter_context(closing(Prometheus(disk.parent, target)))
            ending.callback(scene.stop_workers)
            scene.start_workers(2)
            faults = Faults(scene, running.address, owner, analyst)
            time.sleep(90)
            faults.overrun()
            faults.failures()
            _together(faults.old_queue_and_limit, faults.disk, faults.budget, faults.requests)
            since = time.monotonic()
            _together(faults.lost_process, faults.lost_machine)
            faults.no_workers()
            faults.calm()
        time.sleep(120)
        with scene.api():
            time.sleep(max(60.0, _CLEARED_SECONDS - (time.monotonic() - since)))
            lines = _report(prometheus, faults.made)
    _REPORT.parent.mkdir(parents=True, exist_ok=True)
    _REPORT.write_text("\n".join(lines) + "\n")
    sys.stdout.write(_REPORT.read_text())
    return int(any(line.startswith("PROBLEM") for line in lines))
