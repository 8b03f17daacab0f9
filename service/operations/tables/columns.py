"""The base of the tables, and the column types and constraints that they share."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Dialect,
    Enum,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    TypeDecorator,
    text,
)
from sqlalchemy.orm import DeclarativeBase, mapped_column

from service.operations.states import DatasetState, EndReason, EntryKind, JobState, RequestState, Role, Unit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """A UTC moment, stored as whole microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + value * _MICROSECOND


# SQLite numbers rows by itself only for INTEGER primary keys, which it stores as 64 bits.
Key = BigInteger().with_variant(Integer, "sqlite")


def stored(kind: type[StrEnum], length: int = 16) -> Enum:
    """Store an enumeration as the text of its values."""
    return Enum(kind, native_enum=False, length=length, values_callable=lambda each: [x.value for x in each])


def one_of(column: str, kind: type[StrEnum]) -> CheckConstraint:
    """Let a column hold the values of an enumeration only."""
    values = ", ".join(f"'{each.value}'" for each in kind)
    return CheckConstraint(f"{column} IN ({values})", name=column)


def indexed_where(name: str, *columns: str, condition: str, unique: bool = True) -> Index:
    """Index the rows that meet a condition."""
    only = text(condition)
    return Index(name, *columns, unique=unique, sqlite_where=only, postgresql_where=only)


class Base(DeclarativeBase):
    """The schema; constraints are named so that migrations can speak of them."""

    #: Rows are facts, whose digests enter the audit log; see `operations.facts`.
    audited: ClassVar[bool] = False
    #: SQL that limits the facts to some rows.
    audited_where: ClassVar[str] = ""
    #: Why no check has to find an edit of a row; a column says so in its `info`.
    harmless: ClassVar[str] = ""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Moment,
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON,
        bytes: LargeBinary,
        bool: Boolean,
        Role: stored(Role),
        DatasetState: stored(DatasetState),
        EntryKind: stored(EntryKind),
        JobState: stored(JobState),
        EndReason: stored(EndReason, 32),
        RequestState: stored(RequestState),
        Unit: stored(Unit),
    }


# Columns that several tables have.
Id = Annotated[int, mapped_column(Key, primary_key=True)]
#: The number of a row to which nothing refers.
RowNumber = Annotated[
    int, mapped_column(Key, primary_key=True, info={"harmless": "nothing refers to the row by its number"})
]
DatasetId = Annotated[int, mapped_column(Key, ForeignKey("datasets.id"))]
PopulationId = Annotated[int, mapped_column(Key, ForeignKey("populations.id"))]
PrincipalId = Annotated[int, mapped_column(Key, ForeignKey("principals.id"))]
GrantId = Annotated[int, mapped_column(Key, ForeignKey("grants.id"))]
#: An amount, or another whole number of 64 bits.
Units = Annotated[int, mapped_column(BigInteger)]
Name = Annotated[str, mapped_column(String(64))]
Sha256 = Annotated[str, mapped_column(String(64))]
Uuid = Annotated[str, mapped_column(String(36))]
