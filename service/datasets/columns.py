"""Wire types of the columns of a table: what a curator declares about each before a row is read.

The kinds declare their facts (`core.columns`); wire types and their documentation follow from these.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from dataclasses import Field as Fact
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    create_model,
    model_serializer,
)

from core.columns.base import Column, Missing, Role
from core.columns.registry import KINDS
from service.http.wire import VISIBLE_PATTERN, Answer, Body, ColumnName, example

#: Most facts of a column that came from rows.
_MOST_FACTS = 20
#: Most characters of a level, a date or a time.
_LONGEST_TEXT = 128
_Text = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT, pattern=VISIBLE_PATTERN)]
#: How facts of these Python types are written in JSON; the others as they are.
_TYPES: dict[Any, Any] = {
    str: _Text,
    str | None: _Text | None,
    tuple[str, ...]: Annotated[list[_Text], Field(min_length=1, max_length=256)],
}
#: `Literal` of values that a kind declares.
_choice: Any = Literal


def _facts_of(kind: type[Column]) -> Mapping[str, Fact[Any]]:
    """The facts that columns of a kind have and others have not."""
    shared = {field.name for field in fields(Column)} - {"fill"}
    return {field.name: field for field in fields(kind) if field.name not in shared}


_OWN_FACTS = dict.fromkeys(name for kind in KINDS.values() for name in _facts_of(kind))
if TYPE_CHECKING:
    FromRows = str
else:
    #: Facts of a column that a look at rows may suggest.
    FromRows = Literal[("kind", "role", "missing", *_OWN_FACTS)]


class DeclaredColumn(Body):
    """Facts that every column has."""

    name: ColumnName
    kind: str
    role: Role = Field(
        default="cluster",
        description="`cluster`: it counts in distances; `keep`: it is stored for later questions; `id`: it "
        "tells people apart, and is not stored; `ignore`: it is left out",
    )
    weight: float = Field(default=1.0, description="how far apart its ends, or two of its levels, are")
    missing: Missing | None = Field(
        default=None,
        description="what a missing value does: refuse the file, leave the row out, become `fill`, become a "
        'level of its own ("missing", categories only), or stay missing (columns kept for questions). '
        "Default: `keep` for those, `refuse` for the others",
    )
    confirmed_from_rows: list[FromRows] | None = Field(
        default=None,
        max_length=_MOST_FACTS,
        description="facts of this column that were read off rows, each of which you confirm to be public; "
        "everybody with a grant sees which",
    )

    @model_serializer(mode="wrap")
    def _without_empty(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialise(self).items() if value is not None}


def _model(kind: type[Column]) -> type[DeclaredColumn]:
    """Return the wire type of a kind of column."""
    types = get_type_hints(kind)
    facts: dict[str, Any] = {
        name: (
            _TYPES.get(types[name], types[name]),
            Field(
                default=... if fact.default is MISSING else fact.default,
                description=fact.metadata.get("description"),
            ),
        )
        for name, fact in _facts_of(kind).items()
        if types[name] is not type(None)
    }
    words = (
        "how far apart its ends, or two of its levels, are. Default: such that two typical records differ as "
        "much as in a number"
    )
    facts["weight"] = (float, Field(default=kind.fair_weight(), description=words))
    if kind.roles != Column.roles:
        facts["role"] = (_choice[kind.roles], kind.role)
    model: type[DeclaredColumn] = create_model(
        f"{kind.__name__}Column",
        __base__=DeclaredColumn,
        __doc__=kind.__doc__,
        __cls_kwargs__={"json_schema_extra": example({"kind": kind.kind, **kind.example})},
        kind=(_choice[kind.kind], ...),
        **facts,
    )
    return model


_MODELS = {name: _model(kind) for name, kind in KINDS.items()}
if TYPE_CHECKING:
    TableColumn = DeclaredColumn
else:
    TableColumn = Annotated[reduce(or_, _MODELS.values()), Field(discriminator="kind")]
TableColumns = Annotated[list[TableColumn], Field(min_length=1, max_length=1000)]


_KIND = {
    "name": "boolean",
    "title": "yes or no",
    "summary": "Yes or no: true and false, yes and no, 1 and 0.",
    "roles": ["cluster", "keep", "id", "ignore"],
    "missing": ["refuse", "drop", "fill", "keep"],
    "has_bounds": False,
    "schema": {"type": "object", "properties": {"name": {"type": "string"}, "kind": {"const": "boolean"}}},
}


class ColumnKindFacts(Answer, json_schema_extra=example(_KIND)):
    """A kind of column of a table."""

    name: str
    title: str = Field(description="for people")
    summary: str
    roles: list[str] = Field(description="what a column of this kind may be for")
    missing: list[str] = Field(description="what a missing value may do")
    has_bounds: bool = Field(description="whether values lie between `low` and `high`")
    schema_: dict[str, Any] = Field(alias="schema", description="JSON Schema of a declared column")


class ColumnKindList(Answer, json_schema_extra=example({"items": [_KIND]})):
    """Every kind of column."""

    items: list[ColumnKindFacts]


def kinds() -> ColumnKindList:
    """Return what people and programs need to know to declare columns of each kind."""
    items = [
        {
            "name": name,
            "title": kind.title,
            "summary": (kind.__doc__ or "").partition("\n")[0],
            "roles": list(kind.roles),
            "missing": list(kind.missing_choices()),
            "has_bounds": kind.has_bounds,
            "schema": TypeAdapter(_MODELS[name]).json_schema(),
        }
        for name, kind in KINDS.items()
    ]
    return ColumnKindList.model_validate({"items": items})
