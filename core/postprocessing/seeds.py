"""Seeds between a released coreset and k centres: padding, reseeding of idle ones, and merging."""

import math
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.kernels.clipping import into_ball
from core.postprocessing.kmeans import nearest_points, weighted_kmeans

_NO_WEIGHT = 1e-3  # Weight of a padding point, which represents no record.
#: Halves of a split cluster start this far from its middle, in root mean squared distances of its records.
_SPLIT = 0.5


@dataclass(frozen=True, eq=False)
class Coreset:
    """Released points with released weights."""

    points: Floats
    weights: Floats


def padded(coreset: Coreset, least: int, deviations: Floats, draw: np.random.Generator) -> Coreset:
    """The coreset, padded with random points of negligible weight where it has too few."""
    missing = max(0, least - len(coreset.points))
    extra = into_ball(draw.normal(size=(missing, len(deviations))) * np.maximum(0.7 * deviations, 1.0))
    return Coreset(
        np.concatenate([coreset.points, extra]),
        np.concatenate([coreset.weights, np.full(missing, _NO_WEIGHT)]),
    )


def handed_over(coreset: Coreset, points: Floats, axes: int) -> Coreset:
    """The coreset with its weights handed over to points at which records are known to lie.

    Points share the weight of the nearest point of the coreset along its first `axes` axes, which are all
    that it was grown in. What has no point nearby keeps its place and its weight.
    """
    owner = nearest_points(points[:, :axes], coreset.points[:, :axes])
    shared = np.bincount(owner, minlength=len(coreset.points))
    alone = shared == 0
    return Coreset(
        np.concatenate([points, coreset.points[alone]]),
        np.concatenate([coreset.weights[owner] / shared[owner], coreset.weights[alone]]),
    )


def reseeded(
    centres: Floats,
    weights: Floats,
    spreads: Floats,
    coreset: Coreset,
    deviations: Floats,
    draw: np.random.Generator,
) -> Floats:
    """Centres, of which those without weight are moved to split the widest clusters."""
    centres, weights = centres.copy(), weights.copy()
    cost = weights * spreads
    owner = nearest_points(coreset.points, centres)
    for idle in np.flatnonzero(weights == 0):
        wide = int(cost.argmax())
        if cost[wide] <= 0:
            break
        own = np.flatnonzero((owner == wide) & (coreset.weights > 0))
        apart = _longest_way(coreset.points[own], coreset.weights[own], deviations, draw)
        apart = apart * (_SPLIT * math.sqrt(spreads[wide]))
        centres[idle], centres[wide] = centres[wide] + apart, centres[wide] - apart
        cost[wide] /= 4
        weights[idle] = weights[wide] = weights[wide] / 2
    return into_ball(centres)


def _longest_way(points: Floats, weights: Floats, deviations: Floats, draw: np.random.Generator) -> Floats:
    """The unit vector along which these points separate best; a random one if they do not."""
    apart = np.zeros(len(deviations))
    if len(points) >= 2:
        pair = weighted_kmeans(points, weights, 2, draw, restarts=3)
        apart = pair[0] - pair[-1]
    if not apart.any():
        apart = draw.normal(size=len(deviations)) * np.maximum(deviations, 1.0)
    way: Floats = apart / np.linalg.norm(apart)
    return way


def merged(centres: Floats, weights: Floats, k: int, draw: np.random.Generator) -> Floats:
    """At most k centres that stand for all those with weight."""
    if len(centres) <= k:
        return centres
    alive = np.flatnonzero(weights > 0)
    if len(alive) > k:
        return weighted_kmeans(centres[alive], weights[alive], k, draw, restarts=20)
    return centres[np.argsort(-weights, kind="stable")[:k]]


def exactly(centres: Floats, k: int) -> Floats:
    """k centres: where fewer were found, the first ones again (a tie, which the first of them wins)."""
    copies = centres[np.arange(k - len(centres)) % len(centres)]
    return np.concatenate([centres, copies])
