"""IBM's k-means, as a comparator; None where the package `diffprivlib` is not installed."""

from __future__ import annotations

import importlib
import importlib.util
import warnings

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Dataset

__all__ = ["k_means"]


def k_means(data: Dataset, k: int, epsilon: float) -> npt.NDArray[np.float64] | None:
    """Centres under pure epsilon, from the same public bounds; the package is no dependency."""
    if importlib.util.find_spec("diffprivlib") is None:
        return None
    models = importlib.import_module("diffprivlib.models")
    domain, width = data.domain, data.rows.shape[1]
    low = domain.low if domain.radius is None else np.full(width, -domain.radius)
    high = domain.high if domain.radius is None else np.full(width, domain.radius)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = models.KMeans(k, epsilon=epsilon, bounds=(np.array(low), np.array(high))).fit(data.rows)
    centres: npt.NDArray[np.float64] = found.cluster_centers_
    return centres
