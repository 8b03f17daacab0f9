"""The command `cairn-server`: start processes, prepare and maintain the database, check health, replay."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from service.operations.settings import Settings
from service.operations.signals import on_signals

if TYPE_CHECKING:
    from fastapi import FastAPI

    from service.operations.database import Database


class _Group(TyperGroup):
    """The commands; a wrong setting or a missing database ends them with a sentence, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Files that it makes, the database among them, are for its user alone."""
        os.umask(0o077)
        try:
            return super().invoke(ctx)
        except Exception as error:
            sentences = _for_operators(error)
            if not sentences:
                raise
            for sentence in sentences:
                typer.echo(sentence, err=True)
            raise typer.Exit(1) from error


class _NotMigrated(Exception):
    """The database's tables are of an earlier version than the command needs."""


def _for_operators(error: Exception) -> list[str]:
    """Return what an operator has to do about an error, without secrets; nothing if it is a bug."""
    from sqlalchemy.exc import ArgumentError, OperationalError

    from service.operations.logs import redact

    if isinstance(error, ValidationError) and error.title == Settings.__name__:
        return [_wrong_setting(fault) for fault in error.errors()]
    if isinstance(error, _NotMigrated):
        return [f"The database of this service is not ready: {error}."]
    if isinstance(error, ArgumentError):
        return ["Wrong setting: CAIRN_DATABASE_URL: Input should be an address such as sqlite:///path."]
    if isinstance(error, OperationalError):
        reason = " ".join(redact(str(error.orig)).split())
        return [f"The database does not answer: {reason}."]
    if isinstance(error, OSError) and error.filename:
        return [f"Cannot use {error.filename}: {error.strerror}."]
    return []


def _wrong_setting(fault: Any) -> str:
    name = "".join(f"CAIRN_{part}: ".upper() for part in fault["loc"])
    return f"Wrong setting: {name}{fault['msg'].removeprefix('Value error, ')}."


app = typer.Typer(
    cls=_Group,
    help="Run Cairn, a differentially private clustering service. Settings are CAIRN_... variables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def application() -> FastAPI:
    """Create the web application with settings from the environment, for uvicorn."""
    with _without_collecting():
        from service import console
        from service.app import create_app
        from service.operations import tracing
        from service.operations.logs import configure

        settings = Settings()
        configure(settings.log_format, settings.log_level)
        tracing.configure(settings, "api")
        made = create_app(settings, extra_routers=[console.router])
    _share_the_interpreter()
    return made


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Load modules a fifth faster: what is made meanwhile stays, and nobody looks for garbage among it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _share_the_interpreter() -> None:
    """Keep requests that compute from holding up those that mostly wait.

    A thread that comes back from the database waits for a computing one, by default up to 5 ms each time. And
    whoever allocates much has the collector look through everything that is loaded.
    """
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()


@app.command()
def serve(
    workers: Annotated[
        int | None,
        typer.Option(help="Number of worker processes to start too; default CAIRN_WORKER_PROCESSES."),
    ] = None,
    migrate_first: Annotated[
        bool, typer.Option("--migrate/--no-migrate", help="Upgrade the database first.")
    ] = True,
) -> None:
    """Start the API and, unless --workers is 0, worker processes: one command for one machine."""
    settings = Settings()
    # As the first process of a container, which has no default for it, it would ignore an order to stop.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    with _without_collecting():
        _require_signing_key(settings)
        if migrate_first:
            migrate()
        _require_tables(settings)
        _first_key(settings, announce=True)
    serve_with_workers(settings, settings.worker_processes if workers is None else workers)


def serve_with_workers(settings: Settings, workers: int) -> None:
    """Run the API in this process until it is stopped, and worker processes next to it."""
    import uvicorn

    from service.http.protocol import PatientProtocol
    from service.operations.logs import configure

    configure(settings.log_format, settings.log_level)
    if settings.spool_directory is not None:  # a fresh volume has no folders yet
        settings.spool_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    supervisor = None
    if workers:
        arguments = ["worker", "--processes", str(workers), "--stop-with-parent"]
        command = [sys.executable, "-m", "service.cli", *arguments]
        supervisor = subprocess.Popen(command, env=settings.as_environment(), start_new_session=True)
        _pass_signals_on(supervisor)
    os.environ.update(settings.as_environment())
    # uvicorn shuts down cleanly on SIGTERM and then raises it again for the previous handler.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    try:
        uvicorn.run(
            "service.cli:application",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.api_processes if settings.api_processes > 1 else None,
            log_config=None,  # log lines of uvicorn go through our configuration
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=True,
            forwarded_allow_ips=settings.forwarded_allow_ips,
            timeout_graceful_shutdown=max(1, round(settings.stop_seconds / 2)),
            timeout_keep_alive=30,
            timeout_worker_healthcheck=60,  # a busy machine may need more than the default 5 to start one
            http=cast(Any, partial(PatientProtocol, head_seconds=settings.header_seconds)),
            limit_concurrency=settings.max_connections,
            h11_max_incomplete_event_size=16 << 10,  # longest request head
        )
    finally:
        if supervisor is not None:
            supervisor.send_signal(signal.SIGTERM)
            supervisor.wait()
        gc.freeze()  # else looking for garbage once more delays the end by seconds on a busy machine


def _pass_signals_on(process: subprocess.Popen[bytes]) -> None:
    """Stop the workers as soon as this process is told to, and not when the API has finished its requests.

    Each time: uvicorn raises the signal once more when it is done.
    """
    orders = (signal.SIGTERM, signal.SIGINT)
    on_signals(lambda number: process.send_signal(signal.SIGTERM) if number in orders else None)


@app.command()
def worker(
    processes: Annotated[
        int | None, typer.Option(help="Number of worker processes; default CAIRN_WORKER_PROCESSES.")
    ] = None,
    stop_with_parent: Annotated[
        bool, typer.Option("--stop-with-parent", help="Stop when the process that started this one is gone.")
    ] = False,
) -> None:
    """Start worker processes, which run jobs; stop them with SIGTERM."""
    from service.operations.logs import configure
    from service.operations.supervisor import supervise

    settings = Settings()
    configure(settings.log_format, settings.log_level)
    _require_signing_key(settings)
    _require_tables(settings, wait=True)
    supervise(settings, max(1, processes or settings.worker_processes), stop_with_parent=stop_with_parent)


@app.command()
def calibrate(
    processes: Annotated[
        int | None, typer.Option(help="Worker processes on this machine; default CAIRN_WORKER_PROCESSES.")
    ] = None,
) -> None:
    """Measure how fast this machine runs jobs, so that planned times fit it. Takes a few minutes."""
    from service.operations.supervisor import worker_environment

    settings = Settings()
    environment = worker_environment(settings, max(1, processes or settings.worker_processes))
    command = [sys.executable, "-c", "from service.workers.calibration import main; main()"]
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)


@app.command()
def migrate(
    wait: Annotated[float, typer.Option(help="Seconds to wait for a database that is still starting.")] = 0.0,
) -> None:
    """Create the database's tables, or upgrade them to this version."""
    import migrations
    from service.operations.database import Database

    database = Database(Settings().database_address())
    _await(database, wait)
    migrations.upgrade(database.engine)
    database.dispose()
    typer.echo(f"The database is at revision {migrations.head()}.", err=True)


def _require_tables(settings: Settings, *, wait: bool = False) -> None:
    """Raise _NotMigrated unless the tables are those of this version; `wait` lets a silent database pass."""
    from sqlalchemy.exc import OperationalError

    import migrations
    from service.operations.database import Database

    database = Database(settings.database_address())
    try:
        with database.engine.connect() as connection:
            outdated = migrations.is_outdated(connection)
    except OperationalError:
        if not wait:
            raise
        outdated = False
    finally:
        database.dispose()
    if outdated:
        raise _NotMigrated("its tables are missing or of an earlier version; run `cairn-server migrate`")


def _await(database: Database, seconds: float) -> None:
    """Return when the database answers; its last error ends the command."""
    from sqlalchemy.exc import OperationalError

    deadline = time.monotonic() + seconds
    while True:
        try:
            database.engine.connect().close()
            return
        except OperationalError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.5)


@app.command()
def new_signing_key() -> None:
    """Create a signing key, used from the next start on. What was signed earlier can still be verified."""
    from service.operations import signing

    path = Settings().signing_key_path()
    if path.exists():
        signing.rotate(path)
    else:
        signing.make(path)
    typer.echo(f"Key {signing.load(path).current} is in {path}: back it up, and restart API and workers.")


@app.command()
def prune(
    days: Annotated[
        int | None, typer.Option(min=1, help="Keep plans for this many days; default CAIRN_RETENTION_DAYS.")
    ] = None,
) -> None:
    """Delete old plans of cancelled jobs and rehearsals, and old accesses from the audit log. Run it daily.

    The ledger, results and acts in the audit log are kept.
    """
    from datetime import timedelta

    from service.jobs import retention
    from service.operations import audit_retention, signing
    from service.operations.clock import SystemClock
    from service.operations.database import Database

    settings = Settings()
    _require_tables(settings)
    database, now = Database(settings.database_address()), SystemClock().now()
    if kept := days or settings.retention_days:
        pruned = retention.prune(database, before=now - timedelta(days=kept), now=now)
        typer.echo(f"Deleted the plans of {pruned} jobs that ended more than {kept} days ago.")
    else:
        typer.echo("No plans are deleted: set CAIRN_RETENTION_DAYS, or give --days.", err=True)
    if settings.access_days:
        _require_signing_key(settings)
        before = now - timedelta(days=settings.access_days)
        gone = audit_retention.delete_accesses(database, signing.open_keys(settings), before=before, now=now)
        typer.echo(
            f"Deleted {gone} accesses of more than {settings.access_days} days ago from the audit log."
        )
    database.dispose()


@app.command()
def export_ledgers(
    directory: Annotated[Path, typer.Argument(help="Folder for a CSV file of each dataset.")],
) -> None:
    """Write every ledger to a folder, to compare with after a restore. Run it daily; keep it elsewhere."""
    from service import maintenance
    from service.operations.database import Database

    settings = Settings()
    _require_tables(settings)
    database = Database(settings.database_address())
    exported = maintenance.export_ledgers(database, directory)
    database.dispose()
    typer.echo(f"Exported {exported} ledgers to {directory}.")


@app.command()
def export_audit(
    dataset: Annotated[str | None, typer.Option(help="Only events of this dataset.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only events from this moment on, in UTC.")] = None,
) -> None:
    """Print the audit log as lines of JSON: acts, readings, sign-ins and refusals, oldest first."""
    from service import maintenance
    from service.operations.database import Database

    settings = Settings()
    _require_tables(settings)
    database = Database(settings.database_address())
    begin = since.replace(tzinfo=UTC) if since else None
    for line in maintenance.audit_lines(database, dataset, begin):
        typer.echo(line)
    database.dispose()


@app.command()
def verify(
    ledgers: Annotated[
        Path | None, typer.Option(help="A folder of `export-ledgers`, whose entries must be there.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a verification was interrupted.")
    ] = False,
) -> None:
    """Verify every ledger, receipt and event of the audit log; run it after a restore."""
    from service import maintenance
    from service.operations import signing
    from service.operations.clock import SystemClock
    from service.operations.database import Database
    from service.operations.progress import Progress

    settings = Settings()
    _require_signing_key(settings)
    _require_tables(settings)
    database = Database(settings.database_address())
    keys, heads, now = signing.open_keys(settings), settings.heads_path(), SystemClock().now()
    kept = heads.with_name("verification.json")
    progress = Progress(kept, lambda line: typer.echo(line, err=True), resume=resume)
    faults = list(maintenance.faults(database, keys, ledgers, heads, progress=progress, now=now))
    progress.end()
    if not faults:
        try:
            maintenance.record_heads(database, keys, heads, now)
        except OSError as error:
            typer.echo(f"{heads} cannot be written: {error.strerror}. Set CAIRN_HEADS_FILE.", err=True)
    database.dispose()
    for fault in faults:
        typer.echo(f"{fault}.", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo("Every ledger, every receipt and the audit log verify.")


def _require_signing_key(settings: Settings) -> None:
    """Make the signing key at the first start, or end with what to do where it may not be made."""
    from service.operations import signing

    try:
        signing.open_keys(settings)
    except (signing.SigningKeyError, OSError) as error:
        typer.echo(f"No signing key: {error}.", err=True)
        raise typer.Exit(1) from error


@app.command()
def health(
    api: Annotated[bool, typer.Option("--api/--no-api", help="Check the API too, not only workers.")] = True,
    losses: Annotated[
        bool, typer.Option("--losses/--no-losses", help="Fail for ten minutes after a worker was lost.")
    ] = True,
) -> None:
    """Exit with 0 if the API on this machine answers and its workers are well, else with 1."""
    from service.operations.clock import CLOCKS_DIFFER
    from service.operations.supervisor import running_workers, worker_faults

    settings = Settings()
    directory = settings.health_directory
    longest = settings.job_seconds + CLOCKS_DIFFER.total_seconds()
    faults = worker_faults(directory, longest_silence=longest, losses=losses) if directory else []
    if directory and not api and not running_workers(directory):
        faults.append("no worker process is running")
    for fault in faults:
        typer.echo(f"Unhealthy: {fault}.", err=True)
    if faults or (api and not _answers(f"http://127.0.0.1:{settings.port}/healthz")):
        raise typer.Exit(1)


def _answers(address: str) -> bool:
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=4):
            return True
    except OSError as error:
        typer.echo(f"The API does not answer: {error}.", err=True)
        return False


@app.command()
def bootstrap(
    name: Annotated[str, typer.Option(help="Name of the first curator.")] = "curator",
    key_file: Annotated[
        Path | None, typer.Option(help="Read the key from this file instead of creating one.")
    ] = None,
) -> None:
    """Create the first curator and print their key. Does nothing if any account exists."""
    settings = Settings()
    _require_tables(settings)
    given = key_file.read_text().strip() if key_file else None
    made = _first_key(settings, name=name, given=given)
    if made is None:
        typer.echo("There are accounts already; nothing was done.", err=True)
    elif given is None:
        typer.echo(made)


@app.command()
def recover_curator(
    name: Annotated[str, typer.Argument(help="Name of the curator to create or to enable again.")],
) -> None:
    """Give a curator a new key when no curator can act any more. The audit log records it."""
    from service.errors import ServiceError
    from service.operations.clock import SystemClock
    from service.operations.database import Database
    from service.people import keys, principals

    settings = Settings()
    _require_tables(settings)
    database, now = Database(settings.database_address()), SystemClock().now()
    try:
        with database.write() as session:
            principal = principals.recover(session, name, at=now)
            key = keys.issue(session, principal, by="operator", at=now, label="recovered").text
    except ServiceError as error:
        typer.echo(f"No key was issued: {error}.", err=True)
        raise typer.Exit(1) from None
    finally:
        database.dispose()
    typer.echo(key)


@app.command()
def hand_over(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    curator: Annotated[str, typer.Argument(help="Name of the curator who owns it from now on.")],
) -> None:
    """Hand a dataset over to another curator, as when its owner has left. The audit log records it."""
    from service.datasets import ownership
    from service.errors import ServiceError
    from service.operations.clock import SystemClock
    from service.operations.database import Database

    settings = Settings()
    _require_tables(settings)
    database, now = Database(settings.database_address()), SystemClock().now()
    try:
        with database.write() as session:
            found = ownership.find(session, dataset)
            ownership.hand_over(session, found, curator, actor="operator", at=now)
    except ServiceError as error:
        typer.echo(f"{dataset} was not handed over: {error}.", err=True)
        raise typer.Exit(1) from None
    finally:
        database.dispose()
    typer.echo(f"{curator} owns {dataset} now.")


@app.command()
def replay(
    receipt: Annotated[Path, typer.Argument(help="A job's receipt, as JSON.")],
    transcript: Annotated[Path, typer.Argument(help="The job's transcript.")],
) -> None:
    """Recompute a job's result from its transcript, without rows, and print it as JSON."""
    import json

    from core.errors import InvalidTranscript
    from service.jobs.results import transcripts

    try:
        document = json.loads(receipt.read_text())
        found = transcripts.replay(document, transcript.read_bytes())
    except (InvalidTranscript, json.JSONDecodeError, OSError) as error:
        typer.echo(f"Not replayed: {error}.", err=True)
        raise typer.Exit(1) from None
    if changed := transcripts.other_versions(document):
        typer.echo(f"Last digits may differ: this is {', '.join(changed)}.", err=True)
    typer.echo(json.dumps(found, indent=2))


@app.command()
def demo(
    directory: Annotated[Path, typer.Option(help="Where the demo keeps its database.")] = Path("var"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over with an empty database.")] = False,
) -> None:
    """Start a service on this machine with two small synthetic datasets, and print how to use it."""
    with _without_collecting():
        from service.demo import run_demo

    run_demo(directory, fresh=fresh, serve=serve_with_workers)


def _first_key(
    settings: Settings, *, name: str = "curator", given: str | None = None, announce: bool = False
) -> str | None:
    """Create the first curator of an unused database; return the key, or None when there are principals."""
    from service.operations.clock import SystemClock
    from service.operations.database import Database
    from service.operations.states import Role
    from service.people import keys, principals

    database = Database(settings.database_address())
    now = SystemClock().now()
    with database.write() as session:
        if principals.exist(session):
            return None
        principal = principals.create(session, name, Role.CURATOR, by=None, at=now)
        key = keys.issue(session, principal, by=name, at=now, label="bootstrap", text=given).text
    database.dispose()
    if announce:
        typer.echo(f"First start: the key of the curator `{name}`, shown this once:\n\n    {key}\n", err=True)
    return key


if __name__ == "__main__":
    app()
