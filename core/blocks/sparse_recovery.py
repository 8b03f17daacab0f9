"""Sparse recovery (Balcan et al. 2017, Algorithm 5): few columns chosen privately, and noisy means there.

Rows are cut to their largest entries, each of bounded size, so a record changes few column sums by little.
"""

from __future__ import annotations

import math

import numpy as np

from core.arrays import Floats
from core.mechanisms import GaussianNoise, LaplaceNoise, TopChoice, additive_noise
from core.plan import Step
from core.privacy import Pure, Split
from core.probe import Probe
from core.statistics import ClusterCounts, EntrySums, PickedSums
from core.views import Assigned, TopEntries

#: Shares of a recovery: choosing columns, their sums, sizes.
_SELECT, _VALUES, _SIZES = 0.6, 0.3, 0.1


#: A column should be found if a cluster's records reach this share of its largest sum.
_TELLING = 0.25


def affordable_picks(
    split: Split, fraction: float, size: int, k: int, width: int, entries: int, eta: float
) -> int:
    """How many columns to pick: 2s/eta, but no more than can be told from noise, judged from public numbers.

    A column that every fourth record of a cluster has, at full size, should outweigh all empty columns.
    """
    printed = math.ceil(2 * entries / eta)
    amount = split.part(fraction * _SELECT)
    records = _TELLING * size / k / math.log(max(width, 2))
    telling = amount * records / 2 if split.budget.is_pure else 2 * amount * records**2
    return max(1, min(printed, width, int(min(telling, 1e9))))


def sparse_steps(split: Split, fraction: float, picks: int, rounds: int) -> tuple[Step, ...]:
    """The planned measurements of `rounds` recoveries, which together spend this fraction of the budget."""
    values, sizes = split.noise(fraction * _VALUES, rounds), split.noise(fraction * _SIZES, rounds)
    select = TopChoice(split.part(fraction * _SELECT, rounds), picks, not split.budget.is_pure)
    noise = LaplaceNoise(values.epsilon) if isinstance(values, Pure) else GaussianNoise(values.mu)
    return (
        Step("columns", select, EntrySums.kind, rounds, "in which columns each cluster's mean is large"),
        Step("values", noise, PickedSums.kind, rounds, "the sums in those columns"),
        Step("sizes", additive_noise(sizes), ClusterCounts.kind, rounds, "how many records each cluster has"),
    )


def recover_sparse(probe: Probe, assigned: Assigned, rows: TopEntries) -> tuple[Floats, Floats]:
    """Sparse means of each cluster in encoded units, and noisy sizes."""
    picks = probe.measure("columns", EntrySums(assigned, rows))
    values = probe.measure("values", PickedSums(assigned, rows, picks))
    sizes = probe.measure("sizes", ClusterCounts(assigned))
    means = np.clip(values / np.maximum(sizes, 1)[:, None], -rows.largest, rows.largest)
    centres = np.zeros((len(picks), rows.width))
    np.put_along_axis(centres, picks, means, axis=1)
    return centres, np.maximum(sizes, 0).astype(np.float64)
