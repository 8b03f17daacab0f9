"""Noisy counts made consistent: nothing negative, parts that add up to their wholes.

All of it is computed from released values and costs nothing.
"""

from collections.abc import Sequence

import numpy as np

from core.arrays import Floats
from core.kernels.clipping import onto_simplex


def pooled_totals(histograms: Sequence[Floats]) -> Floats:
    """The best estimate of each row's total, at least zero, from histograms that count the same records.

    All entries have noise of the same variance, so the sum of a histogram of b bins weighs 1/b.
    """
    sums = np.stack([histogram.sum(axis=1) for histogram in histograms])
    weights = np.array([1 / histogram.shape[1] for histogram in histograms])
    pooled: Floats = np.maximum(weights @ sums / weights.sum(), 0.0)
    return pooled


def nearest_counts(counts: Floats, totals: Floats) -> Floats:
    """The nearest rows of counts that are at least zero and add up to these totals."""
    return onto_simplex(counts, totals)


def consistent_tree(levels: Sequence[Floats], parents: Sequence[np.ndarray]) -> Floats:
    """Counts of the leaves of a tree, at least zero, from noisy counts of the nodes on all of its levels.

    `levels` are from the top down, `parents[l]` holds for each node of level l + 1 its parent on level l. All
    counts have noise of the same variance. Least squares first, from the leaves up, where a node's own count
    is weighed against the sum of its children; then from the top down the nearest counts that are at least
    zero and add up to what is above them.
    """
    estimates, variances = [levels[-1]], [np.ones(len(levels[-1]))]
    for own, parent in zip(reversed(levels[:-1]), reversed(parents), strict=True):
        below = np.bincount(parent, estimates[0], minlength=len(own))
        spread = np.bincount(parent, variances[0], minlength=len(own))
        estimates.insert(0, (own * spread + below) / (1 + spread))
        variances.insert(0, spread / (1 + spread))
    total = np.maximum(estimates[0].sum(), 0.0)
    settled: Floats = nearest_counts(estimates[0][None, :], np.array([total]))[0]
    for level, parent in enumerate(parents):
        children, width = estimates[level + 1], np.bincount(parent).max()
        # Nodes of one parent are neighbours: one row for each parent, with places that no child takes.
        place = np.arange(len(parent)) - np.searchsorted(parent, parent)
        rows = np.full((len(settled), width), -1e300)
        rows[parent, place] = children
        settled = nearest_counts(rows, settled)[parent, place]
    return settled


def place_of_rank(counts: Floats, rank: float) -> float:
    """Position at which this share of all counts is reached, in bins and a fraction of the next one."""
    cumulated = np.cumsum(counts)
    if not cumulated[-1] > 0:
        return rank * len(counts)  # nothing is known: as if all bins were alike
    wanted = rank * cumulated[-1]
    bin_ = min(int(np.searchsorted(cumulated, wanted, side="left")), len(counts) - 1)
    before = float(cumulated[bin_] - counts[bin_])
    part = (wanted - before) / float(counts[bin_]) if counts[bin_] > 0 else 0.5
    return bin_ + float(np.clip(part, 0.0, 1.0))


def rand_index(table: Floats) -> float | None:
    """The adjusted Rand index of two clusterings from counts of records in both: 1 where they agree."""

    def pairs(counts: Floats) -> float:
        return float((counts * (counts - 1) / 2).clip(min=0).sum())

    rows, columns, everyone = table.sum(axis=1), table.sum(axis=0), table.sum()
    possible = pairs(np.array([everyone]))
    if not possible > 0:
        return None
    expected = pairs(rows) * pairs(columns) / possible
    most = (pairs(rows) + pairs(columns)) / 2
    return None if most <= expected else min(1.0, (pairs(table) - expected) / (most - expected))
