"""Mechanisms that choose by score: one index, or several different ones."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.mechanisms import sampler
from core.mechanisms.base import OUTWARDS
from core.privacy.losses import ZCDP, Pure
from core.privacy.sensitivity import Norm, Sensitivity


@dataclass(frozen=True)
class Choice:
    """Picks an index with weight exp(eta * score): epsilon-DP and of bounded range.

    eta = epsilon / (scale * linf) where the scores are monotone in the data, half of it where not.
    `in_each_row`: one index for each row of scores, where one record touches one row only.
    """

    kind: ClassVar[str] = "choice"
    norm: ClassVar[Norm] = "linf"
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
        rate = self.epsilon / (reach * OUTWARDS)
        rows = total if self.in_each_row else total.reshape(1, -1)
        return np.array([sampler.choices(scores, rate)[0] for scores in rows], dtype=np.int64)


@dataclass(frozen=True)
class TopChoice:
    """Picks in each row `picks` different entries, one after the other, with weight exp(eta * magnitude).

    One record touches one row, at most `touched` of its entries. `amount` is an epsilon, with
    eta = epsilon / (scale * linf * (picks + min(touched, picks))), or, where `concentrated`, a rho of zCDP,
    with eta = sqrt(2 * rho / picks) / (scale * linf).
    """

    kind: ClassVar[str] = "top-choice"
    norm: ClassVar[Norm] = "linf"
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
            rate = math.sqrt(2 * self.amount / self.picks) / (reach * OUTWARDS)
        else:
            rate = self.amount / (reach * (self.picks + touched) * OUTWARDS)
        return np.array([sampler.choices(np.abs(row), rate, self.picks) for row in total], dtype=np.int64)
