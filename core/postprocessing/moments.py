"""Means, spreads, correlations and axes from noisy moments, with 95% intervals: see `moments.md`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from core.arrays import Floats
from core.kernels.rows import UNITS
from core.postprocessing.intervals import Interval, ratio_interval

#: Stored rows are truncated by at most a unit in each coordinate.
_STEP = 1.0
#: The spectral norm of symmetric noise is below this many times its entries' reach and the root of its width.
_SPECTRAL = 1.2
#: An axis turns by at most this many times the noise over the gap to the next variance.
_TURN = 2**1.5


@dataclass(frozen=True)
class Noise:
    """How far noise moves each released number in 95 of 100 releases; moments off the diagonal by less."""

    count: float
    sums: float
    moments: float


@dataclass(frozen=True, eq=False)
class Moments:
    """A mean that records can have, and the nearest covariance that they can have about it."""

    mean: Floats
    covariance: Floats
    #: Variances along principal axes, from the largest.
    variances: Floats
    #: Principal axes, in columns.
    axes: Floats

    @classmethod
    def of(cls, released: Released, mean: Floats) -> Self:
        """From what was released, with the mean inside the bounds."""
        inside = mean.astype(np.float64)
        second = released.second / max(released.count, 1.0)
        variances, axes = np.linalg.eigh(second - np.outer(inside, inside))
        variances = np.clip(variances, 0.0, float(UNITS) ** 2)
        order = np.argsort(-variances)
        return cls(inside, (axes * variances) @ axes.T, variances[order], axes[:, order])

    @property
    def spreads(self) -> Floats:
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def correlations(self) -> Floats:
        scales = np.outer(self.spreads, self.spreads)
        found: Floats = np.divide(self.covariance, scales, out=np.zeros_like(scales), where=scales > 0)
        np.fill_diagonal(found, 1.0)
        return np.clip(found, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Released:
    """A number of records, their sum and their second moments, as released."""

    count: float
    sums: Floats
    second: Floats
    noise: Noise

    def means(self, moments: Moments) -> Interval:
        """Intervals of means, in units."""
        variances = (self.noise.sums**2, 0.0, self.noise.count**2)
        found = ratio_interval(self.sums, np.full(len(self.sums), self.count), variances)
        return found.widened(_STEP).within(-float(UNITS), float(UNITS)).around(moments.mean)

    def spreads(self, moments: Moments) -> Interval:
        """Intervals of spreads, in units."""
        mean, noise = moments.mean, self.noise
        squares = np.diagonal(self.second) - 2 * mean * self.sums + mean**2 * self.count
        of_count = noise.count**2
        of_squares = noise.moments**2 + (2 * mean * noise.sums) ** 2 + mean**4 * of_count
        below = np.full(len(mean), self.count)
        found = ratio_interval(squares, below, (of_squares, mean**2 * of_count, of_count))
        ends = self.means(moments)
        away = np.maximum(mean - ends.low, ends.high - mean)
        found = Interval(found.low - away**2, found.high).within(0.0, float(UNITS) ** 2)
        spreads = Interval(np.sqrt(found.low), np.sqrt(found.high)).widened(_STEP)
        return spreads.within(0.0, float(UNITS)).around(moments.spreads)

    def correlations(self, moments: Moments, spreads: Interval) -> Interval:
        """Intervals of correlations: everything where a spread may be nothing."""
        mean, own, shown = moments.mean, moments.spreads, moments.correlations
        scales = np.where(own > 0, own, 1.0)
        inverse, leaning = 1 / scales**2, mean / scales
        pairs = np.outer(1 / scales, 1 / scales)
        of_second = pairs**2 / 2 + shown**2 / 4 * (inverse[:, None] ** 2 + inverse[None, :] ** 2)
        first = (shown * leaning[:, None] - leaning[None, :]) / scales[:, None]
        of_sums = first**2 + first.T**2
        of_count = np.outer(leaning, leaning) - shown * (leaning[:, None] ** 2 + leaning[None, :] ** 2) / 2
        noise = self.noise
        reach = np.sqrt(
            of_second * noise.moments**2 + of_sums * noise.sums**2 + of_count**2 * noise.count**2
        ) / max(self.count, 1.0)
        unknown = (spreads.low <= 0) | (own <= 0)
        reach = np.where(unknown[:, None] | unknown[None, :], 2.0, reach)
        np.fill_diagonal(reach, 0.0)
        return Interval(shown - reach, shown + reach).within(-1.0, 1.0)

    def axes(self, moments: Moments) -> list[dict[str, Any]]:
        """Principal axes: shares of the variance, and loadings, with intervals."""
        width, variances = len(moments.mean), moments.variances
        longest = float(np.abs(moments.mean).max())
        noise = self.noise
        entry = math.hypot(noise.moments, 2 * longest * noise.sums) / max(self.count, 1.0)
        off, whole = _SPECTRAL * math.sqrt(width) * entry, float(variances.sum())
        total = (max(whole - math.sqrt(width) * entry, 1e-9), max(whole + math.sqrt(width) * entry, 1e-9))
        gaps = np.abs(np.diff(variances, prepend=math.inf, append=-math.inf))
        found = []
        for place, variance in enumerate(variances):
            axis = moments.axes[:, place]
            gap = max(min(gaps[place], gaps[place + 1]), 1e-9)
            turned = min(_TURN * off / gap, 2.0)
            share = variance / whole if whole > 0 else 0.0
            found.append(
                {
                    "share": float(share),
                    "share_low": float(max((variance - off) / total[1], 0.0)),
                    "share_high": float(min((variance + off) / total[0], 1.0)),
                    "loadings": axis.tolist(),
                    **Interval(axis - turned, axis + turned).within(-1.0, 1.0).to_json("loadings"),
                }
            )
        return found
