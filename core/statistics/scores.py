"""Scores of sets of centres: minus the loss of every swap, of whole sets, or of points of a net.

All of them are released by a choice, which prefers large scores. Losses are sums of squared distances
(`means`) or of distances rounded down (`medians`), exact integers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from core.arrays import Floats, Integers
from core.data import Chunk
from core.kernels.geometry import block_norms, integer_sqrt
from core.kernels.rows import FloatBlocks, row_blocks
from core.kernels.threads import sum_blocks
from core.privacy.sensitivity import Sensitivity
from core.statistics.base import Statistic
from core.statistics.histograms import Departures
from core.views import Assigned, Distances
from core.views.base import require_in_ball


@dataclass(frozen=True, eq=False)
class _Losses(Statistic):
    """Minus sums of what records pay: adding one lowers every score by at most the view's `reach`."""

    view: Distances

    @property
    def sensitivity(self) -> Sensitivity:
        # For choices only: no norm but the largest entry is bounded.
        reach = float(self.view.reach)
        return Sensitivity(l1=math.inf, l2=math.inf, linf=reach, one_block=False, monotone=True)

    def _require_candidates(self, numbers: Integers, axes: int) -> None:
        if numbers.ndim != axes or not numbers.size or numbers.max() >= self.view.count:
            raise ValueError("centres are numbers of candidates")

    def block(self, payments: Floats, weights: Integers) -> Integers:
        """The losses of some records; `weights` says how many records each row represents."""
        raise NotImplementedError

    def of(self, chunk: Chunk) -> Integers:
        def work(parts: Iterator[slice]) -> Integers:
            total = np.zeros(self.shape, dtype=np.int64)
            for part in parts:
                total -= self.block(*self.view.payments(chunk, part))
            return total

        return sum_blocks(work, self.view.parts(chunk))


@dataclass(frozen=True, eq=False)
class SwapLosses(_Losses):
    """Minus the loss after each swap: entry (i, y) is for the current set with its i-th centre replaced by y.

    With the nearest and second nearest current centre of every record, one pass over the records' distances
    to all candidates gives all k * |C| losses: a record pays min(d(x, y), d1), or min(d(x, y), d2) where its
    nearest centre is the one that leaves.
    """

    kind: ClassVar[str] = "swap-losses"
    current: Integers

    def __post_init__(self) -> None:
        self._require_candidates(self.current, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.current), self.view.count)

    def block(self, payments: Floats, weights: Integers) -> Integers:
        """Fewer than 2^18 records pay less than 2^35 each: sums stay below 2^53."""
        current = payments[:, self.current]
        nearest = current.argmin(axis=1)
        lines = np.arange(len(current))
        first = current[lines, nearest]
        current[lines, nearest] = float(self.view.reach)
        second = current.min(axis=1)
        stays = np.minimum(payments, first[:, None])
        np.minimum(payments, second[:, None], out=payments)
        payments -= stays
        pointers = np.arange(len(lines) + 1, dtype=np.int64)
        left_by = sp.csc_array(
            (weights.astype(np.float64), nearest, pointers), shape=(self.shape[0], len(lines))
        )
        losses: Integers = (left_by @ payments + weights.astype(np.float64) @ stays).astype(np.int64)
        return losses


@dataclass(frozen=True, eq=False)
class SetLosses(_Losses):
    """Minus the loss of each of some sets of candidates."""

    kind: ClassVar[str] = "set-losses"
    sets: Integers

    def __post_init__(self) -> None:
        self._require_candidates(self.sets, 2)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.sets),)

    def block(self, payments: Floats, weights: Integers) -> Integers:
        nearest = [payments[:, members].min(axis=1).astype(np.int64) for members in self.sets]
        return np.array([paid @ weights for paid in nearest], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NetLosses(Statistic):
    """For each centre minus the sum of distances of its records to each point of a net of its own."""

    kind: ClassVar[str] = "net-losses"
    view: Assigned
    #: One net for each centre: (centres, points, width), inside the ball of the rows.
    nets: Integers

    def __post_init__(self) -> None:
        require_in_ball(self.nets, self.view.base, "nets", 3)
        if len(self.nets) != len(self.view.centres):
            raise ValueError("one net for each centre")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.nets.shape[0], self.nets.shape[1])

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(l1=math.inf, l2=math.inf, linf=2.0 * self.view.base.radius, monotone=True)

    def of(self, chunk: Chunk) -> Integers:
        """One pass over all records for each point of a net: the work does not depend on sizes of clusters.

        Fewer than 2^18 records pay less than 2^17 each: sums stay below 2^53.
        """
        total = np.zeros(self.shape, dtype=np.int64)
        labels, rows = self.view.assignment(chunk).labels, self.view.base.rows(chunk)
        for part, block in FloatBlocks(rows, iter(row_blocks(rows.shape[0], rows.shape[1]))):
            dense = block.toarray() if isinstance(block, sp.csr_array) else block
            for place in range(self.shape[1]):
                away = dense - self.nets[labels[part], place]
                paid = integer_sqrt(block_norms(away))
                total[:, place] -= np.bincount(labels[part], paid, minlength=len(total)).astype(np.int64)
        return total


#: Kinds that are bounded entry by entry, but in no sum over entries: a choice releases them, noise does not.
BOUNDED_BY_ENTRY = frozenset({SwapLosses.kind, SetLosses.kind, NetLosses.kind, Departures.kind})
