"""Clusters read off noisy sums of waves: round ones of about equal spread, fitted by their likelihood.

No row is read, so fitting is free. A cluster adds to each sum its size times the wave at its centre, which
fades with its spread; noise is the same in all sums. So the fit is one of least squares, with a prior that
matters where noise hides clusters: about equal sizes and spreads, and centres where the normal law of all
records would put them.
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from core.arrays import Floats, Integers
from core.postprocessing.kmeans import single_threaded
from core.postprocessing.picture import Picture

Singles = npt.NDArray[np.float32]

#: Places tried for new clusters. So many of the best, or more for each new cluster, are
#: followed uphill for so many steps.
_PLACES, _FOLLOWED, _FOLLOWED_EACH, _STEPS = 4000, 8, 3, 15
#: Clusters are placed so many at a time between short fits of all of them.
_AT_ONCE, _SHORT, _LONG = 3, 8, 40
#: At the end those that matter least are tried elsewhere, so often and so many at a time; that must gain so
#: much likelihood.
_SWAPS, _SWAPPED, _GAIN = 8, 4, 0.3
#: Standard deviations of the prior: of centres, in those of all records; of logarithms of sizes, of the
#: common spread, and of each cluster's spread beside it.
_REACH, _SIZES, _SPREAD, _OWN_SPREAD = 1.3, 0.5, 1.0, 0.4
#: The spread of a cluster to expect, in wave lengths; nothing lies beyond so many deviations of all records.
_EXPECTED_SPREAD, _FARTHEST = 0.4, 4.0


@dataclass(frozen=True, eq=False)
class Clumps:
    """Round clusters: their centres, how many records each has, and their standard deviations."""

    centres: Floats
    sizes: Floats
    spreads: Floats
    #: What the spreads are scattered about.
    spread: float

    def __len__(self) -> int:
        return len(self.sizes)

    def without(self, gone: Integers) -> "Clumps":
        keep = ~np.isin(np.arange(len(self)), gone)
        return Clumps(self.centres[keep], self.sizes[keep], self.spreads[keep], self.spread)

    def joined(self, centres: Floats, size: float) -> "Clumps":
        """These and more clusters, each of this size and of the common spread."""
        more = np.ones(len(centres))
        return Clumps(
            np.concatenate([self.centres, centres]),
            np.concatenate([self.sizes, size * more]),
            np.concatenate([self.spreads, self.spread * more]),
            self.spread,
        )

    def painted(self, total: float, count: int, draw: np.random.Generator) -> Picture:
        """About `count` points that stand for `total` records."""
        ends = np.cumsum(self.sizes) / self.sizes.sum() * count + draw.uniform()
        owner = np.repeat(np.arange(len(self)), np.diff(np.floor(ends).astype(np.int64), prepend=0))
        scattered = draw.normal(size=(len(owner), self.centres.shape[1])) * self.spreads[owner, None]
        return Picture(self.centres[owner] + scattered, np.full(len(owner), total / max(len(owner), 1)))


@dataclass(frozen=True, eq=False)
class _Places:
    """Where new clusters are tried, and what a record's worth of one adds to the cosines and sines there."""

    points: Floats
    waves: Singles


@dataclass(frozen=True, eq=False)
class WaveFit:
    """Noisy sums of cosines and sines over about `total` records, and what is known about their clusters."""

    #: A row for each wave.
    frequencies: Singles
    #: Divided by the square root of the number of waves, as a record's vector of length one is.
    cosines: Singles
    sines: Singles
    #: Standard deviation of the noise in each of these sums.
    noise: float
    total: float
    #: Standard deviations of all records along the axes.
    deviations: Floats
    #: The distance at which records hardly add to each other's density.
    length: float

    def clumps(self, k: int, draw: np.random.Generator) -> Clumps:
        """The likeliest k clusters that were found."""
        with single_threaded():
            return self._clumps(k, draw)

    def _clumps(self, k: int, draw: np.random.Generator) -> Clumps:
        places = self._places(draw)
        found = Clumps(np.zeros((0, len(self.deviations))), np.zeros(0), np.zeros(0), self._expected_spread)
        while len(found) < k:
            found = self._grown(found, min(_AT_ONCE, k - len(found)), k, places)
            found, _ = self._fitted(found, k, _SHORT)
        found, loss = self._fitted(found, k, _LONG)
        found = self._swapped(found, loss, k, places)
        return self._fitted(found, k, _LONG)[0]

    def _places(self, draw: np.random.Generator) -> _Places:
        width = len(self.deviations)
        drawn = _REACH * draw.normal(size=(_PLACES, width))
        points = np.clip(drawn, -_FARTHEST, _FARTHEST) * self.deviations
        return _Places(points, np.concatenate(self._waves(points, self._expected_spread), axis=1))

    def _swapped(self, found: Clumps, loss: float, k: int, places: _Places) -> Clumps:
        """The clusters after those that matter least were tried elsewhere."""
        count, kept = min(_SWAPPED, (k + 2) // 3), 0
        for _ in range(_SWAPS):
            gone = np.argsort(self._worth(found))[kept * count : (kept + 1) * count]
            if len(gone) in (0, k):
                break
            other, _ = self._fitted(found.without(gone), k, _SHORT)
            other, other_loss = self._fitted(self._grown(other, len(gone), k, places), k, 2 * _SHORT)
            if other_loss < loss - _GAIN:
                found, loss, kept = other, other_loss, 0
            else:
                kept += 1
        return found

    @cached_property
    def _squares(self) -> Singles:
        squares: Singles = (self.frequencies**2).sum(axis=1)
        return squares

    @property
    def _expected_spread(self) -> float:
        return _EXPECTED_SPREAD * self.length

    def _waves(self, points: Floats, spreads: float | Floats) -> tuple[Singles, Singles]:
        """What one record's worth of a cluster adds to the sums, for clusters at these points."""
        fading = np.exp(
            np.multiply.outer(np.float32(-0.5) * np.square(spreads, dtype=np.float32), self._squares)
        )
        fading *= np.float32(1 / math.sqrt(len(self.frequencies)))
        phases = points.astype(np.float32) @ self.frequencies.T
        return fading * np.cos(phases), fading * np.sin(phases)

    def _left(self, found: Clumps) -> tuple[Singles, Singles]:
        """What the clusters leave of the sums."""
        cosines, sines = self._waves(found.centres, found.spreads)
        sizes = found.sizes.astype(np.float32)
        return self.cosines - sizes @ cosines, self.sines - sizes @ sines

    def _worth(self, found: Clumps) -> Floats:
        """About how much likelihood each cluster brings, given that its nearest neighbour could stand in."""
        cosines, sines = self._waves(found.centres, found.spreads)
        left = self._left(found)
        alike = (cosines @ cosines.T + sines @ sines.T).astype(np.float64)
        energy = np.maximum(np.diag(alike), 1e-30)  # clusters as wide as all records fade to nothing
        worth = found.sizes * (cosines @ left[0] + sines @ left[1]) + 0.5 * found.sizes**2 * energy
        np.fill_diagonal(alike, 0.0)
        stand_in = np.clip((alike / np.sqrt(np.outer(energy, energy))).max(axis=1), 0.0, 0.99)
        likely: Floats = worth * (1 - stand_in**2)
        return likely

    def _grown(self, found: Clumps, count: int, k: int, places: _Places) -> Clumps:
        """The clusters and `count` more where they explain most of what is left."""
        left = self._left(found)
        energy = 2 * self.noise**2 * float(places.waves[0] @ places.waves[0])

        def gains(fits: Floats, points: Floats) -> Floats:
            prior = 0.5 * ((points / (_REACH * self.deviations)) ** 2).sum(axis=1)
            gained: Floats = np.maximum(fits, 0.0) ** 2 / energy - prior
            return gained

        fits, starts = (places.waves @ np.concatenate(left)).astype(np.float64), []
        for _ in range(max(_FOLLOWED, _FOLLOWED_EACH * count)):
            best = int(gains(fits, places.points).argmax())
            starts.append(best)
            fits -= fits[best] * self._nearness(places.points, places.points[best])
        tops, reached = self._uphill(places.points[starts], found.spread, left)
        fits, new = reached.astype(np.float64), []
        for _ in range(count):
            best = int(gains(fits, tops).argmax())
            new.append(best)
            fits -= fits[best] * self._nearness(tops, tops[best])
        return found.joined(tops[new], self.total / k)

    def _nearness(self, points: Floats, place: Floats) -> Floats:
        """How alike waves are at these points and at a place, on average over waves."""
        near: Floats = np.exp(-0.5 * ((points - place) ** 2).sum(axis=1) / self.length**2)
        return near

    def _uphill(self, points: Floats, spread: float, left: tuple[Singles, Singles]) -> tuple[Floats, Singles]:
        """Points moved to where a cluster would explain more of what is left, and how well it fits there."""
        tops, steps = points, np.full(len(points), 0.5 * self.length)
        values, slopes = np.full(len(points), -np.inf, dtype=np.float32), np.zeros_like(points)
        for _ in range(_STEPS):
            cosines, sines = self._waves(points, spread)
            reached = cosines @ left[0] + sines @ left[1]
            better = reached >= values
            steps *= np.where(better, 1.1, 0.5)
            slope = (cosines * left[1] - sines * left[0]) @ self.frequencies
            tops, slopes = np.where(better[:, None], points, tops), np.where(better[:, None], slope, slopes)
            values = np.where(better, reached, values)
            steepness = np.maximum(np.sqrt((slopes**2).sum(axis=1)), 1e-12)
            points = tops + (steps / steepness)[:, None] * slopes
        return tops, values

    def _fitted(self, found: Clumps, k: int, rounds: int) -> tuple[Clumps, float]:
        """The clusters after so many rounds of fitting all at once, and minus their log-likelihood."""
        count, width = found.centres.shape
        # Logarithms of sizes and spreads, and centres in wave lengths: about equally long steps for all.
        units = np.concatenate([np.full(count * width, self.length), np.ones(2 * count + 1)])
        sizes = np.maximum(found.sizes, 1e-3 * self.total / k)
        logs = np.log([*sizes, *found.spreads, found.spread])
        start = np.concatenate([found.centres.reshape(-1), logs]) / units
        loss: Any = partial(self._loss, width=width, k=k, units=units)
        limits: Any = {"maxiter": rounds, "maxcor": 20}
        solved = minimize(loss, start, jac=True, method="L-BFGS-B", options=limits)
        return _unpacked(solved.x * units, width), float(solved.fun)

    def _loss(self, scaled: Floats, width: int, k: int, units: Floats) -> tuple[float, Floats]:
        """Minus the log-likelihood with the prior, and its gradient."""
        values = scaled * units
        found, precision = _unpacked(values, width), self.noise**-2
        count = len(found)
        cosines, sines = self._waves(found.centres, found.spreads)
        sizes = found.sizes.astype(np.float32)
        over = sizes @ cosines - self.cosines, sizes @ sines - self.sines
        slopes = (cosines * over[1] - sines * over[0]) @ self.frequencies
        by_centre = precision * slopes * found.sizes[:, None]
        by_size = precision * (cosines @ over[0] + sines @ over[1]) * found.sizes
        fading = cosines @ (self._squares * over[0]) + sines @ (self._squares * over[1])
        by_spread = -precision * found.spreads**2 * found.sizes * fading
        log_sizes, own, common = np.split(values[count * width :], [count, 2 * count])
        off_sizes = (log_sizes - math.log(self.total / k)) / _SIZES
        off_own, off_common = (
            (own - common) / _OWN_SPREAD,
            (common - math.log(self._expected_spread)) / _SPREAD,
        )
        off, reach = np.concatenate([off_sizes, off_own, off_common]), _REACH * self.deviations
        loss = 0.5 * precision * float(over[0] @ over[0] + over[1] @ over[1])
        loss += 0.5 * float(off @ off) + 0.5 * float(((found.centres / reach) ** 2).sum())
        by_common = off_common / _SPREAD - off_own.sum() / _OWN_SPREAD
        slope = [
            (by_centre + found.centres / reach**2).reshape(-1),
            by_size + off_sizes / _SIZES,
            by_spread + off_own / _OWN_SPREAD,
            by_common,
        ]
        return loss, np.concatenate(slope) * units


def _unpacked(values: Floats, width: int) -> Clumps:
    """Clusters from their centres and the logarithms of their sizes, spreads and common spread."""
    count = (len(values) - 1) // (width + 2)
    logs = np.exp(np.clip(values[count * width :], -30.0, 30.0))
    centres = values[: count * width].reshape(count, width)
    return Clumps(centres, logs[:count], logs[count : 2 * count], float(logs[-1]))
