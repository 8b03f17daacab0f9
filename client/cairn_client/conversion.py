"""Conversion of wire types from JSON and back."""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
#: Fields that the service leaves out instead of sending null.
_LEFT_OUT = {"rho", "noise", "tail", "intervals", "profiles", "level", "range", "merged"}


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def read(kind: type[T], data: Any) -> T:
    """Convert JSON to a wire type; raises ValueError if it does not fit."""
    try:
        value: T = _value(kind, data)
    except (KeyError, TypeError, InvalidOperation) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error
    return value


def _value(kind: Any, data: Any) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if data is None:
            return None
        (kept,) = (each for each in inner if each is not type(None))
        return _value(kept, data)
    if origin is list:
        return [_value(inner[0], each) for each in data]
    if origin is dict:
        return {name: _value(inner[1], each) for name, each in data.items()}
    if kind is Decimal:
        return Decimal(str(data))
    if kind is datetime:
        return datetime.fromisoformat(data)
    if isinstance(kind, type) and is_dataclass(kind):
        return _instance(kind, data)
    return data


def _instance(kind: Any, data: Any) -> Any:
    """A wire type of its fields; those that are missing have their defaults."""
    hints = _hints(kind)
    given = {}
    for each in fields(kind):
        if each.name in data:
            given[each.name] = _value(hints[each.name], data[each.name])
        elif each.default is MISSING and each.default_factory is MISSING:
            raise KeyError(each.name)
    return kind(**given)


def to_json(value: Any) -> Any:
    """Convert a wire type to the JSON that the service sent."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
        return {name: each for name, each in named.items() if each is not None or name not in _LEFT_OUT}
    if isinstance(value, Mapping):
        return {name: to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
