"""The table of edits: every column of every table is edited, and found by a check or harmless with a reason.

docs/integrity.md is what this test observes; with CAIRN_WRITE_DOCS=1 in the environment it writes the page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    RowMapping,
    Table,
    delete,
    event,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy import Enum as Choice
from sqlalchemy.exc import DBAPIError

from service import maintenance
from service.operations import signing
from service.operations.tables import Base
from service.operations.tables.columns import Moment
from tests.support.databases import migrated_database
from tests.support.service import DOUBTS, START, House, table

PERIODS = "/v1/datasets/stays/periods"
PAGE = Path("docs/integrity.md")
HEADING = """# Integrity

What an edit of the database leads to, for operators and auditors: somebody who can write to it, but does not
have the file of the signing key, changes one value or deletes a row. `cairn-server verify` finds it, in the
words below, or it is harmless for the reason given. A test edits every column of every table on both
databases and compares what it observes with this page.
[Decision 0020](decisions/0020-what-an-edited-database-contradicts.md) says what stands behind it.

Accesses are deleted from the audit log [after a time](operations.md#who-read-what). What is left of one
(number, moment, hashes, a digest) is covered like any event, and one that is younger than a signed act allows
is a fault.

"""
MODELS = {mapper.class_.__tablename__: mapper.class_ for mapper in Base.registry.mappers}
EDITED = [table for name, table in sorted(Base.metadata.tables.items()) if not MODELS[name].harmless]


def fill(house: House) -> None:
    """Rows in every table whose edits are not harmless as a whole."""
    house.ready(planned_release=False)
    carla, path = house.carla, "/v1/datasets/flowers"
    csv = {"headers": {"Content-Type": "text/csv"}}
    sites = {"content": b"1,1\n2,2\n", "params": {"kind": "coordinates"}}
    public = {"content": b"a,b\n" + b"1,2\n3,1\n" * 20, "params": {"public": "true"}}
    bounds = {"json": {"columns": [{"column": "a", "low": 1, "high": 9}]}}
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", "sites/wards", sites | csv),
        ("PUT", "public-rows", public | csv),
        ("PUT", "working-bounds", bounds),
        ("DELETE", "working-bounds", {}),
    ]
    for verb, what, body in changes:
        answer = carla.call(verb, f"{path}/{what}", **body)
        assert answer.status_code in (200, 204), answer.text
    people = {"name": "north", "accountant": "sum", "budget": {"epsilon": "9", "delta": "0.00001"}}
    assert carla.post("/v1/populations", people).status_code == 201
    joined = {"dataset": "flowers", "one_row_per_person": True}
    assert carla.post("/v1/populations/north/datasets", joined).status_code == 200
    several = {"k": {"from": 2, "to": 3}, "algorithm": "auto", "key": "first", "delta": "0.0000001"}
    assert house.create("stays", unit="record").status_code == 201
    assert carla.post(f"{PERIODS}", {"label": "2026-01"}).status_code == 201
    assert carla.call("PUT", f"{PERIODS}/2026-01/data", content=table(40)).status_code == 200
    assert carla.post(f"{PERIODS}/2026-01/seal", {"confirm": list(DOUBTS)}).status_code == 200
    assert house.grant("ada", "stays").status_code == 200
    asked = house.ada.post("/v1/requests", {"dataset": "flowers", "epsilon": "0.9"})
    assert asked.status_code == 201, asked.text
    granted = carla.post(f"/v1/requests/{asked.json()['id']}/grant", {"delta": "0.000001", "reason": "less"})
    assert granted.status_code == 200, granted.text
    for body in (several, {"delta": "0"}, {"dataset": "stays"}):
        answer = house.submit("0.2", **body)
        assert answer.status_code == 202, answer.text
    assert house.work()
    assert carla.post(f"{path}/ledger/verify").json()["ok"]


@pytest.fixture(params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """A service whose database refuses no edit: without triggers, foreign keys and checks."""
    with migrated_database(request, request.param, tmp_path) as url, closing(House(url, tmp_path)) as house:
        fill(house)
        if house.database.is_sqlite:
            event.listen(house.database.engine, "connect", _switch_off_checks)
            house.database.dispose()
        with house.database.engine.begin() as connection:
            _drop_checks(connection)
        yield house


def _switch_off_checks(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")


def _drop_checks(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        for verb in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER ledger_entries_no_{verb}"))
        return
    for name in Base.metadata.tables:
        connection.execute(text(f"ALTER TABLE {name} DISABLE TRIGGER ALL"))
        for check in inspect(connection).get_check_constraints(name):
            connection.execute(text(f'ALTER TABLE {name} DROP CONSTRAINT "{check["name"]}"'))


class Editor:
    """Edits one value or row, asks which check finds it, and puts it back."""

    def __init__(self, house: House):
        self.house = house
        self.keys = signing.open_keys(house.settings)

    def faults(self) -> list[str]:
        return list(maintenance.faults(self.house.database, self.keys))

    def _change(self, *statements: Any) -> None:
        with self.house.database.engine.connect() as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def delete(self, table: Table) -> str | None:
        """Return what finds that the table's first row is gone; None: nothing does."""
        row, where = self._first(table)
        self._change(delete(table).where(*where))
        try:
            return said(self.faults)
        finally:
            self._change(insert(table).values(dict(row)))

    def _first(self, table: Table, column: Column[Any] | None = None) -> tuple[RowMapping, list[Any]]:
        ordered = [table.primary_key.columns[0]] if column is None else [column.is_(None), *table.primary_key]
        first = select(table).order_by(*ordered).limit(1)
        with self.house.database.engine.connect() as connection:
            row = connection.execute(first).one()._mapping
        return row, [each == row[each] for each in table.primary_key]

    def edit(self, column: Column[Any]) -> str | None:
        """Return what finds an edit of the column in the first row with a value; None: nothing does."""
        table = column.table
        assert isinstance(table, Table)
        row, before = self._first(table, column)
        old = row[column]
        new = other(old, column)
        where = [each == (new if each is column else row[each]) for each in table.primary_key]
        self._change(update(table).where(*before).values({column: new}))
        try:
            return said(self.faults)
        finally:
            self._change(update(table).where(*where).values({column: old}))


def said(find: Any) -> str | None:
    """The first fault without names and numbers; whatever cannot even be read is a fault, too."""
    try:
        found = find()
    except (DBAPIError, LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
        return f"cannot be read ({type(error).__name__})"
    return plain(found[0]) if found else None


def plain(fault: str) -> str:
    """A fault without names, numbers and ids."""
    fault = re.sub(r"^\w+: ", "", fault)
    fault = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "J", fault)
    return re.sub(r"\b\d+\b", "N", fault)


def other(value: Any, column: Column[Any]) -> Any:
    """Another value that the column can hold."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, Enum):
        return next(each for each in type(value) if each is not value)
    if isinstance(value, int):
        return value + 1000
    if isinstance(value, datetime):
        return value + timedelta(seconds=1)
    if isinstance(value, bytes):
        return value + b"\0"
    if isinstance(value, dict):
        return {**value, next(iter(value), "edited"): "edited"}
    if isinstance(value, list):
        return [*value, "edited"]
    if isinstance(value, str):
        return value[:-1] + ("1" if value.endswith("0") else "0") if value else "edited"
    return filled_in(column)


def filled_in(column: Column[Any]) -> Any:
    """A value for a column that has none."""
    if isinstance(column.type, Moment):
        return START
    if isinstance(column.type, Choice):
        return next(iter(column.type.enum_class or ()))
    if isinstance(column.type, JSON):
        return ["edited"]
    return {str: "edited", int: 1000}[column.type.python_type]


def page(found: dict[str, dict[str, str]]) -> str:
    lines = [HEADING]
    for name, columns in found.items():
        lines.append(f"## {name}\n\n| column | an edit |\n|---|---|")
        lines += [f"| {column} | {what} |" for column, what in columns.items()]
        lines.append("")
    harmless = {name: model.harmless for name, model in sorted(MODELS.items()) if model.harmless}
    lines.append("## Tables whose edits are harmless\n\n| table | because |\n|---|---|")
    lines += [f"| `{name}` | {reason} |" for name, reason in harmless.items()]
    return "\n".join(lines) + "\n"


def test_every_edit_is_found_or_harmless_with_a_reason(filled: House) -> None:
    editor = Editor(filled)
    assert editor.faults() == []
    found: dict[str, dict[str, str]] = {}
    unseen: list[str] = []
    for edited in EDITED:
        for column in edited.columns:
            reason = column.info.get("harmless")
            what = editor.edit(column) if reason is None else f"harmless: {reason}"
            if what is None:
                unseen.append(f"{edited.name}.{column.name}")
            found.setdefault(edited.name, {})[f"`{column.name}`"] = what or "unseen"
        reason = edited.primary_key.columns[0].info.get("harmless")
        what = editor.delete(edited) or (reason and f"harmless: {reason}")
        if what is None:
            unseen.append(edited.name)
        found[edited.name]["the row, deleted"] = what or "unseen"
    assert unseen == []
    assert editor.faults() == []
    if os.environ.get("CAIRN_WRITE_DOCS"):
        PAGE.write_text(page(found))
    assert page(found) == PAGE.read_text()
