"""Rows derived by pure functions of a chunk and of released parameters.

A view knows the norm its rows cannot exceed (`radius`) and how wide they are, which is all a
statistic needs to declare its sensitivity. Parameters are released or public; a view never looks at
another record than the one it derives, so neighbours stay neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property

import numpy as np

from core.arrays import Integers, Rows
from core.data import Chunk
from core.views.cache import CACHE


def cached(view: View, chunk: Chunk, make: Callable[[], Integers]) -> Integers:
    """The integers that `make` derives from the chunk, or derived before; for views of other modules."""
    derived: Integers = CACHE.get(view.digest, chunk.key, make, lambda values: values.nbytes)
    return derived


class View:
    """A derivation; two views with the same digest derive the same."""

    domain: str

    @cached_property
    def digest(self) -> str:
        hasher = hashlib.sha256(type(self).__name__.encode())
        for field in fields(self):  # type: ignore[arg-type]  # every view is a dataclass
            value = getattr(self, field.name)
            if isinstance(value, View):
                hasher.update(value.digest.encode())
            elif isinstance(value, np.ndarray):
                hasher.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
            else:
                hasher.update(repr(value).encode())
            hasher.update(b";")
        return hasher.hexdigest()


class RowView(View):
    """A view that yields rows of integers, `width` wide, with norms of at most `radius`."""

    width: int
    radius: int

    def rows(self, chunk: Chunk) -> Rows:
        raise NotImplementedError
