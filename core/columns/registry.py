"""The registry of kinds of columns: look a kind up by name, read a declaration, propose a kind for cells."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from core.columns.base import Column
from core.columns.boolean import Boolean
from core.columns.category import Category
from core.columns.cells import Cells, Proposed
from core.columns.dates import Date
from core.columns.datetimes import DateTime
from core.columns.number import Number
from core.columns.text import Text
from core.errors import InvalidDomain

#: Every kind by its name, in the order in which they are tried on the cells of a file; the last fits all.
KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (Boolean, Date, DateTime, Number, Category, Text)
}


def column_from_json(data: Mapping[str, Any]) -> Column:
    """The column that `to_json` described."""
    kind = KINDS.get(data.get("kind", "")) if isinstance(data.get("kind"), str) else None
    name = data.get("name", "")
    if kind is None:
        raise InvalidDomain(f"column {name}: kind must be one of {', '.join(KINDS)}", parameter="columns")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items() if key != "kind"}
    known = fields(kind)
    unknown = sorted(set(given) - {field.name for field in known})
    if unknown:
        raise InvalidDomain(f"column {name}: a {kind.kind} has no {', '.join(unknown)}", parameter="columns")
    needed = [field.name for field in known if field.default is MISSING]
    if not given.keys() >= set(needed):
        facts = f", {' and '.join(needed[1:])}" if needed[1:] else ""
        raise InvalidDomain(f"column {name}: a {kind.kind} needs a name{facts}", parameter="columns")
    made: Any = kind
    return made(**given)  # type: ignore[no-any-return]  # facts differ by kind


def propose(cells: Cells) -> tuple[type[Column], Proposed]:
    """The first kind that fits the cells, with what it proposes to declare."""
    for kind in _candidates(cells):
        proposed = kind.propose(cells)
        if proposed is not None:
            return kind, proposed
    raise AssertionError("the last kind fits all cells")


def _candidates(cells: Cells) -> list[type[Column]]:
    kinds = list(KINDS.values())
    if not cells.present:
        return kinds[-1:]
    if cells.are_codes:
        return [kind for kind in kinds if kind.proposed_for_codes]
    return [kind for kind in kinds if cells.type in kind.proposed_for]
