"""Fixtures that hand out a migrated database of each kind, fresh for every test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import migrations
from benchmarks.harness.postgres import Server
from service.operations.database import Database

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One PostgreSQL for the whole session."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgres_template(postgres: Server) -> str:
    """The name of a migrated database to copy."""
    name = postgres.create()
    database = Database(postgres.url(name))
    migrations.upgrade(database.engine)
    database.dispose()
    return name


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("template") / "template.sqlite3"
    database = Database(f"sqlite:///{path}")
    migrations.upgrade(database.engine)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.dispose()
    return path


def new_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Yield the address of an empty database of the requested kind, and drop it afterwards."""
    if request.param == "sqlite":
        yield f"sqlite:///{folder / 'new.sqlite3'}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.create()
    yield server.url(name)
    server.drop(name)


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh migrated database, once of each kind."""
    if request.param == "sqlite":
        path = tmp_path / "cairn.sqlite3"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.create(template=request.getfixturevalue("postgres_template"))
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The address of a fresh migrated SQLite file, for what does not depend on the kind of database."""
    path = tmp_path / "cairn.sqlite3"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A fresh migrated database, once of each kind."""
    opened = Database(database_url)
    yield opened
    opened.dispose()
