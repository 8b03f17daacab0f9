"""Migrations lead from nothing to the tables in code, on both databases."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError

import migrations
from service.operations.database import Database
from service.operations.tables import Base

pytestmark = pytest.mark.both_databases


def test_migrated_database_equals_the_tables_in_code(database: Database) -> None:
    with database.engine.connect() as connection:
        assert migrations.drift(connection, Base.metadata) == []
        assert migrations.is_current(connection)


def test_downgrade_leaves_nothing_behind_and_upgrade_works_again(database: Database) -> None:
    migrations.downgrade(database.engine, "base")
    assert set(inspect(database.engine).get_table_names()) <= {"alembic_version"}
    migrations.upgrade(database.engine)
    with database.engine.connect() as connection:
        assert migrations.is_current(connection)


def test_migrations_at_the_same_time_wait_for_each_other(database: Database) -> None:
    migrations.downgrade(database.engine, "0001")
    command = [sys.executable, "-m", "service.cli", "migrate"]
    environment = {**os.environ, "CAIRN_DATABASE_URL": database.url}
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    with database.engine.connect() as connection:
        assert migrations.is_current(connection)


def test_drift_check_notices_a_missing_column(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE jobs DROP COLUMN worker"))
        assert migrations.drift(connection, Base.metadata) != []


@pytest.fixture
def one_entry(database: Database) -> Database:
    with database.engine.begin() as connection:
        connection.execute(
            text("INSERT INTO principals (id, name, role, created_at) VALUES (1, 'carla', 'curator', 0)")
        )
        connection.execute(
            text(
                "INSERT INTO datasets (id, name, owner_id, description, state, domain, accountant,"
                " epsilon_units, delta_units, release_ticks, created_at)"
                " VALUES (1, 'd', 1, '', 'draft', '{}', 'sum', 1, 0, true, 0)"
            )
        )
        connection.execute(
            text(
                "INSERT INTO ledger_entries"
                " (dataset_id, sequence, kind, actor, loss_units, delta_units, at, previous, hash)"
                " VALUES (1, 1, 'open', 'carla', 1, 0, 0, '', '')"
            )
        )
    return database


def _put_sites(database: Database, kind: str) -> None:
    with database.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO site_sets (dataset_id, name, kind, count, width, digest, payload, created_at)"
                " VALUES (1, :kind, :kind, 1, 2, '', '', 0)"
            ),
            {"kind": kind},
        )


def test_database_refuses_a_kind_of_sites_it_does_not_know(one_entry: Database) -> None:
    for kind in ("coordinates", "great-circle", "distances"):
        _put_sites(one_entry, kind)
    with pytest.raises(IntegrityError):
        _put_sites(one_entry, "taxicab")


def test_sites_of_older_tables_live_on_and_names_stay_unique(one_entry: Database) -> None:
    migrations.downgrade(one_entry.engine, "0001")
    _put_sites(one_entry, "coordinates")
    with pytest.raises(IntegrityError):
        _put_sites(one_entry, "great-circle")
    migrations.upgrade(one_entry.engine)
    _put_sites(one_entry, "great-circle")
    with pytest.raises(IntegrityError):
        _put_sites(one_entry, "coordinates")
    migrations.downgrade(one_entry.engine, "0001")
    with one_entry.engine.connect() as connection:
        assert connection.scalars(text("SELECT kind FROM site_sets")).all() == ["coordinates"]
        assert connection.scalars(text("SELECT kind FROM ledger_entries")).all() == ["open"]


@pytest.mark.parametrize(
    "statement", ["UPDATE ledger_entries SET loss_units = 0", "DELETE FROM ledger_entries"]
)
def test_database_refuses_to_change_the_ledger(one_entry: Database, statement: str) -> None:
    with pytest.raises(DBAPIError, match="append-only"), one_entry.engine.begin() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize(
    "amounts",
    [
        "10, 6, 5, 0, 0, 0",
        "10, 11, 0, 0, 0, 0",
        "10, 0, 0, 5, 3, 3",
        "10, -1, 0, 0, 0, 0",
        "10, 0, 0, 0, 0, -1",
    ],
)
def test_database_itself_refuses_an_overspent_account(one_entry: Database, amounts: str) -> None:
    with pytest.raises(IntegrityError), one_entry.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO accounts (dataset_id, loss_total, loss_reserved, loss_spent, delta_total,"
                f" delta_reserved, delta_spent, entries, head) VALUES (1, {amounts}, 0, '')"
            )
        )
