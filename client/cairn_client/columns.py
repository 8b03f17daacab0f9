"""Columns of a table, as a curator declares them: public facts that must not depend on the rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, TypedDict, Unpack

#: A column as the service reads it.
Described = dict[str, Any]


class Shared(TypedDict, total=False):
    """Options of any column."""

    #: How far apart its ends are, or two of its levels; by default two typical records differ as in a number.
    weight: float
    #: "cluster" (the default), "keep" for later questions, "id" or "ignore".
    role: str
    #: What a missing value does: "refuse" (the default), "drop", "fill", "level" or "keep".
    missing: str
    #: The value that a missing one becomes, with `missing="fill"`.
    fill: Any


class Column:
    """Makes columns for `create_dataset(table=[...])`."""

    @staticmethod
    def number(
        name: str,
        low: float,
        high: float,
        *,
        whole: bool = False,
        log: bool = False,
        offset: float = 0,
        **others: Unpack[Shared],
    ) -> Described:
        """Numbers between bounds; `whole` for counts, `log` where ratios matter rather than differences.

        With `log`, `offset` is added to each value before its logarithm is taken, where zeros occur.
        """
        facts: Described = {"low": low, "high": high, "whole": whole, "log": log}
        return _column("number", name, facts | ({"offset": offset} if log else {}), others)

    @staticmethod
    def boolean(name: str, **others: Unpack[Shared]) -> Described:
        """Yes or no."""
        return _column("boolean", name, {}, others)

    @staticmethod
    def category(
        name: str, levels: Sequence[str], *, other: str | None = None, **others: Unpack[Shared]
    ) -> Described:
        """One of some public levels; `other` is the level that all other values become."""
        return _column("category", name, {"levels": list(levels), "other": other}, others)

    @staticmethod
    def date(
        name: str, low: str | date, high: str | date, *, order: str | None = None, **others: Unpack[Shared]
    ) -> Described:
        """Dates between bounds; `order` ("dmy", "mdy") where files do not write them like 2030-12-31."""
        return _column("date", name, {"low": _text(low), "high": _text(high), "order": order}, others)

    @staticmethod
    def datetime(
        name: str,
        low: str | datetime,
        high: str | datetime,
        *,
        order: str | None = None,
        **others: Unpack[Shared],
    ) -> Described:
        """Moments between bounds, to the second."""
        return _column("datetime", name, {"low": _text(low), "high": _text(high), "order": order}, others)

    @staticmethod
    def id(name: str, *, missing: str = "refuse") -> Described:
        """The column that tells people apart; it is not stored."""
        return {"name": name, "kind": "text", "role": "id", "missing": missing}

    @staticmethod
    def ignored(name: str) -> Described:
        """A column that is left out."""
        return {"name": name, "kind": "text", "role": "ignore"}


def _column(kind: str, name: str, facts: Described, others: Shared) -> Described:
    said = {name: value for name, value in {**facts, **others}.items() if value is not None}
    return {"name": name, "kind": kind, **said}


def _text(moment: Any) -> str:
    return moment if isinstance(moment, str) else str(moment.isoformat())
