"""Cells of CSV files that a spreadsheet program takes for text, whatever names, levels and labels hold."""

import re
from collections.abc import Iterable
from typing import Any

#: What a spreadsheet program may take for a formula, also where it was escaped before.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
#: Numbers and intervals as text: without names, calls and cells, these are nothing that could be run.
_NUMBERS = re.compile(r"[-+−]?\d([-+−\d.,%() ×⁰¹²³⁴⁵⁶⁷⁸⁹⁻]|e[-+]|(?<= )(to|points)(?=[ )]|$))*")


def escaped(cells: Iterable[Any]) -> list[Any]:
    """Return the cells of a line, an apostrophe before each text that could be a formula; numbers stay."""
    return [_escaped(cell) if isinstance(cell, str) else cell for cell in cells]


def _escaped(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBERS.fullmatch(text) else text
