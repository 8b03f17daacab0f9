"""A number of clusters to start from: where the loss falls below that of one blob by most."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.data import Geometry
from core.postprocessing.kmeans import weighted_kmeans
from core.postprocessing.synopsis.partitions import Cloud

#: Blobs that are drawn, and made-up rows in each.
_BLOBS, _BLOB_ROWS = 2, 3000
#: The first k whose gap is this close to the largest is suggested.
_TOLERANCE = 0.03
#: Where no gap exceeds that of one cluster by this, there is nothing to split.
_LEAST_GAIN = 0.05
#: Of tables each further cluster must gain more than records with a rare level do, which are small groups of
#: their own within a cluster: more than so many times the lower quartile of all gains, within limits.
_STEADY, _QUARTER = 2.0, 0.25
_LEAST_STEADY, _MOST_STEADY = 0.03, 0.08
#: Up to here every number is tried on a blob, then every second one; losses between them are interpolated.
_EVERY = 12


@dataclass(frozen=True)
class Suggestion:
    """A number of clusters, and why."""

    k: int
    reason: str


def suggest(cloud: Cloud, losses: Mapping[int, float], draw: np.random.Generator) -> Suggestion:
    """The gap statistic of the released picture against one Gaussian blob of the same covariance."""
    ks = sorted(losses)
    tried = [k for k in ks if k <= _EVERY or k % 2 == 0 or k in (ks[0], ks[-1])]
    blob = np.interp(ks, tried, _blob_losses(cloud, tried, draw))
    gaps = {k: float(level) - math.log(max(losses[k], 1e-9)) for k, level in zip(ks, blob, strict=True)}
    top = max(gaps.values())
    if top - gaps[ks[0]] < _LEAST_GAIN:
        return Suggestion(
            ks[0], f"k = {ks[0]}: more clusters fit these records no better than they would fit a single blob"
        )
    best = first_near_top(gaps, steady_gain(gaps) if isinstance(cloud.model.cells.domain, Geometry) else 0.0)
    lower = 100 * (1 - math.exp(gaps[ks[0]] - gaps[best]))
    reason = (
        f"k = {best}: compared with a single blob of the same shape, the loss is {lower:.0f}% lower than at "
        f"k = {ks[0]}, and no larger k gains another {100 * _TOLERANCE:.0f}%"
    )
    return Suggestion(best, reason)


def first_near_top(gaps: Mapping[int, float], each: float) -> int:
    """The first k from which no larger one gains more than the tolerance, and `each` for every cluster."""
    ks = sorted(gaps)
    return next(
        k
        for k in ks
        if all(gaps[more] - gaps[k] <= _TOLERANCE + each * (more - k) for more in ks if more > k)
    )


def steady_gain(gaps: Mapping[int, float]) -> float:
    """What a further cluster of a table gains once all clusters are found: rare levels split off."""
    gains = np.diff([gaps[k] for k in sorted(gaps)])
    return float(np.clip(_STEADY * np.quantile(gains, _QUARTER), _LEAST_STEADY, _MOST_STEADY))


def _blob_losses(cloud: Cloud, ks: list[int], draw: np.random.Generator) -> Floats:
    """Logarithms of the loss of k clusters in rows without clusters, averaged over blobs."""
    rows = cloud.flat[:_BLOB_ROWS]
    covariance = np.atleast_2d(np.cov(rows.T))
    variances, axes = np.linalg.eigh(covariance)
    deviations = np.sqrt(np.maximum(variances, 0.0))
    logs = np.zeros(len(ks))
    for _ in range(_BLOBS):
        blob = rows.mean(axis=0) + (draw.normal(size=rows.shape) * deviations) @ axes.T
        for place, k in enumerate(ks):
            centres = weighted_kmeans(blob, np.ones(len(blob)), k, draw, restarts=1)
            squared = (centres**2).sum(axis=1) - 2 * blob @ centres.T
            loss = float((squared.min(axis=1) + (blob**2).sum(axis=1)).mean())
            logs[place] += math.log(max(loss + cloud.beside, 1e-9)) / _BLOBS
    return logs
