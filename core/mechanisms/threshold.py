"""The mechanism that names the cells whose noisy count exceeds a limit."""

import math
from dataclasses import dataclass
from typing import ClassVar

import mpmath
import numpy as np

from core.arrays import Integers
from core.errors import InvalidRequest
from core.kernels.sparse_counts import SparseCounts
from core.mechanisms import sampler
from core.mechanisms.base import OUTWARDS
from core.privacy.losses import Gaussian, Pure
from core.privacy.sensitivity import Norm, Sensitivity

#: The farthest limit in units of 1 / amount: beyond it the chance of an empty cell would leave the range
#: of doubles.
_REACH = {"laplace": 600, "gaussian": 35}


@dataclass(frozen=True)
class Threshold:
    """Names the cells of a family whose count plus rounded noise exceeds `limit`, the empty ones included.

    `noise` is "laplace" (epsilon-DP for `amount` epsilon) or "gaussian" (mu-Gaussian DP for `amount` mu).
    Occupied cells are tried one by one; over empty ones the sampler skips, by the same law.
    """

    kind: ClassVar[str] = "threshold"
    norm: ClassVar[Norm] = "l1"
    noise: str
    amount: float
    limit: int

    def __post_init__(self) -> None:
        if self.noise not in _REACH:
            raise ValueError("the noise of a threshold is laplace or gaussian")
        if self.limit < 0:
            raise ValueError("the limit of a threshold is at least zero")
        if self.amount * (self.limit + 0.5) > _REACH[self.noise]:
            most = math.floor(_REACH[self.noise] / self.amount - 0.5)
            raise InvalidRequest(
                f"a threshold of {self.limit} is out of reach of its noise: choose at most {max(most, 0)}",
                parameter="threshold",
            )

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
        scale = float(sensitivity.scales.reshape(())) / self.amount * OUTWARDS
        draw = sampler.gaussian if self.noise == "gaussian" else sampler.laplace
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
        while (skip := sampler.geometric_skip(rate, exact, empty - place)) < empty - place:
            found.append(place + skip)
            place += skip + 1
        # The j-th empty cell comes after as many occupied ones as have at most j empty cells before them.
        ranks = np.array(found, dtype=np.int64)
        before = total.cells - np.arange(len(total.cells))
        return ranks + np.searchsorted(before, ranks, side="right")


def threshold(loss: Gaussian | Pure, limit: int) -> Threshold:
    """The mechanism that names cells above a limit and spends this loss."""
    if isinstance(loss, Gaussian):
        return Threshold("gaussian", loss.mu, limit)
    return Threshold("laplace", loss.epsilon, limit)
