"""The database's rules: one moment per reader, nobody waits for ever, commits that survive a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Row, func, select, text
from sqlalchemy.exc import DBAPIError, OperationalError

from assurance.chaos.scene import Scene
from benchmarks.harness.postgres import Server
from service.ledger import verification
from service.operations import database
from service.operations.database import Database
from service.operations.tables import Dataset

pytestmark = pytest.mark.both_databases

#: Takes a lock until its transaction ends, and changes nothing.
CHANGE = text("UPDATE alembic_version SET version_num = version_num")


@pytest.fixture
def postgres_url(postgres: Server, postgres_template: str) -> str:
    return postgres.url(postgres.create(template=postgres_template))


def test_ledger_verifies_while_others_write(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reservation between two queries of the replay must not look like tampering."""
    scene = Scene(database_url, tmp_path)
    dataset = scene.dataset("sum", "1", caps=("1",))
    apply = verification.Replay.apply
    interruptions = iter([dataset])

    def interrupted(self: verification.Replay, entry: object) -> None:
        for name in interruptions:
            scene.queued(name)
        apply(self, entry)

    monkeypatch.setattr(verification.Replay, "apply", interrupted)
    with scene.database.read() as session:
        assert verification.verify(session, 1).faults == []
    with scene.database.read() as session:
        assert verification.verify(session, 1).entries == 3
    scene.close()


def test_reader_cannot_write(postgres_url: str) -> None:
    database = Database(postgres_url)
    with database.read() as session, pytest.raises(DBAPIError, match="read-only"):
        session.execute(text("DELETE FROM results"))
    database.dispose()


def test_statements_stay_prepared_between_readers(postgres_url: str) -> None:
    database = Database(postgres_url, pool=1)
    for _ in range(7):
        with database.read() as session:
            session.scalar(text("SELECT count(*) FROM jobs"))
    with database.read() as session:
        prepared = session.scalars(text("SELECT statement FROM pg_prepared_statements")).all()
    assert [each for each in prepared if "jobs" in each] == ["SELECT count(*) FROM jobs"]
    database.dispose()


def test_connection_is_replaced_when_the_server_ended_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = Database(postgres_url, pool=1), Database(postgres_url, pool=1)
    query = select(func.pg_backend_pid())

    def end(row: Row[Any] | None) -> None:
        assert row is not None
        with other.write() as session:  # waits until that process is gone
            session.scalar(select(func.pg_terminate_backend(row[0], 10_000)))

    end(first.find_row(query, {}))
    assert first.find_row(query, {}) is not None  # requests begin with this, which is asked again
    end(first.find_row(query, {}))
    with (
        pytest.raises(OperationalError),
        first.read() as session,
    ):  # used a moment ago: it was not tried before
        session.scalar(query)
    monkeypatch.setattr(database, "_TRUSTED_SECONDS", 0.0)
    end(first.find_row(query, {}))
    with first.read() as session:
        assert session.scalar(query) is not None
    first.dispose()
    other.dispose()


def test_reader_keeps_nothing_that_it_changed(database_url: str, tmp_path: Path) -> None:
    scene = Scene(database_url, tmp_path)
    scene.dataset("sum", "1", caps=("1",))
    with scene.database.read() as session:
        session.get_one(Dataset, 1).description = "changed"
    with scene.database.read() as session:
        assert session.get_one(Dataset, 1).description != "changed"
    scene.close()


def test_writer_gives_up_on_a_lock_that_is_never_released(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.2)
    holder, other = Database(database_url), Database(database_url)
    with holder.write() as first:
        first.execute(CHANGE)
        with pytest.raises(OperationalError), other.write() as second:
            second.execute(CHANGE)
    with other.write() as second:
        second.execute(CHANGE)
    holder.dispose()
    other.dispose()


def test_silent_holder_of_a_lock_is_ended_by_the_server(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SILENT_SECONDS", 0.2)
    silent, other = Database(postgres_url), Database(postgres_url)

    def fall_silent() -> None:
        with silent.write() as first:
            first.execute(CHANGE)
            with other.write() as second:
                second.execute(CHANGE)  # waits until the server has ended the first

    with pytest.raises(DBAPIError, match="terminat"):
        fall_silent()
    silent.dispose()
    other.dispose()


@pytest.mark.parametrize(("lax", "used"), [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")])
def test_commits_are_durable_whatever_the_servers_default(
    postgres: Server, postgres_template: str, lax: str, used: str
) -> None:
    name = postgres.create(template=postgres_template)
    database = Database(postgres.url(name))
    with database.engine.connect() as connection:
        connection.execute(text(f'ALTER DATABASE "{name}" SET synchronous_commit = {lax}'))
        connection.commit()
    database.engine.dispose()
    with database.write() as session:
        assert session.scalar(text("SHOW synchronous_commit")) == used
        assert session.scalar(text("SELECT now()")) > datetime(2020, 1, 1, tzinfo=UTC)
    database.dispose()
    postgres.drop(name)


def test_log_of_a_large_write_is_cut_by_the_next_transaction(tmp_path: Path) -> None:
    """Otherwise the log of an upload would take as much disk as its rows until a restart."""
    file = Database(f"sqlite:///{tmp_path / 'log.sqlite3'}")
    log = tmp_path / "log.sqlite3-wal"
    with file.write() as session:
        session.execute(text("CREATE TABLE pieces (piece BLOB)"))
    with file.write() as session:
        for _ in range(3):
            session.execute(text("INSERT INTO pieces VALUES (zeroblob(8000000))"))
    assert log.stat().st_size > 24_000_000
    with file.write() as session:
        session.execute(text("DELETE FROM pieces WHERE rowid = 0"))
        session.execute(text("INSERT INTO pieces VALUES (NULL)"))
    assert log.stat().st_size <= 16 << 20
    with file.read() as reader:
        reader.execute(text("SELECT count(*) FROM pieces"))
        file.empty_log()  # a reader is in its way: nothing fails
        with file.write() as session:
            session.execute(text("INSERT INTO pieces VALUES (zeroblob(8000000))"))
    file.empty_log()
    assert log.stat().st_size == 0
    file.dispose()


def test_files_of_the_server_are_for_its_user_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "service.cli", "migrate"]
    environment = {**os.environ, "CAIRN_DATABASE_URL": f"sqlite:///{tmp_path}/made/cairn.sqlite3"}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, umask=0o022)
    made = [tmp_path / "made", *(tmp_path / "made").iterdir()]
    assert len(made) > 1
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)
