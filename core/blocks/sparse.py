"""Sparse recovery (Balcan et al. 2017, Algorithm 5): few columns chosen privately, and noisy means there.

Rows are cut to their largest entries, each of bounded size, so a record changes few column sums by little.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from core.blocks.split import Split
from core.groups import EntrySums, PickedSums, TopEntries
from core.mechanisms import GaussianNoise, LaplaceNoise, TopChoice, additive_noise
from core.plan import Step
from core.privacy import Gaussian, Pure
from core.probe import Probe
from core.statistics import ClusterCounts
from core.views import Assigned

__all__ = ["affordable_picks", "recover_sparse", "sparse_steps"]

Floats = npt.NDArray[np.float64]

#: Shares of a recovery: choosing columns, their sums, sizes.
_SELECT, _VALUES, _SIZES = 0.6, 0.3, 0.1


def _selection_epsilon(split: Split, fraction: float, times: int) -> float:
    """The epsilon of a choice of several columns, whose range is not bounded as a single choice's is."""
    loss = split.noise(fraction * _SELECT, times)
    return loss.mu if isinstance(loss, Gaussian) else loss.epsilon


def affordable_picks(
    split: Split, fraction: float, size: int, k: int, width: int, entries: int, eta: float
) -> int:
    """How many columns to pick: 2s/eta, but no more than can be told from noise, judged from public numbers.

    A column that every tenth record of a cluster has, at full size, should outweigh all empty columns.
    """
    printed = math.ceil(2 * entries / eta)
    epsilon = _selection_epsilon(split, fraction, 1)
    telling = epsilon * (size / k) / (10 * 2 * math.log(max(width, 2)))
    return max(1, min(printed, width, int(telling)))


def sparse_steps(split: Split, fraction: float, picks: int, rounds: int) -> tuple[Step, ...]:
    """The planned measurements of `rounds` recoveries, which together spend this fraction of the budget."""
    values, sizes = split.noise(fraction * _VALUES, rounds), split.noise(fraction * _SIZES, rounds)
    select = TopChoice(_selection_epsilon(split, fraction, rounds), picks)
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
