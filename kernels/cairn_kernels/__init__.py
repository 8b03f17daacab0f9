"""Exact integer kernels in C for `cairn-dp`, which finds this package by itself.

A body is one compilation of `kernels.c`: `avx512`, `avx2` or `plain`. All return the same integers, those of
numpy; `exactness.md` of the distribution says why.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["INTERFACE", "Body", "body", "names"]

#: Number of this interface. `cairn-dp` ignores a package with another one.
INTERFACE = 1

_Array = npt.NDArray[Any]

#: All bodies, the fastest first; a processor that runs one runs those after it.
_FASTEST_FIRST = ("avx512", "avx2", "plain")


class _ArrayOf:
    """A parameter that is an array of one type, stored row by row without gaps."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._kind = np.dtype(kind)

    def from_param(self, array: _Array) -> ctypes.c_void_p:
        if array.dtype != self._kind or not array.flags.c_contiguous:
            raise TypeError(f"a kernel needs a contiguous array of {self._kind}")
        return ctypes.c_void_p(array.__array_interface__["data"][0])


_COUNT = ctypes.c_int64
_I16, _I32, _I64 = _ArrayOf(np.int16), _ArrayOf(np.int32), _ArrayOf(np.int64)
_U32, _U64, _F64 = _ArrayOf(np.uint32), _ArrayOf(np.uint64), _ArrayOf(np.float64)

#: The parameters of each kernel, as `kernels.c` declares them.
_PARAMETERS = {
    "nearest": (_I16, _COUNT, _COUNT, _I16, _COUNT, _COUNT, _I16, _U32),
    "clip_weights": (_I16, _U32, _COUNT, _F64, _U64, _I32),
    "grouped_sums": (_I16, _COUNT, _COUNT, _I16, _I32, _I64, _I64),
    "bin_counts": (_I16, _U32, _COUNT, _U32, _COUNT, _U32, _COUNT, _COUNT),
    "value_counts": (_I32, _COUNT, _COUNT, _I32, _U32, _COUNT, _COUNT),
    "path_codes": (_I16, _COUNT, _COUNT, _I64, _COUNT, _I32, _COUNT, _I32),
    "project": (_I16, _COUNT, _COUNT, _F64, _COUNT, ctypes.c_double, _I16),
    "second_moments": (_I16, _COUNT, _COUNT, _F64, ctypes.c_double, _F64),
}
#: Kernels that need working memory, and return 1 where there is none.
_ALLOCATING = {"nearest", "project", "second_moments"}


class Body:
    """The kernels as one compilation has them. They release the lock of the interpreter while they run."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        for name, parameters in _PARAMETERS.items():
            function = getattr(self._library, name)
            function.argtypes = parameters
            function.restype = ctypes.c_int if name in _ALLOCATING else None
            if name in _ALLOCATING:
                function.errcheck = _check_memory
        self.name = _text(self._library.body)

    @property
    def best(self) -> str:
        """The name of the best body for this processor."""
        return _text(self._library.best_body)

    def nearest(self, rows: _Array, centres: _Array, reach: int, labels: _Array, squared: _Array) -> None:
        """For each row the index of its nearest centre, and the squared distance to it."""
        self._library.nearest(rows, *rows.shape, centres, len(centres), reach, labels, squared)

    def clip_weights(
        self, labels: _Array, squared: _Array, limits: _Array, allowed: _Array, weights: _Array
    ) -> None:
        """For each row the weight that clips it; limits and their squares are by label."""
        self._library.clip_weights(labels, squared, len(labels), limits, allowed, weights)

    def grouped_sums(self, rows: _Array, labels: _Array, weights: _Array, sums: _Array, mass: _Array) -> None:
        """Add weighted rows to the sums of their groups, and their weights to the groups' mass."""
        self._library.grouped_sums(rows, *rows.shape, labels, weights, sums, mass)

    def bin_counts(self, labels: _Array, values: _Array, ends: _Array, counts: _Array) -> None:
        """Count values by label and bin in the rows of `counts`, a power of two of them."""
        copies, cells = counts.shape
        self._library.bin_counts(labels, values, len(values), ends, len(ends) + 1, counts, cells, copies)

    def value_counts(self, codes: _Array, shift: int, table: _Array, counts: _Array) -> None:
        """Count codes by what a table has for them, in the rows of `counts`, a power of two of them."""
        copies, cells = counts.shape
        self._library.value_counts(codes, len(codes), shift, table, counts, cells, copies)

    def path_codes(self, rows: _Array, axes: _Array, tables: _Array, codes: _Array) -> None:
        """Join the bits that tables have for each row's coordinates, from -reach to reach."""
        reach = tables.shape[1] // 2
        self._library.path_codes(rows, *rows.shape, axes, len(axes), tables, reach, codes)

    def project(self, rows: _Array, right: _Array, radius: int, out: _Array) -> None:
        """Rows with a one at their end, times a matrix, clipped to the radius."""
        self._library.project(rows, *rows.shape, right, out.shape[1], float(radius), out)

    def second_moments(self, rows: _Array, centre: _Array, radius: int, square: _Array) -> None:
        """Add z z^T for each row, z = row - centre clipped to the radius; its upper triangle counts."""
        self._library.second_moments(rows, *rows.shape, centre, float(radius), square)


def _check_memory(status: int, function: Any, arguments: Any) -> None:
    if status:
        raise MemoryError("a kernel found no working memory")


def _text(function: Any) -> str:
    function.restype = ctypes.c_char_p
    name: bytes = function()
    return name.decode()


@cache
def names() -> tuple[str, ...]:
    """The bodies that this processor runs and this package holds, the fastest first."""
    best = _FASTEST_FIRST.index(body("plain").best)
    return tuple(name for name in _FASTEST_FIRST[best:] if _library(name).exists())


@cache
def body(name: str) -> Body:
    """The body of this name; the processor must run it."""
    return Body(_library(name))


def _library(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.so")
