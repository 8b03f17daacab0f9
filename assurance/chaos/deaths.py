"""Workers and APIs that are killed at every fault point, PostgreSQL killed under them, connections cut.

Processes are forked from this one, so that hundreds of them cost little; each runs the real worker loop or
the real API under uvicorn, and dies by SIGKILL (or is stopped while the database dies) at a point that a test
armed. Afterwards every job must have ended, been charged once and have at most one result, and an upload
must be there whole or not at all.
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import make_url, select
from sqlalchemy.exc import SQLAlchemyError

from assurance.chaos.invariants import unfinished
from assurance.chaos.racers import Apis
from assurance.chaos.scene import DELTA, Scene
from assurance.chaos.stage import LaterClock, Stage, Tally, await_stop, drain, fork, reap
from service.http.wire import JobKind
from service.operations import faults
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.tables import Dataset, Job
from service.people.authentication import Caller
from service.workers.worker import Heartbeat, Worker
from tests.support.proxy import Proxy
from tests.support.service import table

__all__ = ["API_POINTS", "WORKER_POINTS", "cut_connections", "kill_api", "kill_postgres", "kill_workers"]

WORKER_POINTS = tuple(p for p in faults.POINTS if p.split(".")[0] in ("claim", "execute", "beat", "finish"))
API_POINTS = tuple(p for p in faults.POINTS if p.split(".")[0] in ("submit", "cancel", "upload", "seal"))
#: Time, put forward, after which a dead worker's lease has run out for whoever comes next.
_AHEAD = 60.0
#: After which a worker of the campaign gives up, so that a lost job is reported and not waited for.
_PATIENCE_SECONDS = 60.0
_CSV = table(300)
_SHA = hashlib.sha256(_CSV).hexdigest()


def _scene(stage: Stage) -> Scene:
    # A short lease makes the heartbeat quick; small chunks make several of them.
    return Scene(
        stage.database(),
        stage.folder,
        max_queued_jobs=10**6,
        lease_seconds=3.0,
        chunk_bytes=4096,
        poll_seconds=0.01,
        poll_most_seconds=0.05,
        cache_bytes=200,  # room for one chunk of three
    )


def _forget_chunks(scene: Scene) -> None:
    """Let workers begin without a cache, as on a new machine: else only the first would come to fill it."""
    shutil.rmtree(scene.settings.cache_directory, ignore_errors=True)


# --- workers ------------------------------------------------------------------------------------------------


def _work(settings: Settings, order: str, ahead: float) -> None:
    """The real worker loop, until the queue is empty."""
    faults.arm(order)
    database = Database(settings.database_address(), pool=3)
    worker = Worker(settings, database, LaterClock(ahead))
    if order.startswith("beat"):  # the beat of a job that takes longer than these do
        held = worker.claim()
        if held is not None:
            _beat_once(worker, held)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    worker.run(alive=lambda: time.monotonic() < deadline and bool(_left(database)))


def _beat_once(worker: Worker, held: Any) -> None:
    with suppress(SQLAlchemyError):  # as its thread does
        Heartbeat(worker, held).beat()


def _left(database: Database) -> list[str]:
    try:
        return unfinished(database)
    except Exception:  # the database is away: look again later
        return ["perhaps"]


def kill_workers(stage: Stage, tally: Tally, *, rounds: int, points: tuple[str, ...] = WORKER_POINTS) -> None:
    """Each point in turn; up to three workers die on the same job before one may end it.

    Jobs are clusterings and questions, of an analyst and of the curator.
    """
    scene = _scene(stage)
    dataset = scene.dataset("zcdp", "1000", caps=("1000",))
    following = itertools.cycle(points[::-1])
    asked: tuple[tuple[JobKind, Caller], ...] = (
        ("quantiles", scene.carla),
        ("cluster", scene.ada),
        ("table", scene.ada),
        ("summary", scene.carla),
    )
    for number, point in enumerate(points * rounds):
        kind, who = asked[number % len(asked)]
        job = scene.queued(dataset, "0.1", who=who, kind=kind)
        deaths = 1 + number % 3
        ahead = 0.0
        for attempt in range(deaths):
            order = f"{point if attempt == 0 else next(following)}:kill:0:"
            _forget_chunks(scene)
            scene.database.dispose()
            killed = reap(fork(lambda order=order, ahead=ahead: _work(scene.settings, order, ahead)))  # type: ignore[misc]  # a lambda's default
            tally.check(killed or attempt > 0, f"{stage.kind}: {order} killed nobody")
            tally.add("workers killed", int(killed))
            tally.audit(scene.database, f"{stage.kind}, worker killed at {order}")
            ahead += _AHEAD
        scene.database.dispose()
        drain(scene.settings, ahead=ahead)
        with scene.database.read() as session:
            found = session.scalars(select(Job).where(Job.id == job)).one()
        may = ("succeeded", "failed") if deaths == 3 else ("succeeded",)
        tally.check(found.state in may, f"{stage.kind}, {deaths} deaths at {point}: {found.state}")
        tally.all_ended(scene.database, f"{stage.kind}, after {deaths} deaths at {point}")
        tally.add("jobs that outlived their workers", int(found.state == "succeeded"))
        tally.add("jobs given up after three deaths", int(found.state == "failed"))
    tally.audit(scene.database, f"{stage.kind}, after workers were killed")
    scene.close()


# --- the API ------------------------------------------------------------------------------------------------


class Api(Apis):
    """One API process, reached over HTTP."""

    def __init__(self, scene: Scene, order: str = "", *, url: str | None = None):
        super().__init__(scene, 1, order, url=url)
        self.scene = scene
        self.process = self.processes[0]

    def call(self, verb: str, path: str, *, key: int = 1, body: Any = None, **headers: str) -> int:
        """The status of an answer, or 0 when the connection broke."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        named = {"Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(
                verb, path, content, {"Authorization": f"Bearer {self.scene.keys[key]}", **named}
            )
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


def _request(scene: Scene, point: str) -> tuple[Callable[[Api], int], set[int], str]:
    """A request that passes the point, the statuses that repeating it may end with, and its dataset."""
    if point.startswith("upload"):
        draft = scene.dataset("sum", "1", seal=False)
        place = f"/v1/datasets/{draft}/data?sha256={_SHA}"
        return (lambda api: api.call("PUT", place, key=0, body=_CSV, Content_Type="text/csv")), {200}, draft
    if point.startswith("seal"):
        draft = scene.dataset("sum", "1", seal=False, rows=True)
        wanted = {"confirm": ["size"], "sha256": "0" * 64}
        return (lambda api: api.call("POST", f"/v1/datasets/{draft}/seal", key=0, body=wanted)), {200}, draft
    dataset = scene.dataset("sum", "1", caps=("1",))
    if point.startswith("cancel"):
        job = scene.queued(dataset, "0.2")
        return (lambda api: api.call("DELETE", f"/v1/jobs/{job}")), {200, 409}, dataset
    body = {"dataset": dataset, "k": 2, "algorithm": "sulq", "epsilon": "0.2", "delta": DELTA}
    return (
        (lambda api: api.call("POST", "/v1/jobs", body=body, Idempotency_Key=f"k-{dataset}")),
        {202},
        dataset,
    )


def _settled(scene: Scene, dataset: str, point: str, tally: Tally, where: str) -> None:
    """The request was carried out once, whatever happened on the way."""
    with scene.database.read() as session:
        row = session.scalars(select(Dataset).where(Dataset.name == dataset)).one()
        made = session.scalars(select(Job).where(Job.dataset_id == row.id)).all()
    if point.startswith("upload"):
        tally.check(row.upload is not None, f"{where}: the upload did not arrive")
    elif point.startswith("seal"):
        tally.check(row.state == "sealed", f"{where}: the dataset is not sealed")
    else:
        tally.check(len(made) == 1, f"{where}: {len(made)} jobs for one request")


def kill_api(stage: Stage, tally: Tally, *, rounds: int, points: tuple[str, ...] = API_POINTS) -> None:
    """Kill the API in the middle of each request; the client repeats it to another."""
    scene = _scene(stage)
    for point in points * rounds:
        where = f"{stage.kind}, API killed at {point}"
        request, accepted, dataset = _request(scene, point)
        api = Api(scene, f"{point}:kill:0:")
        status = request(api)
        tally.check(status == 0, f"{where}: it answered {status}")
        if status:
            api.close()
            continue
        tally.check(reap(api.process), f"{where}: it was not killed")
        tally.add("APIs killed")
        tally.audit(scene.database, where)
        with Api(scene) as another:
            status = request(another)
        tally.check(status in accepted, f"{where}: repeating it was answered {status}")
        _settled(scene, dataset, point, tally, where)
        scene.database.dispose()
        drain(scene.settings, ahead=_AHEAD)
    tally.all_ended(scene.database, f"{stage.kind}, after APIs were killed")
    tally.audit(scene.database, f"{stage.kind}, after APIs were killed")
    scene.close()


# --- PostgreSQL -------------------------------------------------------------------------------------------


def kill_postgres(
    stage: Stage, tally: Tally, *, rounds: int, points: tuple[str, ...] = WORKER_POINTS + API_POINTS
) -> None:
    """Stop a worker or an API at each point, kill -9 every process of PostgreSQL, start it again, go on."""
    assert stage.server is not None
    scene = _scene(stage)
    dataset = scene.dataset("zcdp", "1000", caps=("1000",))
    for number, point in enumerate(points * rounds):
        away = number // len(points) % 2 == 0
        where = f"PostgreSQL killed at {point}, {'away' if away else 'back'} when work goes on"
        if point in WORKER_POINTS:
            job = scene.queued(dataset, "0.1")
            _forget_chunks(scene)
            scene.database.dispose()
            process = fork(lambda point=point: _work(scene.settings, f"{point}:stop:0:", 0.0))  # type: ignore[misc]  # a lambda's default
            _die_under(stage, process, tally, away=away)
            tally.check(not reap(process), f"{where}: the worker did not live through it")
            with scene.database.read() as session:
                state = session.scalars(select(Job.state).where(Job.id == job)).one()
            tally.check(state == "succeeded", f"{where}: the job {state}")
        else:
            _api_outlives(scene, stage, point, tally, where, away=away)
        tally.audit(scene.database, where)
        scene.database.dispose()
        drain(scene.settings, ahead=_AHEAD)
    tally.all_ended(scene.database, "after PostgreSQL was killed")
    tally.audit(scene.database, "after PostgreSQL was killed")
    scene.close()


def _api_outlives(scene: Scene, stage: Stage, point: str, tally: Tally, where: str, *, away: bool) -> None:
    request, accepted, name = _request(scene, point)
    api = Api(scene, f"{point}:stop:0:")
    asking = fork(lambda: request(api))
    _die_under(stage, api.process, tally, away=away)
    reap(asking)
    status = request(api)
    tally.check(status in accepted, f"{where}: repeating it was answered {status}")
    api.close()
    _settled(scene, name, point, tally, where)


def _die_under(stage: Stage, process: int, tally: Tally, *, away: bool) -> None:
    """Kill the server under a process that stands at its point, which meets it `away`, or there again."""
    assert stage.server is not None
    await_stop(process)
    stage.server.kill()
    tally.add("PostgreSQL servers killed")
    if away:
        os.kill(process, signal.SIGCONT)
        time.sleep(1.0)  # the absence itself
        stage.server.start()
    else:
        stage.server.start()
        os.kill(process, signal.SIGCONT)


# --- connections --------------------------------------------------------------------------------------------


def cut_connections(stage: Stage, tally: Tally, *, most: int, stride: int = 1) -> None:
    """Cut a worker's, then an API's connection at its n-th message, with the message lost or its answer."""
    assert stage.server is not None
    scene = _scene(stage)
    dataset = scene.dataset("sum", "1000", caps=("1000",))
    upstream = str(stage.server.directory / ".s.PGSQL.5432")
    name = make_url(scene.url).database or ""
    for lose_answer in (False, True):
        for number in range(1, most + 1, stride):
            where = f"cut at message {number}, answer lost: {lose_answer}"
            job = scene.queued(dataset, "0.1")
            scene.database.dispose()
            proxy = Proxy(upstream, cut_at=number, lose_answer=lose_answer)
            url = f"postgresql+psycopg://cairn@127.0.0.1:{proxy.port}/{name}"
            settings = scene.settings.model_copy(update={"database_url": url, "lease_seconds": 0.3})
            ended = reap(fork(lambda settings=settings: _work(settings, "", 0.0)))  # type: ignore[misc]  # a lambda's default
            tally.add("connections cut", int(proxy.close()))
            tally.check(not ended, f"{where}: the worker did not live through it")
            with scene.database.read() as session:
                state = session.scalars(select(Job.state).where(Job.id == job)).one()
            tally.check(state == "succeeded", f"{where}: the job {state}")
            tally.audit(scene.database, where)
            for point in ("submit", "upload", "seal", "cancel"):
                _cut_api(scene, upstream, name, point, number, lose_answer, tally)
    scene.database.dispose()
    drain(scene.settings, ahead=_AHEAD)
    tally.all_ended(scene.database, "after connections were cut")
    tally.audit(scene.database, "after connections were cut")
    scene.close()


def _cut_api(
    scene: Scene, upstream: str, name: str, point: str, number: int, lose_answer: bool, tally: Tally
) -> None:
    where = f"API's connection cut at message {number} of {point}, answer lost: {lose_answer}"
    request, accepted, dataset = _request(scene, point)
    proxy = Proxy(upstream, cut_at=number, lose_answer=lose_answer)
    with Api(scene, url=f"postgresql+psycopg://cairn@127.0.0.1:{proxy.port}/{name}") as api:
        first = request(api)
        tally.check(first in {503, *accepted}, f"{where}: answered {first}")
        status = request(api)
        if status == 503 and first in accepted:
            status = request(api)  # the request needed fewer messages than that, and its repetition was cut
    tally.add("connections cut", int(proxy.close()))
    tally.check(status in accepted, f"{where}: repeating it was answered {status}")
    _settled(scene, dataset, point, tally, where)
    tally.audit(scene.database, where)
