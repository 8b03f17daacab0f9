"""Rows derived by pure functions of a chunk and of public or released parameters.

A view knows the norm that its rows cannot exceed (`radius`) and how wide they are, all that a statistic needs
to declare its sensitivity. It looks at one record at a time, so neighbours stay neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from core.arrays import Integers, Rows
from core.data import UNITS, Chunk
from core.kernels.cache import CACHE

#: Parameters beyond this would leave the range in which the kernels are exact.
LARGEST_COORDINATE = 1 << 17
#: Derived values, which know their `nbytes`.
Derived = TypeVar("Derived")


class Parametrised:
    """Base of dataclasses that compute something from records; two with the same digest compute the same."""

    @cached_property
    def digest(self) -> str:
        hasher = hashlib.sha256(type(self).__name__.encode())
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            _update(hasher, getattr(self, field.name))
            hasher.update(b";")
        return hasher.hexdigest()


def _update(hasher: Any, value: object) -> None:
    if isinstance(value, Parametrised):
        hasher.update(value.digest.encode())
    elif isinstance(value, np.ndarray):
        hasher.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, tuple) and any(isinstance(part, Parametrised) for part in value):
        for part in value:
            _update(hasher, part)
    else:
        hasher.update(repr(value).encode())


class View(Parametrised):
    """A derivation of rows."""

    domain: str

    def cached(self, chunk: Chunk, make: Callable[[], Derived]) -> Derived:
        """The result of `make`, which derives something from the chunk, or that of an earlier call."""
        derived: Derived = CACHE.get(self.digest, chunk.key, make)
        return derived


class DerivedView(View):
    """A view of another view's rows."""

    base: RowView

    @property
    def domain(self) -> str:  # type: ignore[override]  # a field of the views that records are read by
        return self.base.domain


class RowView(View):
    """A view that yields rows of integers, `width` wide, with norms of at most `radius`."""

    width: int
    radius: int

    def rows(self, chunk: Chunk) -> Rows:
        raise NotImplementedError


def checked_points(values: npt.ArrayLike, width: int, what: str, axes: int = 2) -> Integers:
    """Public or released points as int64; refuses what the kernels could not treat exactly."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be integers: round released values first")
    if array.ndim != axes or array.size == 0 or array.shape[-1] != width:
        raise ValueError(f"{what} must be {width} wide, and not empty")
    if np.abs(array).max() > LARGEST_COORDINATE:
        raise ValueError(f"{what} lie too far outside the domain: clip them first")
    return np.ascontiguousarray(array, dtype=np.int64)


def require_in_ball(points: Integers, view: RowView, what: str, axes: int = 2) -> None:
    """Refuse points outside the ball of a view's rows."""
    squared = checked_points(points, view.width, what, axes) ** 2
    if int(squared.sum(axis=-1).max()) > view.radius**2:
        raise ValueError(f"{what} lie in the ball of the rows: clip them first")


def require_clipping(least: int, most: int) -> None:
    """Refuse clipping radii that are not all between one and the diameter of the domain."""
    if least < 1 or most > 2 * UNITS:
        raise ValueError("a clipping radius lies between 1 and the diameter of the domain")


def require_increasing(numbers: Integers, what: str) -> None:
    if numbers.dtype.kind != "i" or np.any(np.diff(numbers, prepend=-1) <= 0):
        raise ValueError(f"{what} are increasing integers of at least zero")
