"""Clusterings that Balcan et al. (2017) compare with and whose guarantees lean on the data: for figures only.

Neither is offered by the library. Sample-and-aggregate (Nissim et al. 2007) is private for any data but
useful only where small samples cluster alike. The noise of k-variates++ (Nock et al. 2016) is calibrated to
how far the rows themselves spread, which is not paid for.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from core.data import Dense

__all__ = ["k_variates", "sample_aggregate"]

Floats = npt.NDArray[np.float64]


def sample_aggregate(
    rows: Floats, domain: Dense, k: int, epsilon: float, delta: float, draw: np.random.Generator
) -> Floats:
    """k-means on sqrt(n) disjoint samples; the output in whose neighbourhood half of the others lie, noisy.

    Noise follows the smooth sensitivity of that radius: of the order of how far the samples disagree.
    """
    samples = math.isqrt(len(rows))
    parts = np.array_split(draw.permutation(len(rows)), samples)
    outputs = np.stack([_ordered(_plain(rows[part], k, draw)) for part in parts]).reshape(samples, -1)
    width = outputs.shape[1]
    distances = np.sort(np.linalg.norm(outputs[:, None] - outputs[None], axis=2), axis=1)
    half = (samples + 1) // 2
    middle = outputs[int(distances[:, half - 1].argmin())]
    beta = epsilon / (4 * (width + math.log(2 / delta)))
    alpha = epsilon / (5 * math.sqrt(2 * math.log(2 / delta)))
    further = np.arange(samples - half)
    radii = distances.min(axis=0)[half + further]
    smooth = max(
        float((2 * radii * np.exp(-beta * further)).max()), _diameter(domain) * math.exp(-beta * samples)
    )
    noisy = middle + draw.normal(size=width) * (smooth / alpha)
    return _inside(noisy.reshape(k, -1), domain)


def k_variates(rows: Floats, domain: Dense, k: int, epsilon: float, draw: np.random.Generator) -> Floats:
    """k-means++ whose every seed is a row with Laplace noise in all coordinates; rows are read k times.

    The scale is the diameter of the rows at hand over epsilon / (2 k): their spread is taken as if public.
    """
    spread = float(np.linalg.norm(rows.max(axis=0) - rows.min(axis=0)))
    scale = spread * math.sqrt(rows.shape[1]) * 2 * k / epsilon / math.sqrt(len(rows))
    centres = np.empty((k, rows.shape[1]))
    distance = np.ones(len(rows))
    for j in range(k):
        picked = rows[int(draw.choice(len(rows), p=distance / distance.sum()))]
        centres[j] = picked + draw.laplace(scale=scale, size=rows.shape[1])
        squared = ((rows - centres[j]) ** 2).sum(axis=1)
        distance = squared if j == 0 else np.minimum(distance, squared)
    return _inside(centres, domain)


def _plain(rows: Floats, k: int, draw: np.random.Generator) -> Floats:
    if len(rows) <= k:
        return np.resize(rows, (k, rows.shape[1]))
    found: Floats = KMeans(k, n_init=1, random_state=int(draw.integers(1 << 31))).fit(rows).cluster_centers_
    return found


def _ordered(centres: Floats) -> Floats:
    """Centres by their first coordinate, so that those of different samples can be told apart alike."""
    return centres[np.argsort(centres[:, 0], kind="stable")]


def _diameter(domain: Dense) -> float:
    return 2.0 * float(np.linalg.norm(domain.unit_lengths())) * 32767 / math.sqrt(domain.dimension)


def _inside(centres: Floats, domain: Dense) -> Floats:
    if domain.low is not None and domain.high is not None:
        return np.clip(centres, domain.low, domain.high)
    assert domain.radius is not None
    norms = np.linalg.norm(centres, axis=1, keepdims=True)
    inside: Floats = centres * np.minimum(1.0, domain.radius / norms)
    return inside
