"""Fixtures that hand out a migrated database, fresh for every test, of the kinds that the test needs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

import migrations
import service.operations.database
from benchmarks.harness.postgres import Server
from service.operations.database import Database

KINDS = ("sqlite", "postgresql")
#: An engine of each kind whose compiled statements the later ones use.
_FIRST: dict[str, Engine] = {}


def _engine_with_known_statements(url: str, **options: Any) -> Engine:
    """An engine that compiles no statement which another one of this process has compiled.

    A service compiles each statement once in its life. One service for every test would compile most of them
    in every test, which takes longer than everything else in a request.
    """
    engine = create_engine(url, **options)
    first = _FIRST.get(engine.name)
    if first is None or first.dialect.server_version_info is None:  # it has never met a database
        _FIRST[engine.name] = engine
    else:  # compiled statements belong to a dialect
        engine.dialect = engine.pool._dialect = first.dialect
        engine._compiled_cache = first._compiled_cache
    return engine


def share_statements() -> None:
    """Let all databases that this process opens from now on share what SQLAlchemy has compiled."""
    setattr(service.operations.database, "create_engine", _engine_with_known_statements)  # noqa: B010


@pytest.fixture(scope="session", autouse=True)
def _known_statements() -> None:
    share_statements()


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--both-databases", action="store_true", help="run every test that uses a database on both"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests whose SQL, locks or types differ run on both databases, the others on SQLite, or as marked."""
    if "database_kind" not in metafunc.fixturenames:
        return
    marked = {mark.name for mark in metafunc.definition.iter_markers()}
    kinds: tuple[str, ...] = KINDS
    if "postgresql" in marked:
        kinds = ("postgresql",)
    elif "both_databases" not in marked and not metafunc.config.getoption("--both-databases"):
        kinds = ("sqlite",)
    metafunc.parametrize("database_kind", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def database_kind(request: pytest.FixtureRequest) -> str:
    """The kind of database that a test runs on."""
    kind: str = request.param
    return kind


@contextmanager
def new_database(request: pytest.FixtureRequest, kind: str, folder: Path) -> Iterator[str]:
    """The address of a database without tables, which is dropped afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'new.sqlite3'}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.create()
    yield server.url(name)
    server.drop(name)


@contextmanager
def migrated_database(request: pytest.FixtureRequest, kind: str, folder: Path) -> Iterator[str]:
    """The address of a database with all tables, which is dropped afterwards."""
    if kind == "sqlite":
        path = folder / "cairn.sqlite3"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.create(template=request.getfixturevalue("postgres_template"))
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def database_url(request: pytest.FixtureRequest, database_kind: str, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh migrated database."""
    with migrated_database(request, database_kind, tmp_path) as url:
        yield url


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The address of a fresh migrated SQLite file, for what does not depend on the kind of database."""
    path = tmp_path / "cairn.sqlite3"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A fresh migrated database."""
    opened = Database(database_url)
    yield opened
    opened.dispose()
