"""The first cells of a column, from which a declaration is proposed, and the types of values in files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from core.columns.missing import is_missing
from core.columns.notation import Notation

#: Types of values in a file. A file of text has none but "text".
FileType = Literal["boolean", "number", "date", "moment", "text"]
_CODE_NAME = re.compile(r"\b(code|zip|plz|postcode|postal)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Cells:
    """The first cells of a column as text, with what its type in the file says about all values."""

    name: str
    texts: Sequence[str]
    type: FileType = "text"
    #: Whether that type holds whole numbers only.
    whole: bool = False
    notation: Notation = field(default_factory=Notation)

    @cached_property
    def present(self) -> list[str]:
        """The cells that are not missing, without surrounding blanks."""
        return [text for cell in self.texts if not is_missing(text := cell.strip())]

    @cached_property
    def distinct(self) -> list[str]:
        return list(dict.fromkeys(self.present))

    @property
    def have_gaps(self) -> bool:
        return len(self.present) < len(self.texts)

    @property
    def words(self) -> str:
        """The name with blanks between its words."""
        return self.name.replace("_", " ")

    @property
    def are_codes(self) -> bool:
        """Whether the name says that digits are codes (a postcode, say) rather than quantities or dates."""
        return self.type in ("number", "text") and _CODE_NAME.search(self.words) is not None


@dataclass(frozen=True)
class Proposed:
    """Facts that a kind of column proposes for some cells, and those among them that no row decided."""

    facts: dict[str, Any] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
