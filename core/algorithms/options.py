"""Options of algorithms: how they are declared, described and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.data import SiteFacts, Sites
from core.errors import InvalidRequest

_NOUNS = {int: "a whole number", float: "a number", str: "a string", dict: "an object"}


@dataclass(frozen=True)
class Option:
    """One option of an algorithm: a number within limits, a boolean, one of some words or an object.

    A default of None means that the algorithm derives it from public numbers; an object (`dict`) is read
    further by whoever takes it.
    """

    name: str
    kind: type
    default: Any
    description: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] | None = None

    def read(self, value: Any) -> Any:
        """The value, if it is one this option takes."""
        wrong = InvalidRequest(
            f"option {self.name} must be {self._wanted()}", parameter=f"options.{self.name}"
        )
        if self.kind is bool:
            if not isinstance(value, bool):
                raise wrong
            return value
        if self.kind is str:
            if not isinstance(value, str) or (self.choices is not None and value not in self.choices):
                raise wrong
            return value
        if self.kind is dict:
            if not isinstance(value, Mapping | Sites | SiteFacts):
                raise wrong
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong
        if self.kind is int and not isinstance(value, int):
            raise wrong
        if not math.isfinite(value) or (self.least is not None and value < self.least):
            raise wrong
        if self.most is not None and value > self.most:
            raise wrong
        return self.kind(value)

    def _wanted(self) -> str:
        if self.kind is bool:
            return "true or false"
        if self.choices is not None:
            return "one of " + ", ".join(self.choices)
        noun = _NOUNS[self.kind]
        if self.least is not None and self.most is not None:
            return f"{noun} between {self.least:g} and {self.most:g}"
        return noun if self.least is None else f"{noun} of at least {self.least:g}"

    def schema(self) -> dict[str, Any]:
        names = {int: "integer", float: "number", bool: "boolean", str: "string", dict: "object"}
        schema: dict[str, Any] = {"type": names[self.kind], "description": self.description}
        if self.default is not None:
            schema["default"] = self.default
        if self.least is not None:
            schema["minimum"] = self.least
        if self.most is not None:
            schema["maximum"] = self.most
        if self.choices is not None:
            schema["enum"] = list(self.choices)
        return schema


def options_schema(options: tuple[Option, ...]) -> dict[str, Any]:
    """JSON Schema of an algorithm's options."""
    return {
        "type": "object",
        "properties": {option.name: option.schema() for option in options},
        "additionalProperties": False,
    }


def read_options(options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option with its given or default value; refuses unknown names and wrong values."""
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            offered = ", ".join(known) or "none"
            raise InvalidRequest(
                f"there is no option {name!r}; options are: {offered}", parameter=f"options.{name}"
            )
    return {
        name: option.read(given[name]) if given.get(name) is not None else option.default
        for name, option in known.items()
    }


def coverage_options(rounds: str, growth: float, accounting: str) -> tuple[Option, ...]:
    """Options of a coverage loop, given default rounds in words, least growth and the paper's accounting."""
    return (
        Option("rounds", int, None, f"picks at each radius; by default {rounds}", least=1, most=1000),
        Option("growth", float, 2.0, "each radius is this many times the one before", least=growth, most=16),
        Option(
            "accounting",
            str,
            "pure",
            "how the coverage loop is accounted for",
            choices=("pure", "approximate", accounting),
        ),
    )
