"""How much likelier a release is on one neighbour than on the other, under the declared law of its mechanism.

The attacker knows both datasets and sees what was released. Where code keeps its word, the log-likelihood
ratio is the best score there is (Neyman and Pearson). Where it does not, any score is still valid, and a
second one catches what the declared law overlooks: entries that equal the exact value of one neighbour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from core.kernels.sparse_counts import SparseCounts
from core.mechanisms.base import Mechanism
from core.mechanisms.choice import Choice, TopChoice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.mechanisms.threshold import Threshold
from core.privacy.sensitivity import Sensitivity

__all__ = ["additive_ratios", "exact_match", "log_named", "log_ratio", "log_sum"]

Floats = npt.NDArray[np.float64]


def log_ratio(
    mechanism: Mechanism, released: Any, with_it: Any, without: Any, sensitivity: Sensitivity
) -> float:
    """log P[released | with_it] / P[released | without]."""
    match mechanism:
        case GaussianNoise() | LaplaceNoise() | L2Noise():
            return float(additive_ratios(mechanism, released, with_it, without, sensitivity).sum())
        case Choice() | TopChoice():
            return _log_chance(mechanism, released, with_it, sensitivity) - _log_chance(
                mechanism, released, without, sensitivity
            )
        case Threshold():
            return _of_threshold(mechanism, released, with_it, without)
    raise NotImplementedError(f"no score for {mechanism.kind}")


def additive_ratios(
    mechanism: GaussianNoise | LaplaceNoise | L2Noise,
    released: Any,
    with_it: Any,
    without: Any,
    sensitivity: Sensitivity,
) -> Floats:
    """The same for additive noise, apart for each independent part: an entry, or a row of L2 noise."""
    # Differences of totals first: they are small, while totals and noise may fill 63 bits.
    moved = (with_it - without).astype(np.float64)
    away = (released - without).astype(np.float64)
    match mechanism:
        case GaussianNoise(mu):
            scale = sensitivity.scales * (sensitivity.l2 / mu)
            ratios: Floats = moved * (away - moved / 2) / scale**2
            return ratios
        case LaplaceNoise(epsilon):
            scale = sensitivity.scales * (sensitivity.l1 / epsilon)
            ratios = _laplace_logs(away - moved, scale) - _laplace_logs(away, scale)
            return ratios
    scale = sensitivity.scales * (sensitivity.l2 / mechanism.epsilon)
    ratios = np.linalg.norm(away / scale, axis=1) - np.linalg.norm((away - moved) / scale, axis=1)
    return ratios


def _laplace_logs(noise: Floats, scale: Floats) -> Floats:
    """log P[rounded noise], less what is the same for all integers but zero."""
    half = 0.5 / scale
    at_zero = np.log(-np.expm1(-half)) - np.log(np.sinh(half))
    logs: Floats = np.where(noise == 0, at_zero, -np.abs(noise) / scale)
    return logs


def log_sum(logs: Floats, often: Floats | float = 1.0) -> Floats:
    """log of the sum along the last axis of often * exp(logs); scipy's is as exact and ten times slower."""
    most = logs.max(axis=-1, keepdims=True)
    found: Floats = np.log((np.exp(logs - most) * often).sum(axis=-1)) + most[..., 0]
    return found


def _log_chance(
    mechanism: Choice | TopChoice, released: Any, total: npt.NDArray[np.int64], sensitivity: Sensitivity
) -> float:
    reach = float(sensitivity.scales.reshape(())) * sensitivity.linf
    if isinstance(mechanism, Choice):
        rate = mechanism.epsilon / (reach * (1 if sensitivity.monotone else 2))
        rows = total if mechanism.in_each_row else total.reshape(1, -1)
        picked = released.reshape(-1, 1)
    else:
        rate = _rate_of_top(mechanism, reach, sensitivity)
        rows, picked = np.abs(total), released
    # Only differences between scores count; large ones would drown the digits that differ.
    logs = rate * (rows - rows.max(axis=1, keepdims=True)).astype(np.float64)
    found = 0.0
    for left, picks in zip(logs, picked, strict=True):
        for pick in picks:
            found += float(left[pick] - log_sum(left))
            left[pick] = -np.inf
    return found


def _rate_of_top(mechanism: TopChoice, reach: float, sensitivity: Sensitivity) -> float:
    picks = mechanism.picks
    if mechanism.concentrated:
        return float(np.sqrt(2 * mechanism.amount / picks)) / reach
    touched = picks if sensitivity.touched is None else min(sensitivity.touched, picks)
    return mechanism.amount / (reach * (picks + touched))


def _of_threshold(mechanism: Threshold, released: Any, with_it: SparseCounts, without: SparseCounts) -> float:
    found = 0.0
    for cell in np.union1d(with_it.cells, without.cells):
        counts = [_count(total, cell) for total in (with_it, without)]
        if counts[0] != counts[1]:
            named = bool(np.isin(cell, released))
            one, other = (log_named(mechanism, count, named) for count in counts)
            found += one - other
    return found


def _count(total: SparseCounts, cell: int) -> int:
    place = int(np.searchsorted(total.cells, cell))
    return int(total.counts[place]) if place < len(total.cells) and total.cells[place] == cell else 0


def log_named(mechanism: Threshold, count: int, named: bool) -> float:
    """The log-probability that a cell with this count is named, or is not."""
    beyond = (mechanism.limit - count + 0.5) * mechanism.amount * (1 if named else -1)
    if mechanism.noise == "gaussian":
        return float(log_ndtr(-beyond))
    return float(-beyond - np.log(2) if beyond > 0 else np.log1p(-np.exp(beyond) / 2))


def exact_match(released: Any, with_it: Any, without: Any) -> float:
    """Entries that differ between the neighbours and show the exact value of the larger one, less the others.

    Zero where what is released is not an array like the total.
    """
    if isinstance(with_it, SparseCounts) or np.shape(released) != np.shape(with_it):
        return 0.0
    differ = with_it != without
    return float((released[differ] == with_it[differ]).sum() - (released[differ] == without[differ]).sum())
