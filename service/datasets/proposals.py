"""Proposals for the columns of a table, from the first cells of a file.

Each fact that cells decide is listed in the proposal's `from_rows`, whatever they decide: it becomes a public
fact only when the curator confirms that it is one. What follows from a column's name or from the types of a
file is not listed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.columns import registry
from core.columns.cells import Cells
from core.columns.missing import is_missing
from core.columns.reading import composed
from core.columns.text import Text

_LIKE_DATA = re.compile(
    r"[+-]?[\d.,\s'\u2019]*\d(e[+-]?\d+)?\s?%?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*", re.IGNORECASE
)
_ID_NAME = re.compile(
    r"(^|[\s_-])(id|ids|uuid|key|mrn|ssn)$"
    r"|^(patient|person|customer|subject|member|case|record)[\s_-]?(no|nr|number|id)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Proposal:
    """A column that may be declared like this, and which of its facts cells decided."""

    facts: dict[str, Any]
    from_rows: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The column as `POST /v1/datasets` takes it, with what came from rows."""
        return {**self.facts, "from_rows": list(self.from_rows)}


def looks_like_data(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return True for a first line that must not be taken for names, which are public.

    It holds numbers, dates or gaps, or a text that occurs again below it in the same column.
    """
    written = names[1:] if names and not names[0] else names  # programs leave the name of an index empty
    if not written or any(is_data(name) for name in written):
        return True
    below = [set(column) for column in zip(*(row for row in rows if len(row) == len(names)), strict=True)]
    return any(name and name in column for name, column in zip(names, below, strict=False))


def is_data(name: str) -> bool:
    """Return True for a cell that holds a value, not a name."""
    low = name.casefold()
    return bool(is_missing(name) or low in ("true", "false", "yes", "no") or _LIKE_DATA.fullmatch(name))


def propose(found: Sequence[Cells]) -> list[Proposal]:
    """Propose a declaration of each column; at most one tells people apart."""
    person = next((place for place, each in enumerate(found) if _ID_NAME.search(each.name)), None)
    return [_propose(each, place == person) for place, each in enumerate(found)]


def _propose(cells: Cells, is_person: bool) -> Proposal:
    name = composed(cells.name)
    if is_person:
        return Proposal({"name": name, "kind": Text.kind, "role": "id"})
    kind, proposed = registry.propose(cells)
    facts, known = {"kind": kind.kind, "role": kind.role, **proposed.facts}, set(proposed.known)
    if kind.role == "cluster":
        facts.setdefault("missing", "drop" if cells.have_gaps else "refuse")
        known |= {"kind"} if _type_decides(cells) else set()
    return Proposal({"name": name, **facts}, tuple(fact for fact in facts if fact not in known))


def _type_decides(cells: Cells) -> bool:
    """Whether the type of a file leaves one kind that keeps its values."""
    kinds = [kind for kind in registry.KINDS.values() if kind.role == "cluster"]
    return sum(cells.type in kind.proposed_for for kind in kinds) == 1
