"""The protocols of statistics: additive functions of records that declare their sensitivity."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from core.arrays import Integers
from core.data import Chunk
from core.kernels.sparse_counts import SparseCounts
from core.privacy import Sensitivity


@runtime_checkable
class Statistic(Protocol):
    """An additive, integer-valued function of records."""

    kind: ClassVar[str]

    @property
    def domain(self) -> str:
        """Fingerprint of the domain it is for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def sensitivity(self) -> Sensitivity: ...

    def of(self, chunk: Chunk) -> Integers:
        """The sum over one chunk."""


@runtime_checkable
class SparseStatistic(Protocol):
    """How many records lie in each cell of a family too large to list."""

    kind: ClassVar[str]

    @property
    def domain(self) -> str:
        """Fingerprint of the domain it is for."""

    @property
    def family(self) -> int:
        """How many cells there are, occupied or not."""

    @property
    def sensitivity(self) -> Sensitivity: ...

    def of(self, chunk: Chunk) -> SparseCounts:
        """The counts over one chunk."""
