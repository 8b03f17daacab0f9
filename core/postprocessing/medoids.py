"""Weighted k-medoids (k of some public sites) and k-medians (any k points) on released counts."""

import numpy as np

from core.arrays import Floats, Integers
from core.postprocessing.kmeans import nearest_points, weighted_kmeans

MOST_SWAPS = 200  # Limit on the number of swaps; most searches converge earlier.
MEDIAN_STEPS = 50  # Steps of Weiszfeld's algorithm.


def weighted_medoids(costs: Floats, weights: Floats, k: int) -> Integers:
    """k different columns of `costs` (one row for each weighted point) of low total cost; ties to the lowest.

    Columns are added one by one, the best each time; then swaps are made as long as the best one helps.
    """
    chosen = _greedily(costs, weights, k)
    for _ in range(MOST_SWAPS):
        out, comes, saved = _best_swap(costs, weights, chosen)
        if saved <= 1e-9 * float(weights @ costs[:, chosen].min(axis=1)):
            break
        chosen[out] = comes
    return np.sort(np.array(chosen, dtype=np.int64))


def _greedily(costs: Floats, weights: Floats, k: int) -> list[int]:
    chosen: list[int] = []
    nearest = np.full(len(costs), np.inf)
    for _ in range(k):
        totals = weights @ np.minimum(costs, nearest[:, None])
        totals[chosen] = np.inf
        chosen.append(int(totals.argmin()))
        nearest = np.minimum(nearest, costs[:, chosen[-1]])
    return chosen


def _best_swap(costs: Floats, weights: Floats, chosen: list[int]) -> tuple[int, int, float]:
    """The chosen column to give up, the column to take instead, and the cost saved."""
    mine = costs[:, chosen]
    label = mine.argmin(axis=1)
    first = mine.min(axis=1)
    second = np.full(len(costs), np.inf)
    if len(chosen) > 1:
        second = np.partition(mine, 1, axis=1)[:, 1]
    kept = np.minimum(costs, first[:, None])
    # Points whose nearest centre is replaced go to the new centre or to their second nearest.
    moved = np.minimum(costs, second[:, None]) - kept
    owner = np.zeros((len(chosen), len(costs)))
    owner[label, np.arange(len(costs))] = weights
    totals = weights @ kept + owner @ moved
    totals[:, chosen] = np.inf
    out, comes = divmod(int(totals.argmin()), costs.shape[1])
    return out, comes, float(weights @ first - totals[out, comes])


def weighted_medians(points: Floats, weights: Floats, k: int, draw: np.random.Generator) -> Floats:
    """k medians of weighted points (all, if no more than k): Weiszfeld's steps from k-means centres."""
    centres = weighted_kmeans(points, weights, k, draw)
    shortest = 1e-3 * max(float(np.abs(points).max()), 1.0)
    for _ in range(MEDIAN_STEPS):
        label = nearest_points(points, centres)
        away = np.linalg.norm(points - centres[label], axis=1)
        pull = weights / np.maximum(away, shortest)
        mass = np.bincount(label, pull, minlength=len(centres))
        sums = np.stack(
            [np.bincount(label, pull * column, minlength=len(centres)) for column in points.T], axis=1
        )
        centres = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1e-300)[:, None], centres)
    return centres
