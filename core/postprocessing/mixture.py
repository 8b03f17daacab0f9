"""A mixture of round clusters of about equal spread, fitted by likelihood to a noisy Fourier sketch.

No row is read, so fitting is free. A cluster adds to each sum its size times the cosine or sine at its
centre, damped by its spread; all sums have the same noise. So this is a least-squares fit, with a prior that
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
from core.postprocessing.synthetic_points import SyntheticPoints

Singles = npt.NDArray[np.float32]

_CANDIDATES = 4000  # Random candidates for new clusters.
_FOLLOWED = 8  # The best candidates that are followed uphill, at least.
_FOLLOWED_EACH = 3  # Candidates that are followed uphill for each new cluster.
_STEPS = 15  # Steps uphill of a candidate that is followed.
_BLOCK = 100  # Candidates whose features are computed at a time: they stay in the processor's cache.
_AT_ONCE = 3  # Clusters that are placed between two fits of all of them.
_SHORT = 5  # Rounds of a fit between placements.
_LONG = 40  # Rounds of the last fits.
_SETTLED = 3e-6  # A fit ends with the round that gains no more than this part of its loss.
_REMEMBERED = 20  # Rounds that a fit remembers.
_SWAPS = 8  # How often the clusters that matter least are tried elsewhere, at the end.
_SWAPPED = 4  # Clusters that are tried elsewhere at a time.
_WITHOUT = 4  # Rounds of a fit without them.
_ELSEWHERE = 12  # Rounds of a fit with them elsewhere.
_GAIN = 0.3  # Log-likelihood that a swap must gain.
_REACH = 1.3  # Prior deviation of centres, over that of all records.
_SIZES = 0.5  # Prior deviation of the logarithm of a size.
_SPREAD = 1.0  # Prior deviation of the logarithm of the common spread.
_OWN_SPREAD = 0.4  # Prior deviation of the logarithm of a cluster's spread over the common one.
_EXPECTED_SPREAD = 0.4  # Expected spread of a cluster, in units of `length`.
_FARTHEST = 4.0  # Deviations of all records beyond which no candidate lies.


@dataclass(frozen=True, eq=False)
class Mixture:
    """Round clusters: their centres, how many records each has, and their standard deviations."""

    centres: Floats
    sizes: Floats
    spreads: Floats
    #: What the spreads are scattered about.
    spread: float

    def __len__(self) -> int:
        return len(self.sizes)

    def without(self, gone: Integers) -> "Mixture":
        keep = ~np.isin(np.arange(len(self)), gone)
        return Mixture(self.centres[keep], self.sizes[keep], self.spreads[keep], self.spread)

    def joined(self, centres: Floats, size: float) -> "Mixture":
        """These and more clusters, each of this size and of the common spread."""
        more = np.ones(len(centres))
        return Mixture(
            np.concatenate([self.centres, centres]),
            np.concatenate([self.sizes, size * more]),
            np.concatenate([self.spreads, self.spread * more]),
            self.spread,
        )

    def sample(self, total: float, count: int, draw: np.random.Generator) -> SyntheticPoints:
        """About `count` points drawn from the mixture, which stand for `total` records."""
        ends = np.cumsum(self.sizes) / self.sizes.sum() * count + draw.uniform()
        owner = np.repeat(np.arange(len(self)), np.diff(np.floor(ends).astype(np.int64), prepend=0))
        scattered = draw.normal(size=(len(owner), self.centres.shape[1])) * self.spreads[owner, None]
        weights = np.full(len(owner), total / max(len(owner), 1))
        return SyntheticPoints(self.centres[owner] + scattered, weights)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Where new clusters are tried, and what a record's worth of one adds to the cosines and sines there."""

    points: Floats
    features: Singles
    #: Minus the logarithm of the chance of a cluster there.
    prior: Singles


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """Noisy sums of cosines and sines over about `total` records, and what is known about their clusters."""

    #: A row for each frequency.
    frequencies: Singles
    #: Divided by the square root of the number of frequencies, as a record's vector of length one is.
    cosines: Singles
    sines: Singles
    #: Standard deviation of the noise in each of these sums.
    noise: float
    total: float
    #: Standard deviations of all records along the axes.
    deviations: Floats
    #: The distance at which records hardly add to each other's density.
    length: float

    def mixture(self, k: int, draw: np.random.Generator) -> Mixture:
        """The likeliest k clusters that were found."""
        with single_threaded():
            return self._mixture(k, draw)

    def _mixture(self, k: int, draw: np.random.Generator) -> Mixture:
        candidates = self._candidates(draw)
        found = Mixture(np.zeros((0, len(self.deviations))), np.zeros(0), np.zeros(0), self._expected_spread)
        while len(found) < k:
            found = self._grown(found, min(_AT_ONCE, k - len(found)), k, candidates)
            found, _ = self._fitted(found, k, _SHORT)
        found, loss = self._fitted(found, k, _LONG)
        found = self._swapped(found, loss, k, candidates)
        return self._fitted(found, k, _LONG)[0]

    def _candidates(self, draw: np.random.Generator) -> _Candidates:
        width = len(self.deviations)
        drawn = _REACH * draw.normal(size=(_CANDIDATES, width))
        points = np.clip(drawn, -_FARTHEST, _FARTHEST) * self.deviations
        features = np.empty((_CANDIDATES, 2 * len(self.frequencies)), dtype=np.float32)
        for first in range(0, _CANDIDATES, _BLOCK):
            part = slice(first, first + _BLOCK)
            self._features(points[part], self._expected_spread, features[part])
        return _Candidates(points, features, self._prior(points))

    def _prior(self, points: Floats) -> Singles:
        """Minus the logarithm of the chance of a cluster at these points."""
        prior: Singles = 0.5 * ((points / (_REACH * self.deviations)) ** 2).sum(axis=1, dtype=np.float32)
        return prior

    def _swapped(self, found: Mixture, loss: float, k: int, candidates: _Candidates) -> Mixture:
        """The clusters after those that matter least were tried elsewhere."""
        count, kept = min(_SWAPPED, (k + 2) // 3), 0
        for _ in range(_SWAPS):
            gone = np.argsort(self._contributions(found))[kept * count : (kept + 1) * count]
            if len(gone) in (0, k):
                break
            other, _ = self._fitted(found.without(gone), k, _WITHOUT)
            other, other_loss = self._fitted(self._grown(other, len(gone), k, candidates), k, _ELSEWHERE)
            if other_loss < loss - _GAIN:
                found, loss, kept = other, other_loss, 0
            else:
                kept += 1
        return found

    @cached_property
    def _sums(self) -> Singles:
        """Sums of cosines, then of sines."""
        return np.concatenate([self.cosines, self.sines])

    @cached_property
    def _squares(self) -> Singles:
        squares: Singles = (self.frequencies**2).sum(axis=1)
        return squares

    @cached_property
    def _columns(self) -> Singles:
        """A column for each frequency."""
        return np.ascontiguousarray(self.frequencies.T)

    @property
    def _expected_spread(self) -> float:
        return _EXPECTED_SPREAD * self.length

    def _features(self, points: Floats, spreads: float | Floats, out: Singles | None = None) -> Singles:
        """What one record's worth of a cluster adds to the sums, in a row for each of these points."""
        count = len(self.frequencies)
        fading = np.multiply.outer(np.float32(-0.5) * np.square(spreads, dtype=np.float32), self._squares)
        np.exp(fading, out=fading)
        fading *= np.float32(1 / math.sqrt(count))
        phases = points.astype(np.float32) @ self._columns
        features = np.empty((len(points), 2 * count), dtype=np.float32) if out is None else out
        for part, function in ((slice(count), np.cos), (slice(count, None), np.sin)):
            function(phases, out=features[:, part])
            features[:, part] *= fading
        return features

    def _gradient_rows(self, residual: Singles, more: int = 0) -> Singles:
        """Rows whose products with features are the gradient of `features @ residual`, one for each axis.

        `more` further rows are left for the caller to fill in.
        """
        count, width = self.frequencies.shape
        rows = np.empty((width + more, 2 * count), dtype=np.float32)
        np.multiply(self._columns, residual[count:], out=rows[:width, :count])
        np.multiply(self._columns, -residual[:count], out=rows[:width, count:])
        return rows

    def _residual(self, found: Mixture) -> Singles:
        """What the clusters leave of the sums."""
        features = self._features(found.centres, found.spreads)
        residual: Singles = self._sums - found.sizes.astype(np.float32) @ features
        return residual

    def _contributions(self, found: Mixture) -> Floats:
        """About how much likelihood each cluster adds, given that its nearest neighbour could replace it."""
        features = self._features(found.centres, found.spreads)
        residual = self._sums - found.sizes.astype(np.float32) @ features
        alike = (features @ features.T).astype(np.float64)
        energy = np.maximum(np.diag(alike), 1e-30)  # clusters as wide as all records fade to nothing
        worth = found.sizes * (features @ residual) + 0.5 * found.sizes**2 * energy
        np.fill_diagonal(alike, 0.0)
        stand_in = np.clip((alike / np.sqrt(np.outer(energy, energy))).max(axis=1), 0.0, 0.99)
        likely: Floats = worth * (1 - stand_in**2)
        return likely

    def _grown(self, found: Mixture, count: int, k: int, candidates: _Candidates) -> Mixture:
        """The clusters and `count` more where they explain most of what is left."""
        residual = self._residual(found)
        energy = 2 * self.noise**2 * float(candidates.features[0] @ candidates.features[0])

        fits, followed = candidates.features @ residual, max(_FOLLOWED, _FOLLOWED_EACH * count)
        starts = self._best_apart(fits, candidates.points, candidates.prior, energy, followed)
        tops, reached = self._uphill(candidates.points[starts], found.spread, residual)
        new = self._best_apart(reached, tops, self._prior(tops), energy, count)
        return found.joined(tops[new], self.total / k)

    def _best_apart(
        self, fits: Singles, points: Floats, prior: Singles, energy: float, count: int
    ) -> list[int]:
        """Those of the points that gain most likelihood, each in addition to those before it."""
        best: list[int] = []
        scaled = (points / self.length).astype(np.float32)
        halves = 0.5 * (scaled**2).sum(axis=1)
        for _ in range(count):
            gains = np.maximum(fits, 0.0)
            gains *= gains * np.float32(1 / energy)
            gains -= prior
            top = int(gains.argmax())
            best.append(top)
            # How alike features are at these points and at that one, on average over frequencies.
            near = np.exp(np.minimum(scaled @ scaled[top] - halves - halves[top], 0.0))
            fits = fits - fits[top] * near
        return best

    def _uphill(self, points: Floats, spread: float, residual: Singles) -> tuple[Floats, Singles]:
        """Points moved to where a cluster would explain more of what is left, and how well it fits there."""
        tops, steps = points, np.full(len(points), 0.5 * self.length)
        values, slopes = np.full(len(points), -np.inf, dtype=np.float32), np.zeros_like(points)
        gradient = self._gradient_rows(residual).T
        for _ in range(_STEPS):
            features = self._features(points, spread)
            reached = features @ residual
            better = reached >= values
            steps *= np.where(better, 1.1, 0.5)
            slope = features @ gradient
            tops, slopes = np.where(better[:, None], points, tops), np.where(better[:, None], slope, slopes)
            values = np.where(better, reached, values)
            steepness = np.maximum(np.sqrt((slopes**2).sum(axis=1)), 1e-12)
            points = tops + (steps / steepness)[:, None] * slopes
        return tops, values

    def _fitted(self, found: Mixture, k: int, rounds: int) -> tuple[Mixture, float]:
        """The clusters after this many rounds of fitting all at once, and minus their log-likelihood."""
        count, width = found.centres.shape
        # Logarithms of sizes and spreads, and centres in units of `length`: about equally long steps for all.
        units = np.concatenate([np.full(count * width, self.length), np.ones(2 * count + 1)])
        sizes = np.maximum(found.sizes, 1e-3 * self.total / k)
        logs = np.log([*sizes, *found.spreads, found.spread])
        start = np.concatenate([found.centres.reshape(-1), logs]) / units
        loss: Any = partial(self._loss, width=width, k=k, units=units)
        limits: Any = {"maxiter": rounds, "maxcor": _REMEMBERED, "ftol": _SETTLED}
        solved = minimize(loss, start, jac=True, method="L-BFGS-B", options=limits)
        return _unpacked(solved.x * units, width), float(solved.fun)

    def _loss(self, scaled: Floats, width: int, k: int, units: Floats) -> tuple[float, Floats]:
        """Minus the log-likelihood with the prior, and its gradient."""
        values = scaled * units
        found, precision = _unpacked(values, width), self.noise**-2
        count = len(found)
        features = self._features(found.centres, found.spreads)
        over = found.sizes.astype(np.float32) @ features - self._sums
        gradient = self._gradient_rows(over, more=2)
        gradient[width] = over
        np.multiply(over.reshape(2, -1), self._squares, out=gradient[width + 1].reshape(2, -1))
        slopes = features @ gradient.T
        by_centre = precision * slopes[:, :width] * found.sizes[:, None]
        by_size = precision * slopes[:, width] * found.sizes
        by_spread = -precision * found.spreads**2 * found.sizes * slopes[:, width + 1]
        logs = values[count * width :]
        log_sizes, own, common = logs[:count], logs[count:-1], logs[-1:]
        off_sizes = (log_sizes - math.log(self.total / k)) / _SIZES
        off_own, off_common = (
            (own - common) / _OWN_SPREAD,
            (common - math.log(self._expected_spread)) / _SPREAD,
        )
        off, reach = np.concatenate([off_sizes, off_own, off_common]), _REACH * self.deviations
        loss = 0.5 * precision * float(over @ over)
        loss += 0.5 * float(off @ off) + 0.5 * float(((found.centres / reach) ** 2).sum())
        by_common = off_common / _SPREAD - off_own.sum() / _OWN_SPREAD
        slope = [
            (by_centre + found.centres / reach**2).reshape(-1),
            by_size + off_sizes / _SIZES,
            by_spread + off_own / _OWN_SPREAD,
            by_common,
        ]
        return loss, np.concatenate(slope) * units


def _unpacked(values: Floats, width: int) -> Mixture:
    """Clusters from their centres and the logarithms of their sizes, spreads and common spread."""
    count = (len(values) - 1) // (width + 2)
    logs = np.exp(np.clip(values[count * width :], -30.0, 30.0))
    centres = values[: count * width].reshape(count, width)
    return Mixture(centres, logs[:count], logs[count : 2 * count], float(logs[-1]))
