"""Clusters read off noisy sums of waves: round ones of a common spread, fitted by their likelihood.

No row is read, so fitting is free. A cluster adds to each sum its size times the wave at its centre, which
fades with its spread; noise is the same in all sums. So the fit is one of least squares, with a prior that
matters where noise hides clusters: about equal sizes, and centres where the normal law of all records would
put them.
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from core.arrays import Floats
from core.postprocessing.kmeans import single_threaded
from core.postprocessing.picture import Picture

Singles = npt.NDArray[np.float32]

#: Places tried for a new cluster for each axis; so many of the best are followed uphill for so many steps.
_PLACES, _FOLLOWED, _STEPS = 1000, 8, 15
#: Clusters are placed so many at a time between short fits of all of them.
_AT_ONCE, _SHORT, _LONG = 3, 8, 40
#: At the end so many clusters that matter least are tried elsewhere; each must gain so much likelihood.
_SWAPS, _GAIN = 5, 0.3
#: Standard deviations of the prior: of centres, in those of all records; of logarithms of sizes and spread.
_REACH, _SIZES, _SPREAD = 1.3, 0.5, 1.0
#: The spread of a cluster to expect, in wave lengths; nothing lies beyond so many deviations of all records.
_EXPECTED_SPREAD, _FARTHEST = 0.4, 4.0


@dataclass(frozen=True, eq=False)
class Clumps:
    """Round clusters: their centres, how many records each has, and their common standard deviation."""

    centres: Floats
    sizes: Floats
    spread: float

    def __len__(self) -> int:
        return len(self.sizes)

    def without(self, place: int) -> "Clumps":
        keep = np.arange(len(self)) != place
        return Clumps(self.centres[keep], self.sizes[keep], self.spread)

    def joined(self, centre: Floats, size: float) -> "Clumps":
        return Clumps(np.vstack([self.centres, centre]), np.append(self.sizes, size), self.spread)

    def painted(self, total: float, count: int, draw: np.random.Generator) -> Picture:
        """About `count` points that stand for `total` records."""
        ends = np.cumsum(self.sizes) / self.sizes.sum() * count + draw.uniform()
        owner = np.repeat(np.arange(len(self)), np.diff(np.floor(ends).astype(np.int64), prepend=0))
        points = self.centres[owner] + self.spread * draw.normal(size=(len(owner), self.centres.shape[1]))
        return Picture(points, np.full(len(owner), total / max(len(owner), 1)))


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
        width = len(self.deviations)
        places = _REACH * draw.normal(size=(_PLACES * width, width))
        places = np.clip(places, -_FARTHEST, _FARTHEST) * self.deviations
        known = np.concatenate(self._waves(places, self._expected_spread), axis=1)
        found = Clumps(np.zeros((0, width)), np.zeros(0), self._expected_spread)
        size = self.total / k
        while len(found) < k:
            found = found.joined(self._best_place(found, places, known), size)
            if len(found) % _AT_ONCE == 0 or len(found) == k:
                found, _ = self._fitted(found, k, _SHORT)
        found, loss = self._fitted(found, k, _LONG)
        kept = 0
        for _ in range(_SWAPS):
            if kept == k - 1:
                break
            fewer, _ = self._fitted(found.without(int(np.argsort(self._worth(found))[kept])), k, _SHORT)
            other = fewer.joined(self._best_place(fewer, places, known), size)
            other, other_loss = self._fitted(other, k, 2 * _SHORT)
            if other_loss < loss - _GAIN:
                found, loss, kept = other, other_loss, 0
            else:
                kept += 1
        return self._fitted(found, k, _LONG)[0]

    @cached_property
    def _squares(self) -> Singles:
        squares: Singles = (self.frequencies**2).sum(axis=1)
        return squares

    @property
    def _expected_spread(self) -> float:
        return _EXPECTED_SPREAD * self.length

    def _waves(self, points: Floats, spread: float) -> tuple[Singles, Singles]:
        """What one record's worth of a cluster adds to the sums, for clusters at these points."""
        fading = np.exp(np.float32(-0.5 * spread**2) * self._squares)
        fading *= np.float32(1 / math.sqrt(len(self.frequencies)))
        phases = points.astype(np.float32) @ self.frequencies.T
        return fading * np.cos(phases), fading * np.sin(phases)

    def _left(self, found: Clumps) -> tuple[Singles, Singles]:
        """What the clusters leave of the sums."""
        cosines, sines = self._waves(found.centres, found.spread)
        sizes = found.sizes.astype(np.float32)
        return self.cosines - sizes @ cosines, self.sines - sizes @ sines

    def _worth(self, found: Clumps) -> Floats:
        """About how much likelihood each cluster brings, given that its nearest neighbour could stand in."""
        cosines, sines = self._waves(found.centres, found.spread)
        left = self._left(found)
        alike = (cosines @ cosines.T + sines @ sines.T).astype(np.float64)
        energy = alike[0, 0]
        worth = found.sizes * (cosines @ left[0] + sines @ left[1]) + 0.5 * found.sizes**2 * energy
        np.fill_diagonal(alike, 0.0)
        stand_in = np.clip(alike.max(axis=1) / energy, 0.0, 0.99)
        likely: Floats = worth * (1 - stand_in**2)
        return likely

    def _best_place(self, found: Clumps, places: Floats, known: Singles) -> Floats:
        """Where one more cluster explains most of what is left: the best of some places, moved uphill."""
        left = self._left(found)
        energy = 2 * self.noise**2 * float(known[0] @ known[0])

        def gains(values: Singles, points: Floats) -> Floats:
            prior = 0.5 * ((points / (_REACH * self.deviations)) ** 2).sum(axis=1)
            gained: Floats = np.maximum(values, 0.0).astype(np.float64) ** 2 / energy - prior
            return gained

        starts = places[np.argsort(gains(known @ np.concatenate(left), places))[-_FOLLOWED:]]
        tops, values = self._uphill(starts, found.spread, left)
        best: Floats = tops[int(gains(values, tops).argmax())]
        return best

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
        # Logarithms of sizes and spread, and centres in wave lengths: about equally long steps for all.
        units = np.concatenate([np.full(count * width, self.length), np.ones(count + 1)])
        least = 1e-3 * self.total / k
        logs = np.log([*np.maximum(found.sizes, least), found.spread])
        start = np.concatenate([found.centres.reshape(-1), logs]) / units
        loss: Any = partial(self._loss, width=width, k=k, units=units)
        limits: Any = {"maxiter": rounds, "maxcor": 20}
        solved = minimize(loss, start, jac=True, method="L-BFGS-B", options=limits)
        return _unpacked(solved.x * units, width), float(solved.fun)

    def _loss(self, scaled: Floats, width: int, k: int, units: Floats) -> tuple[float, Floats]:
        """Minus the log-likelihood with the prior, and its gradient."""
        values = scaled * units
        found = _unpacked(values, width)
        logs, precision = values[-len(found) - 1 :], self.noise**-2
        cosines, sines = self._waves(found.centres, found.spread)
        sizes = found.sizes.astype(np.float32)
        expected = sizes @ cosines, sizes @ sines
        over = expected[0] - self.cosines, expected[1] - self.sines
        slopes = (cosines * over[1] - sines * over[0]) @ self.frequencies
        by_centre = precision * slopes * found.sizes[:, None]
        by_size = precision * (cosines @ over[0] + sines @ over[1]) * found.sizes
        fading = float(self._squares @ (expected[0] * over[0] + expected[1] * over[1]))
        by_spread = -precision * found.spread**2 * fading
        likely = np.append(np.full(len(found), math.log(self.total / k)), math.log(self._expected_spread))
        doubts = np.append(np.full(len(found), _SIZES), _SPREAD)
        off, reach = (logs - likely) / doubts, _REACH * self.deviations
        loss = 0.5 * precision * float(over[0] @ over[0] + over[1] @ over[1])
        loss += 0.5 * float(off @ off) + 0.5 * float(((found.centres / reach) ** 2).sum())
        by_logs = np.append(by_size, by_spread) + off / doubts
        return loss, np.concatenate([(by_centre + found.centres / reach**2).reshape(-1), by_logs]) * units


def _unpacked(values: Floats, width: int) -> Clumps:
    """Clusters from their centres, the logarithms of their sizes, and that of their spread."""
    count = (len(values) - 1) // (width + 1)
    sizes_and_spread = np.exp(np.clip(values[count * width :], -30.0, 30.0))
    centres = values[: count * width].reshape(count, width)
    return Clumps(centres, sizes_and_spread[:-1], float(sizes_and_spread[-1]))
