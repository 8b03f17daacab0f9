"""Numbers as text: with which decimal sign, and with which mark between groups of three digits."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import product

#: Marks between groups of three digits, as regular expressions with their other spellings.
GROUPING = {
    ",": ",",
    ".": r"\.",
    " ": "[\u0020\u00a0\u202f\u2009]",
    "'": "['\u2019]",
}
_MARKS = {" ": "blank", "'": "apostrophe"}


@dataclass(frozen=True)
class Notation:
    """How numbers are written; the same for all numbers of a file."""

    decimal: str = "."
    #: The mark between groups of three digits; empty where numbers have none.
    thousands: str = ""

    def number(self, text: str) -> float | None:
        """The number that a text denotes, or None if it is not a number in this notation."""
        if self._plain.fullmatch(text):
            return float(text.replace(",", "."))
        if self._grouped is not None and self._grouped.fullmatch(text):
            whole, sign, fraction = text.partition(self.decimal)
            return float(re.sub("[^0-9+-]", "", whole) + sign.replace(",", ".") + fraction)
        return None

    def advice(self, text: str) -> str:
        """What to declare for a text to be a number; empty where no notation would make it one."""
        for decimal, thousands in product((".", ","), ("", *GROUPING)):
            if thousands == decimal or Notation(decimal, thousands).number(text) is None:
                continue
            declared = []
            if decimal != self.decimal and decimal in text:
                declared.append(f"the decimal sign “{decimal}”")
            if thousands not in ("", self.thousands):
                declared.append(f"the {_MARKS.get(thousands, f'“{thousands}”')} between thousands")
            if declared:
                return f"if it is one, declare {' and '.join(declared)} in how the file is read"
        return ""

    @cached_property
    def _plain(self) -> re.Pattern[str]:
        mark = re.escape(self.decimal)
        return re.compile(rf"[+-]?([0-9]+({mark}[0-9]*)?|{mark}[0-9]+)([eE][+-]?[0-9]+)?")

    @cached_property
    def _grouped(self) -> re.Pattern[str] | None:
        if not self.thousands:
            return None
        mark, decimal = GROUPING[self.thousands], re.escape(self.decimal)
        return re.compile(rf"[+-]?[0-9]{{1,3}}({mark}[0-9]{{3}})+({decimal}[0-9]*)?")
