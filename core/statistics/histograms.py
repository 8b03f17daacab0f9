"""Histograms of columns, in all or cluster by cluster; tables of several columns; how clusters depart."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.data import Chunk
from core.kernels.counting import cell_counts, histograms
from core.kernels.sparse_counts import Total
from core.privacy.sensitivity import Sensitivity
from core.statistics.base import Counts, Statistic
from core.views import Assigned, Bins

#: A reference histogram is given in shares of this number.
WHOLE = 1 << 16


@dataclass(frozen=True, eq=False)
class CellCounts(Counts):
    """Number of records in each cell of a table: clusters of some partitions, then bins of some columns."""

    kind: ClassVar[str] = "cell-counts"
    view: Bins
    groups: tuple[Assigned, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return (*(len(group.centres) for group in self.groups), *self.view.widths)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True, touched=1)

    def of(self, chunk: Chunk) -> Integers:
        labels = [group.assignment(chunk).labels for group in self.groups]
        return cell_counts(self.view.stored(chunk), self.view.lookups, labels, self.shape)


@dataclass(frozen=True, eq=False)
class Histograms(Statistic):
    """For each cluster (or for all records as one) a histogram of each column, side by side in one row."""

    kind: ClassVar[str] = "histograms"
    view: Bins
    group: Assigned | None

    @property
    def clusters(self) -> int:
        return 1 if self.group is None else len(self.group.centres)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.clusters, sum(self.view.widths))

    @property
    def sensitivity(self) -> Sensitivity:
        return _ones(len(self.view.binnings))

    def of(self, chunk: Chunk) -> Integers:
        return self._histograms(chunk)

    def _histograms(self, chunk: Chunk) -> Integers:
        labels = None if self.group is None else self.group.assignment(chunk).labels
        rows, view = self.view.stored(chunk), self.view
        return histograms(rows, view.lookups, view.widths, labels, self.clusters)

    def parts(self, row: Integers) -> list[Integers]:
        """A row cut into its histograms."""
        return np.split(row, np.cumsum(self.view.widths)[:-1])


@dataclass(frozen=True, eq=False)
class PickedHistograms(Histograms):
    """For each cluster the histograms of a few columns that were picked for it, and of no others.

    Histograms with fewer bins than the widest end in entries that no record reaches.
    """

    kind: ClassVar[str] = "picked-histograms"
    #: Released: for each cluster the numbers of its columns.
    picks: Integers

    def __post_init__(self) -> None:
        if self.picks.ndim != 2 or len(self.picks) != self.clusters:
            raise ValueError("one row of picked columns for each cluster")
        if any(len(set(row)) != len(row) for row in self.picks.tolist()):
            raise ValueError("a column is picked once for each cluster")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.clusters, self.picks.shape[1], max(self.view.widths))

    @property
    def sensitivity(self) -> Sensitivity:
        return _ones(self.picks.shape[1])

    def of(self, chunk: Chunk) -> Integers:
        found = np.zeros(self.shape, dtype=np.int64)
        for cluster, row in enumerate(self._histograms(chunk)):
            columns = self.parts(row)
            for place, pick in enumerate(self.picks[cluster]):
                found[cluster, place, : len(columns[pick])] = columns[pick]
        return found


@dataclass(frozen=True, eq=False)
class Departures(Histograms):
    """Scores of columns: the distance of each cluster from a released reference in each column.

    The score of a cluster of m records with n_b of them in bin b, against shares r_b of `WHOLE`, is the sum
    over bins of |WHOLE n_b - r_b m|: 2 WHOLE m times the total variation distance.
    """

    kind: ClassVar[str] = "departures"
    #: Released shares of all records in each bin, of `WHOLE`; they add up to it in each column.
    reference: Integers

    def __post_init__(self) -> None:
        if self.reference.shape != (sum(self.view.widths),) or self.reference.min() < 0:
            raise ValueError("a reference has a share of at least zero for each bin")
        if any(int(part.sum()) != WHOLE for part in self.parts(self.reference)):
            raise ValueError("the shares of a reference add up to the whole in each column")

    @property
    def sensitivity(self) -> Sensitivity:
        # For choices only: a record moves every score of its cluster.
        return Sensitivity(np.array([2.0 * WHOLE]), l1=math.inf, l2=math.inf)

    def finish(self, total: Total) -> Integers:
        assert isinstance(total, np.ndarray)
        departures = np.empty((self.clusters, len(self.view.binnings)), dtype=np.int64)
        references = self.parts(self.reference)
        for cluster, row in enumerate(total):
            for place, counts in enumerate(self.parts(row)):
                expected = references[place] * int(counts.sum())
                departures[cluster, place] = np.abs(WHOLE * counts - expected).sum()
        return departures


def _ones(count: int) -> Sensitivity:
    """A record adds a one to this many entries, all of them in one row."""
    return Sensitivity(l1=float(count), l2=math.sqrt(count), monotone=True, touched=count)
