"""Weighted k-medoids on released counts: k of some public sites, by greedy choice and swaps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["weighted_medoids"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Swaps end the search sooner as a rule; each of them lowers the cost.
MOST_SWAPS = 200


def weighted_medoids(costs: Floats, weights: Floats, k: int) -> Integers:
    """k different columns of `costs` (one row for each weighted point) of low total cost.

    Columns are added one by one, the best each time; then the best swap of one of them for another column is
    made as long as it helps. Ties go to the lowest index.
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
    """Which of the chosen to give up, for which column, and what that saves."""
    mine = costs[:, chosen]
    label = mine.argmin(axis=1)
    first = mine.min(axis=1)
    second = np.full(len(costs), np.inf)
    if len(chosen) > 1:
        second = np.partition(mine, 1, axis=1)[:, 1]
    kept = np.minimum(costs, first[:, None])
    # Points that lose their nearest go to the newcomer or to their second nearest.
    moved = np.minimum(costs, second[:, None]) - kept
    owner = np.zeros((len(chosen), len(costs)))
    owner[label, np.arange(len(costs))] = weights
    totals = weights @ kept + owner @ moved
    totals[:, chosen] = np.inf
    out, comes = divmod(int(totals.argmin()), costs.shape[1])
    return out, comes, float(weights @ first - totals[out, comes])
