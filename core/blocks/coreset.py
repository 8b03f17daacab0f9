"""Weighted k-means on released points: free, because it never sees rows."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

__all__ = ["nearest_points", "weighted_kmeans"]

Floats = npt.NDArray[np.float64]

#: Weights of at least this keep every point in play; released counts may be zero or negative.
_LEAST_WEIGHT = 1e-9


def weighted_kmeans(
    points: Floats, weights: Floats, k: int, draw: np.random.Generator, restarts: int = 10
) -> Floats:
    """k centres of weighted points, or the points themselves where there are no more than k.

    One thread: the sums of several threads depend on their order, and a release must not.
    """
    seed = int(draw.integers(1 << 31))
    distinct, owner = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) <= k:
        return distinct
    merged = np.bincount(owner.reshape(-1), np.maximum(weights, _LEAST_WEIGHT))
    solver = KMeans(k, n_init=restarts, random_state=seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        # Points so close that two centres coincide are odd data, not an error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found: Floats = solver.fit(distinct, sample_weight=merged).cluster_centers_
    return found


def nearest_points(points: Floats, centres: Floats) -> npt.NDArray[np.int64]:
    """For each released point the index of its nearest centre."""
    scores = (centres * centres).sum(axis=1) - 2.0 * points @ centres.T
    nearest: npt.NDArray[np.int64] = scores.argmin(axis=1)
    return nearest
