"""Split a budget into the losses that single steps of a plan may incur."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from core.privacy.budget import Budget
from core.privacy.composition import MARGIN, gaussian_mu, zcdp_rho
from core.privacy.losses import Approximate, Gaussian, Pure


@dataclass(frozen=True)
class Shares:
    """A budget to be split; the fractions that are taken of it must add up to at most one.

    Without a delta, fractions are of epsilon. With one, they are of mu squared as long as every step adds
    noise, because Gaussian DP composes exactly; where some steps choose, they are of the rho of zCDP. Every
    loss is for one record: a plan composes it for `rows_per_person` records. A margin of 1e-9 is left
    unused, so that the losses still fit the budget after rounding.
    """

    budget: Budget
    rows_per_person: int = 1
    #: True where some steps choose by score.
    with_choices: bool = False

    @cached_property
    def total(self) -> float:
        """The epsilon, mu or rho of the whole budget."""
        if self.budget.is_pure:
            return self._epsilon(1.0) / self.rows_per_person
        if self.with_choices:
            return zcdp_rho(self.budget) / self.rows_per_person**2
        return gaussian_mu(self.budget) / self.rows_per_person

    def noise(self, fraction: float, times: int = 1) -> Gaussian | Pure:
        """The loss of each of `times` noisy steps that together take this fraction."""
        if self.budget.is_pure:
            return Pure(self.amount(fraction, times))
        if self.with_choices:
            return Gaussian(math.sqrt(2 * self.amount(fraction, times)))
        return Gaussian(self.total * math.sqrt(fraction / times))

    def choice(self, fraction: float, times: int = 1) -> float:
        """The epsilon of each of `times` choices: of bounded range, each costs a rho of epsilon^2 / 8."""
        amount = self.amount(fraction, times)
        return amount if self.budget.is_pure else math.sqrt(8 * amount)

    def amount(self, fraction: float, times: int = 1) -> float:
        """The epsilon, or where a delta is offered the rho, of each of `times` steps."""
        if not (self.budget.is_pure or self.with_choices):
            raise ValueError("shares of Gaussian DP are losses of noise only")
        return self.total * fraction / times

    def pure(self, fraction: float) -> Pure:
        """The loss of a pure step that takes this fraction of epsilon; `portion` is for the others."""
        return Pure(self._epsilon(fraction) / self.rows_per_person)

    def approximate(self, fraction: float, delta: float) -> Approximate:
        """The loss of an approximate step that takes these fractions of epsilon and of delta."""
        rows, epsilon = self.rows_per_person, self._epsilon(fraction)
        alone = self.budget.delta * delta * (1 - MARGIN)
        if rows > 1:
            # A group of m pays m epsilon, and delta times m e^((m-1) epsilon): below what is divided by here.
            alone /= rows * math.exp(epsilon)
        return Approximate(epsilon / rows, alone)

    def portion(self, epsilon: float, delta: float = 1.0) -> Self:
        """Shares of a part of the budget: these fractions of epsilon and of delta."""
        return replace(self, budget=Budget.at_most(self.budget.epsilon * epsilon, self.budget.delta * delta))

    def _epsilon(self, fraction: float) -> float:
        return self.budget.epsilon * fraction * (1 - MARGIN)
