"""The loss for each number of clusters, estimated from released values alone, with an interval."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.postprocessing.kmeans import nearest_points
from core.postprocessing.spread import DistanceHistogram, trimmed_shares
from core.postprocessing.synopsis.lloyd import LloydRows
from core.postprocessing.synopsis.partitions import LLOYD_ROUNDS, Cloud, CloudPartition

#: Bins are added up as measured, noise included, as long as the noise stays below this share of the loss;
#: beyond that only where records stand out.
_NOISE_SHARE = 0.02
#: Under heavy tails, distances are added up as long as noise stays below this share of the loss so far.
_MOST_NOISE = 0.08
_UNSEEN_NOISES = 3.0  # Records that may lie unseen farther out, in standard deviations of a bin.
_UNSEEN_BINS = 5  # Bins by which they may lie farther out.
#: Records that may lie unseen beyond the last bin under heavy tails, in standard deviations of a bin.
_BEYOND_NOISES = 2.0
_MODEL_SHARE = 0.01  # Error of made-up rows, which are a model, as a share of the loss.
_CUT_SHARE = 0.25  # Their error as a share of what they say is gained by cutting fine clusters.
#: The share of all gains from cutting that only the model has: this many times what it gains where there is
#: nothing to gain, over the largest gain for any number of clusters.
_SPURIOUS = 1.25
_CLIPPED_SHARE = 0.5  # The share of the overshoot by which a clipped mean may be off.
_NORMAL_95 = 1.96
#: Cells with fewer records than this many standard deviations count as large as they are believed to be.
_TOLD = 2.0
_OUTER = 0.1  # Share of the records that lie farthest out, by which heavy tails are told.
_FAR = 2.0  # Records far out lie this many times as far as the outer ones begin.
_HEAVY = 0.05  # Tails are heavy where this share of the outer records is far out,
_MOST_UNSEEN = 0.5  # or where unseen records may change the loss by this share.


@dataclass(frozen=True)
class LossEstimate:
    """A number with a nominal 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MeanSquare:
    """The mean squared distance in a noisy histogram, of the records within `reach`."""

    value: float
    error: float
    reach: float
    #: What records that noise hides may add.
    unseen: float
    #: As many records may lie beyond `reach`, if noise hides twice its standard deviation of them.
    beyond: float
    #: Whether distances thin out so slowly that what lies beyond `reach` may matter.
    heavy_tailed: bool

    @classmethod
    def of(cls, found: DistanceHistogram, total: float) -> Self:
        squares, bins = found.lengths**2, len(found.edges)
        shares = trimmed_shares(found.counts, found.noise)
        noise = found.noise.deviation * np.sqrt((squares**2).cumsum()) / total
        told = int(np.flatnonzero(shares)[-1]) + 2
        quiet = int((noise <= _NOISE_SHARE * float(shares @ squares)).sum()) - 1
        last = min(max(told, quiet), bins - 2)  # the last bin has no end: what lies in it is not measured
        within = (found.counts * squares).cumsum() / np.maximum(found.counts.cumsum(), 1.0)
        far = found.edges[np.minimum(np.arange(bins) + _UNSEEN_BINS, bins - 1)].astype(np.float64) ** 2
        unseen = _UNSEEN_NOISES * found.noise.deviation * far / total
        hidden = bool(unseen[last] > _MOST_UNSEEN * max(within[last], 1e-9))
        heavy = hidden or _heavy_tailed(found, shares, total)
        if heavy:  # less far, but known better
            known = np.flatnonzero(noise[: last + 1] <= _MOST_NOISE * within[: last + 1])
            last = int(known[-1]) if len(known) else last
        value, rest = float(within[last]), found.counts[last + 1 :]
        beyond = max(float(rest.sum()), 0.0) + _BEYOND_NOISES * found.noise.deviation * math.sqrt(len(rest))
        return cls(
            max(value, 0.0), float(noise[last]), float(found.edges[last]), float(unseen[last]), beyond, heavy
        )


@dataclass(frozen=True, eq=False)
class Losses:
    """Mean squared distances to the nearest centre, in encoded units, for every number of clusters."""

    #: Of the fine anchors.
    fine: MeanSquare
    of: Mapping[int, LossEstimate]


def estimate_losses(cloud: Cloud, found: Mapping[int, CloudPartition]) -> Losses:
    """Losses of the partitions, of which one is of a single cluster: that one was also measured directly."""
    cells = cloud.model.cells
    fine = MeanSquare.of(cells.pooled, cells.total)
    away = np.linalg.norm(cloud.rows - cells.anchors[cloud.owners], axis=1)
    fewest = np.partition(away, len(cloud.points) - 1)[len(cloud.points) - 1]
    seen = away <= max(fine.reach, fewest)  # at least as many as there are fine centres
    overshoot = overshoots(cloud)
    cuts = {k: _cutting_gain(cloud, seen, each) for k, each in found.items()}
    spurious = _SPURIOUS * _spurious_gain(cloud, seen) / max(max(cuts.values()), 1e-9)
    believed = 1 - min(spurious, 1.0)
    plain = {k: _estimate(cloud, fine, overshoot, believed * cuts[k], each) for k, each in found.items()}
    if fine.heavy_tailed:  # distances to the middle speak of other records than those within reach
        return Losses(fine, plain)
    around = MeanSquare.of(cells.around, cells.total)
    one, centre = plain[1], found[1].centres[0]
    direct = around.value - float(((centre - cells.middle) ** 2).sum())
    spread = max((one.high - one.low) / 4, 1e-9)
    weight = spread**2 / (spread**2 + max(around.error, 1e-9) ** 2)
    change = weight * (direct - one.value)
    between = max(one.value - fine.value, 1e-9)
    shares = {k: min(max((e.value - fine.value) / between, 0.0), 1.0) for k, e in plain.items()}
    return Losses(fine, {k: _shifted(e, change * shares[k]) for k, e in plain.items()})


def overshoots(cloud: Cloud) -> Floats:
    """For each fine cluster how far its records lie beyond the clipping radius, on average."""
    cells = cloud.model.cells
    beyond = np.maximum(cells.distances.lengths[None, :] - cells.radii[:, None], 0.0)
    mean: Floats = (cloud.model.shares * beyond).sum(axis=1)
    return mean


def _spurious_gain(cloud: Cloud, seen: npt.NDArray[np.bool_]) -> float:
    """Gain of Lloyd's algorithm on made-up rows from the fine centres, which were settled on the records.

    Made-up rows lie closer together within a cell than records do; so this gain is one of the model only.
    """
    rows = LloydRows(cloud.flat[seen])
    return max(rows.loss(cloud.points) - rows.loss(rows.settled(cloud.points, LLOYD_ROUNDS)), 0.0)


def _cutting_gain(cloud: Cloud, seen: npt.NDArray[np.bool_], found: CloudPartition) -> float:
    """What made-up rows gain if each goes to its nearest centre, and not with its whole fine cluster."""
    whole = nearest_points(cloud.model.cells.anchors, found.centres)[cloud.owners]
    cut = np.flatnonzero(seen & (whole != found.labels))
    away = cloud.rows[cut] - found.centres[whole[cut]]
    gain = np.einsum("ij,ij->i", away, away) - found.squared[cut]
    return float(gain.sum()) / np.count_nonzero(seen)


def _estimate(
    cloud: Cloud, fine: MeanSquare, overshoot: Floats, cut: float, partition: CloudPartition
) -> LossEstimate:
    """Fine clusters kept whole, exactly as measured, less what is gained by cutting them.

    About another centre c the mean square of a cell grows by |a - c|^2 + 2 move.(a - c), a being its anchor.
    Moves are taken as they were measured, and so are sizes unless noise alone explains them: cleaned ones
    would bias the sum, but an empty cell far out would swing it.
    """
    cells, centres = cloud.model.cells, partition.centres
    told = cells.sizes > _TOLD * cells.size_error
    shares = np.where(told, cells.sizes, cloud.model.sizes) / cells.total
    apart = _squared(cells.anchors, centres)
    cross = (cells.moves * cells.anchors).sum(axis=1)[:, None] - cells.moves @ centres.T
    own = apart.argmin(axis=1)
    pick = np.arange(len(own)), own
    whole = fine.value + float(shares @ (apart[pick] + 2 * cross[pick]))
    value = max(whole - cut, 0.2 * fine.value)
    moved = apart[pick]
    variance = fine.error**2
    variance += float(((moved - shares @ moved) ** 2).sum()) * (cells.size_error / cells.total) ** 2
    variance += float((4 * shares**2 * moved * cells.errors**2).sum())
    half = _NORMAL_95 * math.sqrt(variance) + _MODEL_SHARE * value + _CUT_SHARE * cut
    clipped = _CLIPPED_SHARE * float(np.maximum(shares, 0.0) @ (overshoot * np.sqrt(moved)))
    high = value + half + fine.unseen + clipped
    if fine.heavy_tailed:  # records beyond reach are in the sizes of cells, but not in what is estimated
        half += fine.beyond / cells.total * float(moved.max())
    return LossEstimate(value, max(value - half, 0.0), high)


def _shifted(found: LossEstimate, change: float) -> LossEstimate:
    """The estimate after a correction, of which the interval believes half where that makes it wider."""
    up, down = max(change, 0.0), min(change, 0.0)
    low = max(found.low + down + 0.5 * up, 0.0)
    return LossEstimate(max(found.value + change, 0.0), low, found.high + up + 0.5 * down)


def _squared(points: Floats, centres: Floats) -> Floats:
    products = points @ centres.T
    found: Floats = (points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * products
    return np.maximum(found, 0.0)


def _heavy_tailed(found: DistanceHistogram, shares: Floats, total: float) -> bool:
    """True when more records lie far beyond the others than light tails, or noise, would put there."""
    outer = int(np.argmax(shares.cumsum() >= 1 - _OUTER))
    beyond = found.edges > _FAR * found.edges[outer]
    noise = 2 * found.noise.deviation * math.sqrt(float(beyond.sum())) / total
    return float(shares[beyond].sum()) > max(_HEAVY * _OUTER, noise)
