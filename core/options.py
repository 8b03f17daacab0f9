"""Options of algorithms and questions: names, types, defaults and limits, from which requests are read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from core.data import SiteFacts, Sites
from core.errors import InvalidRequest

_TYPES = {int: "integer", float: "number", str: "string", dict: "object", list: "array"}
_NOUNS = {int: "a whole number", float: "a number", dict: "an object", list: "a list of different numbers"}
#: Longest list that an option takes.
MOST_ENTRIES = 100


@dataclass(frozen=True)
class Option:
    """One option; where its default is None, it is derived from public numbers."""

    name: str
    kind: type
    default: Any
    description: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    #: A value that is more useful in a form than the default.
    example: Any = None

    @classmethod
    def word(cls, name: str, description: str, *choices: str) -> Self:
        """One of some words, by default the first."""
        return cls(name, str, choices[0], description, choices=choices)

    def read(self, value: Any) -> Any:
        """The value, or a refusal if this option does not take it."""
        if not self._takes(value):
            message = f"option {self.name} must be {self._wanted()}"
            raise InvalidRequest(message, parameter=f"options.{self.name}")
        return self.kind(value) if self.kind in (int, float) else value

    def _takes(self, value: Any) -> bool:
        if self.kind is str:
            return isinstance(value, str) and value in self.choices
        if self.kind is dict:
            return isinstance(value, Mapping | Sites | SiteFacts)
        if self.kind is list:
            entries = value if isinstance(value, list | tuple) else ()
            fit = all(self._takes_number(entry, whole=False) for entry in entries)
            return fit and 0 < len(entries) == len(set(entries)) <= MOST_ENTRIES
        return self._takes_number(value, whole=self.kind is int)

    def _takes_number(self, value: Any, *, whole: bool) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            return False
        within = (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
        return within and math.isfinite(value)

    def _wanted(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        noun = _NOUNS[self.kind]
        if self.least is not None and self.most is not None:
            return f"{noun} between {self.least:g} and {self.most:g}"
        return noun if self.least is None else f"{noun} of at least {self.least:g}"

    def schema(self) -> dict[str, Any]:
        limits = {"default": self.default, "minimum": self.least, "maximum": self.most}
        if self.kind is list:
            ends = {"minimum": self.least, "maximum": self.most}
            limits = {"default": self.default, "items": {"type": "number", **ends}, "maxItems": MOST_ENTRIES}
        given = {name: value for name, value in limits.items() if value is not None}
        words: dict[str, Any] = {"enum": list(self.choices)} if self.choices else {}
        if self.example is not None:
            words["examples"] = [self.example]
        return {"type": _TYPES[self.kind], "description": self.description, **given, **words}


def options_schema(options: tuple[Option, ...]) -> dict[str, Any]:
    """JSON Schema of some options."""
    return {
        "type": "object",
        "properties": {option.name: option.schema() for option in options},
        "additionalProperties": False,
    }


def read_options(whose: str, options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option with its given or default value; refuses unknown names and wrong values."""
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            offered = f"there is no option {name!r}; {whose} takes {', '.join(known) or 'no options'}"
            raise InvalidRequest(offered, parameter=f"options.{name}")
    return {
        name: option.read(given[name]) if given.get(name) is not None else option.default
        for name, option in known.items()
    }
