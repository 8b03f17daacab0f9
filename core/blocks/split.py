"""Cuts a budget between noise and choices: shares of epsilon where it is pure, of rho where it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.privacy import MARGIN, Budget, Gaussian, Pure, zcdp_rho

__all__ = ["Split"]


@dataclass(frozen=True)
class Split:
    """A budget for one of `rows_per_person` records; fractions of it add up to at most one.

    Choices have bounded range, so under zCDP one of epsilon costs epsilon^2 / 8 only.
    """

    budget: Budget
    rows_per_person: int = 1

    @property
    def _whole(self) -> float:
        """epsilon, or rho."""
        if self.budget.is_pure:
            return self.budget.epsilon * (1 - MARGIN) / self.rows_per_person
        return zcdp_rho(self.budget) / self.rows_per_person**2

    def noise(self, fraction: float, times: int = 1) -> Gaussian | Pure:
        """The loss of each of `times` noisy steps that together spend this fraction."""
        part = self._whole * fraction / times
        return Pure(part) if self.budget.is_pure else Gaussian(math.sqrt(2 * part))

    def part(self, fraction: float, times: int = 1) -> float:
        """The epsilon, or where a delta is offered the rho, of each of `times` steps of this fraction."""
        return self._whole * fraction / times

    def choice(self, fraction: float, times: int = 1) -> float:
        """The epsilon of each of `times` choices that together spend this fraction."""
        part = self._whole * fraction / times
        return part if self.budget.is_pure else math.sqrt(8 * part)
