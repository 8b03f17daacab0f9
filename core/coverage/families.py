"""Publicly indexed sets of records for maximum coverage.

A family is a stack of levels, one for each radius. At every level it maps a public index to a set of records,
by a rule that looks at one record at a time. `SetCounts` holds how many records each set holds.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from core.arrays import Integers
from core.data import Chunk
from core.kernels.sparse_counts import Total


class SetCounts(Protocol):
    """How many records each set of one level holds; changes as records join or leave."""

    def change(self, parts: Total, sign: int) -> None:
        """Add (1) or take away (-1) the parts of some records, as `Family.parts` made them."""

    def held(self) -> tuple[Integers, Integers]:
        """Indices and counts; sets that are not listed, and those listed with zero, hold no record."""


@runtime_checkable
class Family(Protocol):
    """Sets of records at several levels, each set known by a public index below `size(level)`."""

    @property
    def domain(self) -> str:
        """Fingerprint of the domain it is for."""

    @property
    def digest(self) -> str: ...

    @property
    def levels(self) -> int: ...

    def size(self, level: int) -> int:
        """How many sets there are at this level, whatever the records."""

    def holds(self, chunk: Chunk, level: int, index: int, among: Integers) -> npt.NDArray[np.bool_]:
        """Which of the named records of a chunk the set holds."""

    def parts(self, chunk: Chunk, level: int, among: Integers) -> Total:
        """What the named records of a chunk contribute to the tally."""

    def tally(self, level: int) -> SetCounts:
        """A tally of no records."""


class ListedCounts:
    """A tally with one number for every set."""

    def __init__(self, size: int) -> None:
        self._counts = np.zeros(size, dtype=np.int64)

    def change(self, parts: Total, sign: int) -> None:
        assert isinstance(parts, np.ndarray)
        self._counts += sign * parts

    def held(self) -> tuple[Integers, Integers]:
        return np.arange(len(self._counts)), self._counts
