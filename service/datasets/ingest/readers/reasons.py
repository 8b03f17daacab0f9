"""Why a value of a table cannot be stored: the column, the value and what to do, for the curator alone."""

import difflib

from core.data import Boolean, Category, Column, Fault, Number
from core.data.tables.reading import LOCAL_DATE
from service.datasets.ingest.findings import quoted
from service.datasets.ingest.readers.text import Dialect, undeclared

_YES_OR_NO = ("true", "false", "yes", "no")
_LONGEST_GUESS = 100


def reason(column: Column, fault: int, value: object, dialect: Dialect) -> str:
    """Say what is wrong with a value, and what to do about it."""
    if fault == Fault.MISSING:
        return f"{column.name} is missing"
    text = str(value).strip()
    return f"{column.name}: {quoted(text)} {_problem(column, text, dialect)}"


def _problem(column: Column, text: str, dialect: Dialect) -> str:
    if isinstance(column, Category):
        return _unknown(column, text)
    if isinstance(column, Boolean):
        return "is neither yes nor no (yes, no, true, false, 1, 0); correct it, or make the column a category"
    if isinstance(column, Number):
        return _no_number(column, text, dialect)
    if column.kind in ("date", "datetime") and LOCAL_DATE.match(text):
        return (
            f"is not a {column.kind} in the order in which this column is read; declare the column's order "
            "of day, month and year: ymd, dmy or mdy"
        )
    return f"is not a {column.kind}; correct it, or write it like 2030-12-31"


def _no_number(column: Number, text: str, dialect: Dialect) -> str:
    if text.casefold() in _YES_OR_NO:
        return "is not a number; declare the column as yes or no (boolean)"
    if dialect.number(text) is not None and column.whole:
        return "is not a whole number; correct it, or do not restrict the column to whole numbers"
    if LOCAL_DATE.match(text):
        return "is not a number; make the column a date"
    if advice := undeclared(text, dialect):
        return f"is not a number as the file is read; {advice}"
    return "is not a number; correct it, or make the column a category"


def _unknown(column: Category, text: str) -> str:
    close = difflib.get_close_matches(text, column.levels, 1) if len(text) < _LONGEST_GUESS else []
    advice = "correct it, add it as a level, or choose a level for all other values"
    if close:
        return f"is not one of the column's levels; did you mean {quoted(close[0])}? If not, {advice}"
    return f"is not one of the column's levels; {advice}"
