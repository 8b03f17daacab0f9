"""The base of all statistics: additive functions of records that declare their sensitivity."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from core.data import Chunk
from core.kernels.sparse_counts import SparseCounts, Total
from core.privacy.sensitivity import Sensitivity
from core.views import Buckets, CandidateDistances, Cubes, View
from core.views.base import Parametrised


class Statistic(Parametrised, ABC):
    """An additive, integer-valued function of records: a frozen dataclass over a view of them."""

    kind: ClassVar[str]
    view: View | CandidateDistances

    @property
    def domain(self) -> str:
        """Fingerprint of the domain it is for."""
        return self.view.domain

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity: ...

    @property
    def zero(self) -> Total:
        """The total of no records."""
        return np.zeros(self.shape, dtype=np.int64)

    @abstractmethod
    def of(self, chunk: Chunk) -> Total:
        """The sum over one chunk."""

    def finish(self, total: Total) -> Total:
        """Return the mechanism's input, whose change `sensitivity` bounds: the total or a function of it."""
        return total


class Counts(Statistic):
    """A statistic to which a record adds a one, in at most one entry."""

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True)


class FamilyCounts(Counts):
    """Counts over the cells of a family too large to list."""

    view: Cubes | Buckets

    @property
    def family(self) -> int:
        """Number of cells, occupied or not."""
        return self.view.family

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.family,)

    @property
    def zero(self) -> SparseCounts:
        return SparseCounts.none(self.family)
