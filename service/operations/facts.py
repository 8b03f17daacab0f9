"""Facts that an act leaves behind: digests of the rows that define datasets, grants and accounts.

The audit event of an act carries them, so that a row which is changed later, in whatever way but by another
act, contradicts the newest event. Tables whose rows are facts are marked as `audited`; of these every column
counts, unless it says why not.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Table, select, text
from sqlalchemy.orm import Session

from service.operations import canonical
from service.operations.tables import Base

#: Key of a column's `info`: why the column is not a fact, or which check covers it.
UNAUDITED = "unaudited"


def snapshot(session: Session, chain: int) -> dict[str, Any]:
    """Return the columns and the digest of each table's rows: those of a dataset, or (0) of the service."""
    columns = {model: columns_of(model) for model in _audited(chain)}
    return {
        model.__tablename__: {"columns": names, "digest": _digest(session, model, names, chain)}
        for model, names in columns.items()
    }


def differences(session: Session, chain: int, recorded: dict[str, Any]) -> Iterator[str]:
    """Yield the tables whose rows are not what a snapshot recorded.

    Columns that are newer than the snapshot are not compared, nor are tables that have lost a column since.
    """
    for model in _audited(chain):
        known = recorded.get(model.__tablename__)
        if known is None or not {*known["columns"]} <= {*_table(model).columns.keys()}:
            continue
        if known["digest"] != _digest(session, model, known["columns"], chain):
            yield model.__tablename__


def columns_of(model: type[Base]) -> list[str]:
    """Return the columns of a table that are facts."""
    return [column.name for column in _table(model).columns if UNAUDITED not in column.info]


def _audited(chain: int) -> list[type[Base]]:
    """Return the tables with facts of datasets, or of the service, by name."""
    models = [mapper.class_ for mapper in Base.registry.mappers if mapper.class_.audited]
    wanted = [model for model in models if (_dataset_column(model) is not None) == bool(chain)]
    return sorted(wanted, key=lambda model: str(model.__tablename__))


def _digest(session: Session, model: type[Base], columns: Sequence[str], chain: int) -> str:
    table = _table(model)
    query = select(*(table.c[name] for name in columns)).order_by(*table.primary_key)
    if chain:
        query = query.where(table.c[_dataset_column(model) or ""] == chain)
    if model.audited_where:
        query = query.where(text(model.audited_where))
    rows = session.connection().execute(query)
    return canonical.digest([[_plain(value) for value in row] for row in rows])


def _dataset_column(model: type[Base]) -> str | None:
    """Return the column that says which dataset a row is of; None in tables of the service."""
    if model.__tablename__ == "datasets":
        return "id"
    return "dataset_id" if "dataset_id" in _table(model).columns else None


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _table(model: type[Base]) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table
