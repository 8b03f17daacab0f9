"""95% intervals of what is computed from counts with noise; the argument is in `intervals.md`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from core.arrays import Floats
from core.kernels.clipping import onto_simplex
from core.postprocessing.consistency import rand_index

#: Mean size of noise in its standard deviations, at most: that of normal noise.
_MEAN_SIZE = 0.8
#: The 95% quantile of sizes beyond their mean, in deviations of the noise: of Laplace noise, the larger.
_SIZE_TAIL = 1.645 * math.sqrt(0.5)

#: Tables are drawn this often to see how far noise moves their agreement.
_REPETITIONS = 400
#: Share of them beyond both ends of an interval.
_OUTSIDE = 0.05
#: With a total below this many deviations of its noise an agreement is not known.
_MANY = 4.0


class Interval(NamedTuple):
    """Both ends of the intervals of some numbers."""

    low: Floats
    high: Floats

    def within(self, low: float, high: float) -> Interval:
        """The part that is possible; an interval outside it is moved to its nearest end."""
        return Interval(np.clip(self.low, low, high), np.clip(self.high, low, high))

    def around(self, values: Any) -> Interval:
        """Wide enough to hold what is shown."""
        return Interval(np.minimum(self.low, values), np.maximum(self.high, values))

    def widened(self, by: Any) -> Interval:
        """Both ends moved outwards."""
        return Interval(self.low - by, self.high + by)

    def to_json(self, name: str) -> dict[str, Any]:
        """Both ends by the name of what they belong to."""
        return {f"{name}_low": self.low.tolist(), f"{name}_high": self.high.tolist()}


def counts_interval(counts: Floats, reach: Any, shown: Any) -> Interval:
    """Intervals of counts whose noise stays within `reach`, around the consistent counts that are shown."""
    found = Interval(counts - reach, counts + reach).within(0.0, math.inf)
    # Far below zero an upper end would claim more than noise allows: it stays a part of the noise away.
    return Interval(found.low, np.maximum(found.high, reach / 2)).around(shown)


def ratio_interval(above: Floats, below: Floats, variances: tuple[Any, Any, Any]) -> Interval:
    """Fieller's interval of a ratio; `variances` are squared reaches: above, of both together, below.

    Unbounded where the denominator may be zero.
    """
    of_above, of_both, of_below = variances
    square = below**2 - of_below
    bounded = (square > 0) & (below > 0)
    safe = np.where(bounded, square, 1.0)
    middle = above * below - of_both
    root = np.sqrt(np.maximum(middle**2 - square * (above**2 - of_above), 0.0))
    low = np.where(bounded, (middle - root) / safe, -math.inf)
    high = np.where(bounded, (middle + root) / safe, math.inf)
    return Interval(low, high)


def difference_interval(first: Sequence[Floats], second: Sequence[Floats]) -> Interval:
    """The second less the first, each a value with both ends of its interval; their noise is independent."""
    (one, one_low, one_high), (other, other_low, other_high) = first, second
    value = other - one
    low = value - np.hypot(other - other_low, one_high - one)
    return Interval(low, value + np.hypot(other_high - other, one - one_low))


def distance_reach(bins: int, deviation: float) -> float:
    """How far noise moves half the sum of absolute differences of this many numbers, at most."""
    return (_MEAN_SIZE * bins + _SIZE_TAIL * math.sqrt(bins)) * deviation / 2


def rand_index_interval(
    counts: Floats, deviation: float, shown: float | None, draw: np.random.Generator
) -> tuple[float, float]:
    """The adjusted Rand index of a table whose counts have noise of this deviation, around what is shown."""
    if shown is None or not counts.sum() > _MANY * deviation * math.sqrt(counts.size):
        return (-1.0, 1.0)
    noise = draw.normal(0.0, deviation, (_REPETITIONS, *counts.shape))
    totals = np.maximum((counts + noise).sum(axis=(1, 2)), 0.0)
    again = onto_simplex((counts + noise).reshape(_REPETITIONS, -1), totals).reshape(noise.shape)
    found = [index for table in again if (index := rand_index(table)) is not None]
    low, high = np.quantile(found, [_OUTSIDE / 2, 1 - _OUTSIDE / 2])
    # How far noise moved the index of these counts is how far it moved that of the exact ones.
    ends = sorted((shown, 2 * shown - float(high), 2 * shown - float(low)))
    return max(-1.0, ends[0]), min(1.0, ends[-1])


@dataclass(frozen=True, eq=False)
class NoisyHistograms:
    """Histograms of the same records, a row for each group, with independent noise in every count."""

    #: For each histogram its counts as released.
    parts: Sequence[Floats]
    #: How far noise moves a count in 95 of 100 releases.
    reach: float

    @cached_property
    def _weight(self) -> float:
        return float(sum(1 / part.shape[1] for part in self.parts))

    @cached_property
    def totals(self) -> Floats:
        """The least-squares size of each group, before it is moved to zero."""
        sums: Floats = sum((part.sum(axis=1) / part.shape[1] for part in self.parts), np.zeros(1))
        return sums / self._weight

    def sizes(self, shown: Any) -> Interval:
        """The size of each group."""
        return counts_interval(self.totals, self.reach / math.sqrt(self._weight), shown)

    def counts(self, place: int, shown: Any) -> Interval:
        """The counts of one histogram."""
        part, bins = self.parts[place], self.parts[place].shape[1]
        estimates = part + (self.totals - part.sum(axis=1))[:, None] / bins
        one = np.eye(1, bins)[0]
        return counts_interval(estimates, self.reach * math.sqrt(self._inner(place, one, one)), shown)

    def shares(self, place: int, shown: Any) -> Interval:
        """The counts of one histogram as shares of the size of each group."""
        bins = self.parts[place].shape[1]
        ends = [self.ratio(place, one, np.ones(bins)) for one in np.eye(bins)]
        low, high = (np.stack([getattr(each, end) for each in ends], axis=1) for end in ("low", "high"))
        least = self.reach / 2 / np.maximum(self.totals, self.reach / 2)[:, None]
        return Interval(low, np.maximum(high, least)).within(0.0, 1.0).around(shown)

    def ratio(self, place: int, above: Floats, below: Floats) -> Interval:
        """The ratio of two linear functions of the counts of one histogram, for each group."""
        pairs = ((above, above), (above, below), (below, below))
        variances = [self.reach**2 * self._inner(place, *pair) for pair in pairs]
        estimates = (self._estimate(place, above), self._estimate(place, below))
        return ratio_interval(*estimates, (variances[0], variances[1], variances[2]))

    def moments(
        self, place: int, middles: Floats, half_bin: float, means: Floats, spreads: Floats
    ) -> tuple[Interval, Interval]:
        """Mean and spread of records in bins with these middles; further bins are of missing values."""
        known = (np.arange(self.parts[place].shape[1]) < len(middles)).astype(np.float64)
        low, high = float(middles.min()), float(middles.max())
        found = []
        for group, about in enumerate(means):
            offsets = np.zeros_like(known)
            offsets[: len(middles)] = middles - about
            pair = (self.ratio(place, offsets, known), self.ratio(place, offsets**2, known))
            found.append([end[group] for interval in pair for end in interval])
        lows, highs, least, most = np.array(found).T
        of_means = Interval(means + lows, means + highs).within(low, high)
        away = np.maximum(means - of_means.low, of_means.high - means)
        widest = (high - low) / 2
        squares = Interval(least - away**2, most).within(0.0, widest**2)
        of_spreads = Interval(np.sqrt(squares.low), np.sqrt(squares.high)).around(spreads)
        return (
            of_means.around(means).widened(half_bin),
            of_spreads.widened(half_bin).within(0.0, widest + half_bin),
        )

    def _estimate(self, place: int, function: Floats) -> Floats:
        part = self.parts[place]
        found: Floats = part @ function + function.mean() * (self.totals - part.sum(axis=1))
        return found

    def _inner(self, place: int, first: Floats, second: Floats) -> float:
        """Covariance of two linear functions of one histogram, in variances of a count."""
        bins = self.parts[place].shape[1]
        return float(first @ second - first.mean() * second.mean() * (bins - 1 / self._weight))
