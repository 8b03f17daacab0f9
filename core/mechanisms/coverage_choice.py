"""The mechanism of a coverage loop: picks of sets, at one cost for all rounds."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import mpmath
import numpy as np

from core.arrays import Integers
from core.mechanisms import sampler
from core.privacy.losses import Approximate, Pure
from core.privacy.sensitivity import Norm, Sensitivity

#: Calibrations of a coverage loop: by F3 (coins, pure), by F2, or by the constants of the two papers.
ACCOUNTINGS = ("pure", "approximate", "jones", "chaturvedi")


@dataclass(frozen=True)
class CoverageChoice:
    """Picks a set with weight exp(eta * records it holds), in as many rounds as planned, at one cost for all.

    "pure" keeps each record with probability `keep` / 2^64, by a coin that the loop tosses once, and costs
    epsilon; the others keep all records, and cost (epsilon, delta). Proofs: `core/coverage/loop.md`.
    """

    kind: ClassVar[str] = "coverage"
    norm: ClassVar[Norm] = "linf"
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
        groups, members = np.unique(counts[counts > 0], return_counts=True)
        if len(groups) == 0:
            return sampler.uniform_below(size)
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

        group = sampler.categorical(np.concatenate([[math.log(size) - self.eta * most], logs]), exact)
        if group == 0:
            return sampler.uniform_below(size)
        alike = np.flatnonzero(counts == groups[group - 1])
        return int(indices[alike[sampler.uniform_below(len(alike))]])

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        """Refused: outside the probe's loop nothing keeps covered records out."""
        raise ValueError("coverage is released round by round, by measuring a Cover")


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
