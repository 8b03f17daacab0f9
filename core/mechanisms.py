"""How a statistic is released: mechanisms that know their loss and add exact noise to declared scales.

A mechanism is fixed by the plan and knows no data. At a measurement it receives the exact integer total and
the statistic's declared sensitivity, and returns the only thing that leaves. The loss is the same for every
total, every released scale and every shape. Each mechanism's argument is in `mechanisms.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import mpmath
import numpy as np
import numpy.typing as npt

from core import sampling
from core.privacy import ZCDP, Approximate, Gaussian, Loss, Pure
from core.sensitivity import Sensitivity
from core.totals import SparseCounts

__all__ = [
    "ACCOUNTINGS",
    "Choice",
    "Coverage",
    "GaussianNoise",
    "L2Noise",
    "LaplaceNoise",
    "Mechanism",
    "Threshold",
    "TopChoice",
    "additive_noise",
    "threshold",
    "vector_noise",
]

Integers = npt.NDArray[np.int64]

#: Quotients of doubles are rounded; scales are enlarged (rates lowered) by more than that.
_OUTWARDS = 1 + 2.0**-50


@runtime_checkable
class Mechanism(Protocol):
    """A randomised function of a total; a frozen dataclass of JSON numbers."""

    kind: ClassVar[str]

    @property
    def loss(self) -> Loss:
        """What one use costs one record."""

    def release(self, total: Any, sensitivity: Sensitivity) -> Integers:
        """What leaves; `total` is an array, or for some mechanisms `SparseCounts`."""


def _scales(sensitivity: Sensitivity, shape: tuple[int, ...], factor: float) -> npt.NDArray[np.float64]:
    return np.broadcast_to(sensitivity.scales * (factor * _OUTWARDS), shape).reshape(-1)


@dataclass(frozen=True)
class GaussianNoise:
    """Adds round(N(0, (scale * l2 / mu)^2)) to every entry: mu-Gaussian DP."""

    kind: ClassVar[str] = "gaussian"
    mu: float

    @property
    def loss(self) -> Gaussian:
        return Gaussian(self.mu)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one (`width` is of no account here)."""
        return 1 / self.mu

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = _scales(sensitivity, total.shape, sensitivity.l2 / self.mu)
        return total + sampling.gaussian(scales, total.size).reshape(total.shape)


@dataclass(frozen=True)
class LaplaceNoise:
    """Adds rounded Laplace noise of scale scale * l1 / epsilon to every entry: epsilon-DP."""

    kind: ClassVar[str] = "laplace"
    epsilon: float

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one in a statistic whose l1 is one."""
        return float(np.sqrt(2)) / self.epsilon

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = _scales(sensitivity, total.shape, sensitivity.l1 / self.epsilon)
        return total + sampling.laplace(scales, total.size).reshape(total.shape)


@dataclass(frozen=True)
class L2Noise:
    """Adds to each row noise of density proportional to exp(-epsilon |x / scales| / l2): epsilon-DP.

    One record must touch one row only.
    """

    kind: ClassVar[str] = "l2"
    epsilon: float

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one in rows of this width."""
        return float(np.sqrt(width + 1)) / self.epsilon

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        if not sensitivity.one_block or total.ndim != 2:
            raise ValueError("the L2-norm mechanism needs a statistic of which one record touches one row")
        scales = _scales(sensitivity, total.shape, sensitivity.l2 / self.epsilon).reshape(total.shape)
        return sampling.l2_vectors(total, scales, max(sensitivity.grid, _coarse_grid(scales)))


def _coarse_grid(scales: npt.NDArray[np.float64]) -> int:
    """Multiples that released vectors are rounded to: about a thousandth of their noise.

    A vector with one uncertain coordinate is decided in mpmath, as a whole. On a fine grid that would happen
    to nearly every vector of tens of thousands of coordinates, and take minutes.
    """
    deviation = float(scales.min()) * math.sqrt(scales.shape[1])
    return 1 << max(0, math.floor(math.log2(deviation / 1024)))


@dataclass(frozen=True)
class Choice:
    """Picks an index with weight exp(eta * score): epsilon-DP and of bounded range.

    eta = epsilon / (scale * linf) where the scores are monotone in the data, half of it where not.
    `in_each_row`: one index for each row of scores, where one record touches one row only.
    """

    kind: ClassVar[str] = "choice"
    epsilon: float
    in_each_row: bool = False

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon, bounded_range=True)

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        if sensitivity.scales.size != 1:
            raise ValueError("scores are compared with each other and need one scale")
        if self.in_each_row and (not sensitivity.one_block or total.ndim != 2):
            raise ValueError("a choice in each row needs a statistic of which one record touches one row")
        reach = float(sensitivity.scales.reshape(())) * sensitivity.linf * (1 if sensitivity.monotone else 2)
        rate = self.epsilon / (reach * _OUTWARDS)
        rows = total if self.in_each_row else total.reshape(1, -1)
        return np.array([sampling.choice(scores, rate) for scores in rows], dtype=np.int64)


@dataclass(frozen=True)
class TopChoice:
    """Picks in each row `picks` different entries, one after the other, with weight exp(eta * magnitude).

    One record touches one row, at most `touched` of its entries. `amount` is an epsilon, with
    eta = epsilon / (scale * linf * (picks + min(touched, picks))), or, where `concentrated`, a rho of zCDP,
    with eta = sqrt(2 * rho / picks) / (scale * linf).
    """

    kind: ClassVar[str] = "top-choice"
    amount: float
    picks: int
    concentrated: bool = False

    def __post_init__(self) -> None:
        if self.picks < 1:
            raise ValueError("at least one entry is picked")

    @property
    def loss(self) -> Pure | ZCDP:
        return ZCDP(self.amount) if self.concentrated else Pure(self.amount)

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        if sensitivity.scales.size != 1:
            raise ValueError("magnitudes are compared with each other and need one scale")
        if not sensitivity.one_block or total.ndim != 2 or total.shape[1] < self.picks:
            raise ValueError("picks come from rows of enough entries, of which one record touches one row")
        reach = float(sensitivity.scales.reshape(())) * sensitivity.linf
        touched = self.picks if sensitivity.touched is None else min(sensitivity.touched, self.picks)
        if self.concentrated:
            rate = math.sqrt(2 * self.amount / self.picks) / (reach * _OUTWARDS)
        else:
            rate = self.amount / (reach * (self.picks + touched) * _OUTWARDS)
        return np.array([sampling.choices(np.abs(row), rate, self.picks) for row in total], dtype=np.int64)


@dataclass(frozen=True)
class Threshold:
    """Names the cells of a family whose count plus rounded noise exceeds `limit`, the empty ones included.

    `noise` is "laplace" (epsilon-DP for `amount` epsilon) or "gaussian" (mu-Gaussian DP for `amount` mu).
    Occupied cells are tried one by one; over empty ones the sampler skips, by the same law.
    """

    kind: ClassVar[str] = "threshold"
    noise: str
    amount: float
    limit: int

    def __post_init__(self) -> None:
        if self.noise not in ("laplace", "gaussian"):
            raise ValueError("the noise of a threshold is laplace or gaussian")
        # Beyond these the chance of an empty cell would leave the range of doubles.
        farthest = 600 if self.noise == "laplace" else 35
        if self.limit < 0 or self.amount * (self.limit + 0.5) > farthest:
            raise ValueError("the limit of a threshold is at least zero and within reach of its noise")

    @property
    def loss(self) -> Gaussian | Pure:
        return Gaussian(self.amount) if self.noise == "gaussian" else Pure(self.amount)

    def tail(self, scale: float) -> mpmath.mpf:
        """P[rounded noise > limit], at mpmath's working precision."""
        beyond = (mpmath.mpf(self.limit) + mpmath.mpf(0.5)) / mpmath.mpf(scale)
        if self.noise == "laplace":
            return mpmath.exp(-beyond) / 2
        return mpmath.erfc(beyond / mpmath.sqrt(2)) / 2

    def release(self, total: SparseCounts, sensitivity: Sensitivity) -> Integers:
        if sensitivity.scales.size != 1 or sensitivity.l1 != 1 or sensitivity.l2 != 1:
            raise ValueError("a threshold needs counts of which one record touches one")
        scale = float(sensitivity.scales.reshape(())) / self.amount * _OUTWARDS
        draw = sampling.gaussian if self.noise == "gaussian" else sampling.laplace
        occupied = total.cells[total.counts + draw(scale, len(total.cells)) > self.limit]
        return np.sort(np.concatenate([occupied, self._empty_ones(total, scale)]))

    def _empty_ones(self, total: SparseCounts, scale: float) -> Integers:
        """Empty cells whose noise alone exceeds the limit: a success each with probability `tail`."""

        def exact() -> mpmath.mpf:
            return -mpmath.log1p(-self.tail(scale))

        with mpmath.workprec(200):
            rate = float(exact())
        empty = total.family - len(total.cells)
        place, found = 0, []
        while (skip := sampling.geometric_skip(rate, exact, empty - place)) < empty - place:
            found.append(place + skip)
            place += skip + 1
        # The j-th empty cell comes after as many occupied ones as have at most j empty cells before them.
        ranks = np.array(found, dtype=np.int64)
        before = total.cells - np.arange(len(total.cells))
        return ranks + np.searchsorted(before, ranks, side="right")


#: How a coverage loop is calibrated: by F3 (coins, pure), by F2, or by the constants of the two papers.
ACCOUNTINGS = ("pure", "approximate", "jones", "chaturvedi")


@dataclass(frozen=True)
class Coverage:
    """Picks a set with weight exp(eta * records it holds), in as many rounds as planned, at one cost for all.

    "pure" keeps each record with probability `keep` / 2^64, by a coin that the loop tosses once, and costs
    epsilon; the others keep all records, and cost (epsilon, delta). Proofs are in `coverage.md`.
    """

    kind: ClassVar[str] = "coverage"
    covers_all_repeats: ClassVar[bool] = True
    epsilon: float
    delta: float = 0.0
    accounting: str = "pure"

    def __post_init__(self) -> None:
        if self.accounting not in ACCOUNTINGS or (self.accounting == "pure") != (self.delta == 0):
            raise ValueError("pure coverage has a delta of zero, every other accounting one above zero")

    @property
    def loss(self) -> Pure | Approximate:
        return Approximate(self.epsilon, self.delta) if self.delta else Pure(self.epsilon)

    @cached_property
    def keep(self) -> int:
        """Out of 2^64: (1 - e^-epsilon) rounded down, or everything."""
        if self.accounting != "pure":
            return 1 << 64
        with mpmath.workprec(2048):  # e^-1000 is above 2^-1443
            return int(mpmath.floor(mpmath.ldexp(-mpmath.expm1(-mpmath.mpf(self.epsilon)), 64)))

    @cached_property
    def eta(self) -> float:
        """The weight of one record, rounded down."""
        match self.accounting:
            case "pure":
                return math.log1p(math.exp(min(self.epsilon, 700.0))) * (1 - 2.0**-48)
            case "jones":
                constant = self.epsilon / (2 * math.log(math.e / self.delta))
            case "chaturvedi":
                constant = self.epsilon / (math.e * math.log(1 / self.delta))
            case _:
                constant = self.epsilon
        return min(constant, _coverage_rate(self.epsilon, self.delta))

    def pick(self, indices: Integers, counts: Integers, size: int) -> int:
        """One of `size` sets, of which only the listed ones hold records, `counts` of them.

        exp(eta c) = 1 + expm1(eta c): a uniform draw over all sets, mixed with one over those that hold
        records. Sets that hold equally many are drawn as one group first.
        """
        groups, members = _groups(counts)
        if len(groups) == 0:
            return sampling.uniform_below(size)
        most = int(groups[-1])
        heights = self.eta * groups.astype(np.float64)
        # log expm1(x) = x + log(1 - e^-x), and two ways to keep the digits of the second term.
        tails = np.where(
            heights < 0.7,
            np.log(-np.expm1(-np.minimum(heights, 1.0))),
            np.log1p(-np.exp(-np.maximum(heights, 0.5))),
        )
        logs = self.eta * (groups - most).astype(np.float64) + tails + np.log(members)

        def exact(i: int) -> mpmath.mpf:
            eta = mpmath.mpf(self.eta)
            if i == 0:
                return mpmath.log(size) - eta * most
            count = int(groups[i - 1])
            return mpmath.log(int(members[i - 1]) * mpmath.expm1(eta * count)) - eta * most

        group = sampling.categorical(np.concatenate([[math.log(size) - self.eta * most], logs]), exact)
        if group == 0:
            return sampling.uniform_below(size)
        alike = np.flatnonzero(counts == groups[group - 1])
        return int(indices[alike[sampling.uniform_below(len(alike))]])

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        """Refused: outside the probe's loop nothing keeps covered records out."""
        raise ValueError("coverage is released round by round, by measuring a Cover")


def _groups(counts: Integers) -> tuple[Integers, Integers]:
    """The different counts above zero, and how many sets have each."""
    positive = counts[counts > 0]
    if len(positive) == 0 or positive.max() > 1 << 22:
        values, members = np.unique(positive, return_counts=True)
        return values, members.astype(np.int64)
    often = np.bincount(positive)
    values = np.flatnonzero(often)
    return values, often[values]


def _coverage_rate(epsilon: float, delta: float) -> float:
    """The largest eta, at most epsilon, whose loop is (epsilon, delta)-DP by F2; less a margin."""

    def log_delta(eta: float) -> float:
        return math.log(-math.expm1(-eta)) - (epsilon + eta) / math.expm1(eta)

    low, high = 0.0, min(epsilon, 500.0)
    if log_delta(high) <= math.log(delta):
        low = high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) <= math.log(delta) else (low, middle)
    return low * (1 - 1e-9)


_KINDS: dict[str, type[Any]] = {
    m.kind: m for m in (GaussianNoise, LaplaceNoise, L2Noise, Choice, TopChoice, Threshold, Coverage)
}


def mechanism_to_json(mechanism: Mechanism) -> dict[str, Any]:
    return {"kind": mechanism.kind, **asdict(mechanism)}  # type: ignore[call-overload]  # all are dataclasses


def mechanism_from_json(data: Mapping[str, Any]) -> Mechanism:
    parameters = {name: value for name, value in data.items() if name != "kind"}
    mechanism: Mechanism = _KINDS[data["kind"]](**parameters)
    return mechanism


def threshold(loss: Gaussian | Pure, limit: int) -> Threshold:
    """The mechanism that names cells above a limit and spends this loss."""
    if isinstance(loss, Gaussian):
        return Threshold("gaussian", loss.mu, limit)
    return Threshold("laplace", loss.epsilon, limit)


def additive_noise(loss: Gaussian | Pure) -> GaussianNoise | LaplaceNoise:
    """The mechanism for counts that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else LaplaceNoise(loss.epsilon)


def vector_noise(loss: Gaussian | Pure) -> GaussianNoise | L2Noise:
    """The mechanism for sums of vectors that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else L2Noise(loss.epsilon)
