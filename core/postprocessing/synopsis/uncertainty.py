"""Error bounds of released sizes and centres: noise, what clipping cut off, and what noise hides."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data import UNITS, Dense, Geometry
from core.postprocessing.synopsis.losses import MeanSquare, overshoots
from core.postprocessing.synopsis.partitions import Cloud, CloudPartition

_NORMAL_95 = 1.96
#: Where a border cuts a fine cluster, the shares that made-up rows put on its sides, p and 1 - p, are off by
#: this part of sqrt(p (1 - p)): small ones by more than themselves.
_CUT_SHARE = 0.4
#: Records on the wrong side of a border lie anywhere in their fine cluster, and those on the right side not
#: where made-up rows put them: this many times the variance of the former.
_STREWN = 3.0
#: Records that may lie unseen at the far end of a cell under heavy tails, in standard deviations of a bin.
_UNSEEN_HEAVY = 2.0
_UNSEEN_LIGHT = 0.25  # The same under light tails, no farther out than records are seen.
_FALSE_ALARM = 0.01  # Chance that noise alone makes some cluster look real.


@dataclass(frozen=True, eq=False)
class Bars:
    """Nominal 95% intervals of the number and of the mean of the records nearest to each centre."""

    sizes: Floats
    size_low: Floats
    size_high: Floats
    centre_low: Floats
    centre_high: Floats
    #: Whether there are more records than noise alone would show.
    real: npt.NDArray[np.bool_]


def bars(cloud: Cloud, partition: CloudPartition, fine: MeanSquare) -> Bars:
    """Intervals for one number of clusters, in encoded units."""
    cells, parts = cloud.model.cells, partition.parts
    taken = parts * cloud.model.sizes
    sizes = taken.sum(axis=1)
    noise = np.sqrt((parts**2).sum(axis=1)) * cells.size_error
    cut = np.sqrt((_misplaced(cloud, partition) ** 2).sum(axis=1))
    half = _NORMAL_95 * np.hypot(noise, cut)
    whole = _kept_whole(partition) @ cloud.model.sizes
    chance = _FALSE_ALARM / len(sizes)
    alone = cells.distances.noise.beyond(chance) / cells.distances.noise.deviation
    low, high = _centre_bars(cloud, partition, fine)
    return Bars(
        sizes,
        np.maximum(np.minimum(sizes, whole) - half, 0.0),
        np.maximum(sizes, whole) + half,
        low,
        high,
        sizes > alone * noise,
    )


def _misplaced(cloud: Cloud, partition: CloudPartition) -> Floats:
    """For each cluster and fine cluster the standard deviation of the records that borders put on a side."""
    parts = partition.parts
    misplaced: Floats = _CUT_SHARE * np.sqrt(parts * (1 - parts)) * cloud.model.sizes
    return misplaced


def _kept_whole(partition: CloudPartition) -> Floats:
    """[i, j] is one where most of fine cluster j goes to cluster i.

    Made-up borders that cut many fine clusters err on one side of all of them: rows are made up around a
    single middle each, where records may leave a gap. So intervals hold both answers, with and without cuts.
    """
    most: Floats = np.equal.outer(np.arange(len(partition.centres)), partition.parts.argmax(axis=0)) * 1.0
    return most


def _centre_bars(cloud: Cloud, partition: CloudPartition, fine: MeanSquare) -> tuple[Floats, Floats]:
    """Noise in moves and sizes of fine clusters, clipping, misplaced borders, and unseen records."""
    cells, centres, parts = cloud.model.cells, partition.centres, partition.parts
    taken = parts * cloud.model.sizes
    sizes = np.maximum(taken.sum(axis=1), cells.size_error)
    mix = taken / sizes[:, None]
    by_column = cells.axes**2 @ cloud.model.along + cloud.model.across
    by_column = by_column / by_column.sum()
    # A fine cluster with more or fewer records than was measured pulls the mean towards it, or less so.
    misplaced = _misplaced(cloud, partition)
    pull = (np.hypot(parts * cells.size_error, misplaced) / sizes[:, None]) ** 2
    apart = pull @ cells.centres**2 - 2 * centres * (pull @ cells.centres)
    apart += centres**2 * pull.sum(axis=1, keepdims=True)
    squared = cloud.model.shares @ cells.distances.lengths**2
    strewn = _STREWN * ((misplaced / sizes[:, None]) ** 2 @ squared)[:, None] * by_column
    noise = np.sqrt((mix**2 @ cells.errors**2)[:, None] + np.maximum(apart, 0.0) + strewn)
    clipped = (mix @ overshoots(cloud))[:, None] * np.sqrt(by_column)
    half = _NORMAL_95 * np.hypot(noise, clipped)
    hidden = min(cells.distances.noise.deviation, 2 * cells.pooled.noise.deviation)
    hidden *= _UNSEEN_HEAVY if fine.heavy_tailed else _UNSEEN_LIGHT
    share = np.minimum(hidden / sizes, 1.0)[:, None]
    farthest = np.inf if fine.heavy_tailed else fine.reach
    down, up = (np.minimum(room, farthest) for room in _room(cloud, centres))
    whole = _kept_whole(partition) * cloud.model.sizes
    weights = whole.sum(axis=1, keepdims=True)
    kept = np.where(weights > 0, whole @ cells.centres / np.maximum(weights, 1e-9), centres)
    low, high = np.minimum(centres, kept) - half, np.maximum(centres, kept) + half
    return low - share * down, high + share * up


def _room(cloud: Cloud, centres: Floats) -> tuple[Floats, Floats]:
    """Extent of each cluster's cell below and above its centre along each column."""
    domain = cloud.model.cells.domain
    bounds = domain.bounds_units if isinstance(domain, Dense | Geometry) else None
    low, high = (-UNITS, UNITS) if bounds is None else bounds
    gaps = centres[None, :, :] - centres[:, None, :]
    halves = (gaps**2).sum(axis=2, keepdims=True) / 2
    borders = np.divide(halves, gaps, out=np.full(gaps.shape, np.inf), where=gaps != 0)
    up = np.where(gaps > 0, borders, np.inf).min(axis=1)
    down = np.where(gaps < 0, -borders, np.inf).min(axis=1)
    return np.minimum(down, np.maximum(centres - low, 0.0)), np.minimum(up, np.maximum(high - centres, 0.0))
