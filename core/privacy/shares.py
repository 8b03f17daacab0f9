"""Split a budget into shares: the losses that single steps of a plan may incur."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.privacy.budget import Budget
from core.privacy.conversions import MARGIN, gaussian_mu, zcdp_rho
from core.privacy.losses import Gaussian, Pure


@dataclass(frozen=True)
class Shares:
    """A budget to be cut into shares: of mu squared where a delta is offered, of epsilon where not.

    Shares are for one record; a plan composes them for `rows_per_person` records.
    """

    budget: Budget
    rows_per_person: int = 1

    @property
    def total(self) -> float:
        """mu, or epsilon, of the whole."""
        if self.budget.is_pure:
            return self.budget.epsilon * (1 - MARGIN) / self.rows_per_person
        return gaussian_mu(self.budget) / self.rows_per_person

    def of(self, fraction: float) -> Gaussian | Pure:
        """The loss that is this fraction of the whole; fractions add up to at most one."""
        if self.budget.is_pure:
            return Pure(self.total * fraction)
        return Gaussian(self.total * math.sqrt(fraction))


@dataclass(frozen=True)
class Split:
    """A budget for one of `rows_per_person` records; fractions of it add up to at most one.

    Choices have bounded range, so under zCDP one of epsilon costs epsilon^2 / 8 only.
    """

    budget: Budget
    rows_per_person: int = 1

    @property
    def whole(self) -> float:
        """epsilon, or rho."""
        if self.budget.is_pure:
            return self.budget.epsilon * (1 - MARGIN) / self.rows_per_person
        return zcdp_rho(self.budget) / self.rows_per_person**2

    def noise(self, fraction: float, times: int = 1) -> Gaussian | Pure:
        """The loss of each of `times` noisy steps that together spend this fraction."""
        part = self.whole * fraction / times
        return Pure(part) if self.budget.is_pure else Gaussian(math.sqrt(2 * part))

    def part(self, fraction: float, times: int = 1) -> float:
        """The epsilon, or where a delta is offered the rho, of each of `times` steps of this fraction."""
        return self.whole * fraction / times

    def choice(self, fraction: float, times: int = 1) -> float:
        """The epsilon of each of `times` choices that together spend this fraction."""
        part = self.whole * fraction / times
        return part if self.budget.is_pure else math.sqrt(8 * part)
