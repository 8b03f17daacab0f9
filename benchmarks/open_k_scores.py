"""Scores of one release for every k, which only someone with the rows can compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.postprocessing.synopsis import Level, Synopsis

__all__ = ["coverage", "likeness", "nearest", "within_reach"]

Floats = npt.NDArray[np.float64]
#: Bins between the extremes of a column or projection, and random projections.
_BINS, _PROJECTIONS = 20, 20
#: Of very many columns so many are looked at, evenly spread.
_MOST_COLUMNS = 50
#: How far out the farthest rows lie is told by this quantile of distances to the mean.
_TAIL = 0.999
#: Bins of a column are not narrower than a twentieth of this share of what all columns span.
_LEAST_EXTENT = 0.01


def nearest(rows: Floats, centres: Floats) -> npt.NDArray[np.int64]:
    """The nearest centre of each row."""
    blocks = np.array_split(rows, max(1, len(rows) // 20_000))
    return np.concatenate([((centres**2).sum(axis=1) - 2 * b @ centres.T).argmin(axis=1) for b in blocks])


def squared(rows: Floats, centres: Floats) -> Floats:
    """Squared distances to the nearest centre."""
    found = [
        (block**2).sum(axis=1) + ((centres**2).sum(axis=1) - 2 * block @ centres.T).min(axis=1)
        for block in np.array_split(rows, max(1, len(rows) // 20_000))
    ]
    distances: Floats = np.maximum(np.concatenate(found), 0.0)
    return distances


def within_reach(rows: Floats, found: Synopsis) -> npt.NDArray[np.bool_]:
    """The rows that the losses of a release are of."""
    near: npt.NDArray[np.bool_] = squared(rows, found.anchors) <= found.reach**2
    return near


def coverage(rows: Floats, within: npt.NDArray[np.bool_], level: Level) -> dict[str, float]:
    """Whether the level's intervals hold, and how wide they are beside the errors that they bound."""
    labels = nearest(rows, level.centres)
    sizes = np.bincount(labels, minlength=level.k)
    sums = sp.csr_array((np.ones(len(rows)), (labels, np.arange(len(rows)))), (level.k, len(rows))) @ rows
    means = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], level.centres)
    lost = squared(rows, level.centres)
    true = float(lost[within].mean())
    half = (level.centre_high - level.centre_low) / 2
    return {
        "estimate / true": level.loss.value / true,
        "of all": true / float(lost.mean()),
        "loss covered": float(level.loss.low <= true <= level.loss.high),
        "loss width": (level.loss.high - level.loss.low) / 2 / true,
        "sizes covered": float(np.mean((level.size_low <= sizes) & (sizes <= level.size_high))),
        "size width / error": _wider((level.size_high - level.size_low) / 2, level.sizes - sizes),
        "means covered": float(np.mean((level.centre_low <= means) & (means <= level.centre_high))),
        "width / error": _wider(half, level.centres - means),
    }


def _wider(half: Floats, errors: Floats) -> float:
    """Half the width of intervals over that of 95% intervals for normal errors of this size."""
    return float(np.sqrt((half**2).mean()) / max(np.sqrt((errors**2).mean()), 1e-12) / 1.96)


def likeness(rows: Floats, made_up: Floats, draw: np.random.Generator) -> dict[str, float]:
    """Total variation between rows and made-up ones, and how far out the farthest of both lie."""
    width = rows.shape[1]
    columns = range(0, width, max(1, width // _MOST_COLUMNS))
    least = _LEAST_EXTENT * float(np.ptp(rows))  # a column that never varies has no bins of its own
    marginals = [binned_distance(rows[:, c], made_up[:, c], least) for c in columns]
    ways = draw.normal(size=(width, _PROJECTIONS))
    projections = [binned_distance(rows @ way, made_up @ way) for way in ways.T]
    middle = rows.mean(axis=0)
    far, made_far = (
        float(np.quantile(np.linalg.norm(each - middle, axis=1), _TAIL)) for each in (rows, made_up)
    )
    return {
        "marginals": float(np.mean(marginals)),
        "worst marginal": float(np.max(marginals)),
        "projections": float(np.mean(projections)),
        "worst projection": float(np.max(projections)),
        "tail": made_far / far,
    }


def binned_distance(one: npt.NDArray[Any], other: npt.NDArray[Any], least: float = 0.0) -> float:
    """Total variation in equal bins between the extremes of both, which together are at least so wide."""
    low, high = min(one.min(), other.min()), max(one.max(), other.max(), one.min() + least)
    edges = np.linspace(low, high + 1e-9 * max(abs(high), 1.0), _BINS + 1)
    here, there = np.histogram(one, edges)[0] / len(one), np.histogram(other, edges)[0] / len(other)
    return float(np.abs(here - there).sum() / 2)
