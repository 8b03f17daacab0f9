"""The demo that `make run` starts: a service on this machine with a small public dataset made here.

The rows are synthetic and drawn by this module; everything else is as in production.
"""

import fcntl
import socket
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from threading import Thread

import httpx
import numpy as np
import typer
from sqlalchemy.orm import Session

import migrations
from core.jobs import kinds
from core.privacy import Budget
from service import demo_table
from service.datasets import drafts, grants, lifecycle, view
from service.datasets.decisions import Decision
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.spool import Spool
from service.datasets.wire import Bounds, Box, DatasetBody
from service.http.wire import BudgetBody
from service.operations.clock import SystemClock
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.signing import open_keys
from service.operations.states import Role
from service.operations.tables import Dataset
from service.people import keys, principals
from service.people.authentication import Caller

_NAME = "visits"
_ROWS = 20_000
_KEYS = "demo-keys.txt"
_ADDRESS = "demo-address.txt"
_LOCK = "demo.lock"
_PORTS = range(8000, 8020)


def run_demo(directory: Path, *, fresh: bool, serve: Callable[[Settings, int], None]) -> None:
    """Create the demo's database where it is missing, print how to use it, and serve.

    A demo that already runs from this directory is left alone: its address and keys are printed again.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _point_to_running(directory, fresh=fresh)
            return
        _run(directory, fresh=fresh, serve=serve)


def _point_to_running(directory: Path, *, fresh: bool) -> None:
    address, keys = directory / _ADDRESS, directory / _KEYS
    if fresh or not (address.exists() and keys.exists()):
        raise typer.BadParameter(f"a demo is running from {directory}; stop it first (Ctrl-C where it runs)")
    typer.echo("A demo is already running from this directory; this command started nothing.")
    typer.echo(_words(address.read_text().strip(), *keys.read_text().split()))


def _run(directory: Path, *, fresh: bool, serve: Callable[[Settings, int], None]) -> None:
    if fresh:
        for old in [*directory.glob("demo.sqlite3*"), directory / _KEYS]:
            old.unlink(missing_ok=True)
    settings = Settings(
        database_url=f"sqlite:///{directory / 'demo.sqlite3'}", cache_directory=directory / "cache"
    )
    quiet = {} if "log_level" in settings.model_fields_set else {"log_level": "warning"}
    port = _port(settings)
    settings = settings.model_copy(update={**quiet, "port": port})
    database = Database(settings.database_address())
    migrations.upgrade(database.engine)
    curator, analyst = _prepare(database, settings, directory / _KEYS)
    database.dispose()
    (directory / _ADDRESS).write_text(f"{settings.address}\n")
    words = _words(settings.address, curator, analyst)
    Thread(target=_say_when_ready, args=(settings.address, words), daemon=True).start()
    serve(settings, max(1, settings.worker_processes))


def _prepare(database: Database, settings: Settings, key_file: Path) -> tuple[str, str]:
    """Return the two keys of the demo; the first start creates everything in one transaction."""
    with database.read() as session:
        known = principals.exist(session)
    if known:
        if not key_file.exists():
            raise typer.BadParameter(f"{key_file} is missing; begin again with `cairn-server demo --fresh`")
        curator, analyst = key_file.read_text().split()
        return curator, analyst
    now = SystemClock().now()
    with database.write() as session:
        first = principals.create(session, "curator", Role.CURATOR, by=None, at=now)
        owner = Caller(first.id, first.name, first.role)
        second = principals.create(session, "analyst", Role.ANALYST, by=owner, at=now)
        curator = keys.issue(session, first, by="curator", at=now, label="demo").text
        analyst = keys.issue(session, second, by="curator", at=now, label="demo").text
        for facts, rows in ((_facts(), _csv()), (demo_table.facts(), demo_table.rows())):
            dataset = lifecycle.create(session, facts, owner=owner, at=now)
            _store(session, dataset, rows, settings, owner, now)
            cap = Budget.of("5", "0.00001")
            grants.grant(
                session, dataset, second, cap, terms={"kinds": kinds.names()}, by=Decision(owner.name, now)
            )
        key_file.touch(mode=0o600)
        key_file.write_text(f"{curator}\n{analyst}\n")
    return curator, analyst


def _facts() -> DatasetBody:
    return DatasetBody(
        name=_NAME,
        description="Made-up visits to a shop: minutes spent, and the hour of the day.",
        columns=["minutes", "hour"],
        bounds=Bounds(box=Box(low=[0.0, 0.0], high=[120.0, 24.0])),
        size=_ROWS,
        budget=BudgetBody(epsilon="10", delta="0.00002"),
    )


def _store(
    session: Session, dataset: Dataset, rows: bytes, settings: Settings, owner: Caller, now: datetime
) -> None:
    """Ingest the rows as an upload would."""
    with Spool(settings.spool_directory, settings.max_upload_bytes) as spool:
        spool.write(rows)
        upload = Upload(spool, "text/csv", Expected.of(dataset), settings)
        with closing(encode(upload)) as encoded:
            report = encoded.report(view.warnings(dataset, upload.expected.domain))
            drafts.store_rows(
                session,
                drafts.Place(dataset.id),
                upload.expected,
                encoded.chunks(),
                report,
                actor=owner.name,
                at=now,
            )
            drafts.bind_rows(session, drafts.Place(dataset.id), open_keys(settings))
            drafts.seal(session, dataset, actor=owner.name, at=now)


def _csv() -> bytes:
    """Draw visits of three kinds of visitors."""
    generator = np.random.default_rng(7)  # synthetic public rows, the same on every machine
    middles = np.array([[8.0, 8.5], [35.0, 13.0], [75.0, 19.0]])
    spread = np.array([[3.0, 1.0], [9.0, 1.5], [14.0, 1.2]])
    kind = generator.choice(3, _ROWS, p=[0.5, 0.3, 0.2])
    rows = np.clip(generator.normal(middles[kind], spread[kind]), [0, 0], [120, 24]).round(2)
    lines = "\n".join(f"{minutes},{hour}" for minutes, hour in rows.tolist())
    return f"minutes,hour\n{lines}\n".encode()


def _say_when_ready(address: str, words: str) -> None:
    """Print how to use the service once it answers, so that the commands work when they are read."""
    while True:
        try:
            if httpx.get(f"{address}/readyz", timeout=5).is_success:
                typer.echo(words)
                return
        except httpx.TransportError:
            time.sleep(0.1)


def _port(settings: Settings) -> int:
    """The configured port, or else the first free one, so that a taken port 8000 does not stop the demo."""
    if "port" in settings.model_fields_set:
        if settings.port and not _is_free(settings.host, settings.port):
            raise typer.BadParameter(f"port {settings.port} is in use; choose a free one with CAIRN_PORT")
        return settings.port
    free = next((port for port in _PORTS if _is_free(settings.host, port)), None)
    if free is None:
        raise typer.BadParameter("ports 8000 to 8019 are in use; choose a free one with CAIRN_PORT")
    if free != _PORTS[0]:
        typer.echo(f"Port {_PORTS[0]} is in use by another program; using port {free} instead.")
    return free


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def _words(address: str, curator: str, analyst: str) -> str:
    return f"""
Cairn answers at {address}  (stop it with Ctrl-C)
Open that address in a browser for the console; {address}/docs explains every call.

  curator's key   {curator}
  analyst's key   {analyst}

Ask for three centres of the demo dataset `{_NAME}`:

  curl -sS {address}/v1/jobs \\
    -H 'Authorization: Bearer {analyst}' -H 'Content-Type: application/json' \\
    -d '{{"dataset": "{_NAME}", "k": 3, "epsilon": "1"}}'

Read the newest result (it is there a second or two later):

  curl -sS -H 'Authorization: Bearer {analyst}' \\
    {address}/v1/jobs/latest/result

See what is left of the budget:

  curl -sS -H 'Authorization: Bearer {analyst}' \\
    {address}/v1/datasets/{_NAME}
"""
