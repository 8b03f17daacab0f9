"""Candidates from locality-sensitive hashing: the noisy means of buckets that hold many records.

After Kaplan and Stemmer (2018): hash every record, keep the buckets whose noisy count is high, release the
average of each. The hash is a random rotation and a random shift of a grid; constants are derived in
`core/buckets.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from core.arrays import Integers
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms import GaussianNoise, threshold
from core.plan import Step
from core.privacy import Gaussian
from core.probe import Probe
from core.statistics import BucketCounts, BucketSums, bucket_means
from core.views import Buckets, Projected, RowView

#: How many buckets without records pass for full ones, in all tables together, on average.
_FALSE_BUCKETS = 1.0
#: The part of the budget that finds full buckets; the rest averages them.
_FINDING = 0.5


def hashing_steps(widths: Sequence[int], mu: float, dimension: int, radius: int) -> tuple[Step, ...]:
    """Steps that together spend mu: one table for each width of buckets.

    A bucket is kept above what noise alone exceeds in few of all the buckets there are.
    """
    tables, finest = len(widths), min(widths)
    find = Gaussian(mu * math.sqrt(_FINDING / tables))
    average = GaussianNoise(mu * math.sqrt((1 - _FINDING) / tables))
    log_buckets = dimension * math.log(2 * -(-(radius + finest) // finest) + 1)
    tail = math.exp(math.log(_FALSE_BUCKETS / tables) - log_buckets)
    limit = math.ceil(-float(ndtri(tail)) / find.mu)
    return (
        Step("buckets", threshold(find, limit), BucketCounts.kind, tables, "buckets with many records"),
        Step("bucket-means", average, BucketSums.kind, tables, "the mean of each of them"),
    )


def hashed_candidates(
    probe: Probe, rows: RowView, widths: Sequence[int], draw: np.random.Generator, most: int
) -> Integers:
    """Means of the full buckets of all tables, in the units of the rows; at most `most` of each table."""
    found = [np.zeros((1, rows.width))]
    for width in widths:
        rotation = np.linalg.qr(draw.normal(size=(rows.width, rows.width)))[0]
        turned = Projected(rows, np.rint(rotation * WEIGHT_ONE).astype(np.int64), rows.radius)
        view = Buckets(turned, draw.integers(0, width, size=rows.width), width)
        listed = probe.measure("buckets", BucketCounts(view))
        if len(listed) > most:
            listed = np.sort(draw.choice(listed, most, replace=False))
        if len(listed):
            statistic = BucketSums(view, listed)
            found.append(bucket_means(statistic, probe.measure("bucket-means", statistic)) @ rotation.T)
    return np.rint(np.concatenate(found)).astype(np.int64)
