"""Budgets, losses and the arithmetic between them: compose, calibrate, convert.

A `Budget` is what somebody may spend, in exact integer units. A *loss* is what one mechanism
costs to one record. `compose` adds losses; the result answers which (epsilon, delta) they amount
to. Pure losses are added exactly; every other computed number is moved to the safe side by more
than floating point can err. The formulas and their sources are in `privacy.md` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Self

from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from core.errors import InvalidBudget

__all__ = [
    "DELTA_UNIT",
    "EPSILON_UNIT",
    "RHO_UNIT",
    "ZCDP",
    "Approximate",
    "Budget",
    "Composition",
    "Gaussian",
    "Loss",
    "Pure",
    "Shares",
    "compose",
    "default_delta",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "rho_to_delta",
    "rho_to_epsilon",
    "to_units",
    "units_text",
    "units_up",
    "zcdp_rho",
]

EPSILON_UNIT = 10**12
RHO_UNIT = 10**12
DELTA_UNIT = 10**18

#: Relative error allowed to sums and transcendental functions; losses are enlarged by it.
ROUNDING = 1e-12
#: A delta that doubles cannot hold is not zero: noise without bounds never makes a pure guarantee.
LEAST_DELTA = 1e-300
#: What a calibrated loss leaves unused, so that its parts still fit after rounding.
MARGIN = 1e-9

#: Above this epsilon a guarantee means nothing and the formulas leave the range of doubles.
LARGEST_EPSILON = 1000

#: Doubles end at 1e-324; a longer tail of decimals only costs time.
FINEST_DECIMAL = 400

Amount = str | int | float | Decimal


def to_units(amount: Amount, unit: int, name: str, *, rounding_down: bool = False) -> int:
    """The amount as a whole number of units; a float counts as the decimal it prints as."""
    if isinstance(amount, bool):
        raise InvalidBudget(f"{name} must be a number, not a boolean", parameter=name)
    try:
        value = Decimal(repr(float(amount)) if isinstance(amount, float) else amount)
    except (InvalidOperation, TypeError, ValueError):
        raise InvalidBudget(f"{name} must be a number", parameter=name) from None
    if not value.is_finite():
        raise InvalidBudget(f"{name} must be finite", parameter=name)
    if value.adjusted() > 30:
        raise InvalidBudget(f"{name} is too large", parameter=name)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -FINEST_DECIMAL:
        raise InvalidBudget(f"{name} has more than {FINEST_DECIMAL} decimals: use fewer", parameter=name)
    scaled = Fraction(value) * unit  # exact, however many digits were written
    if scaled.denominator != 1 and not rounding_down:
        raise InvalidBudget(
            f"{name} must be a whole number of units of {Decimal(1) / unit}: use fewer decimals",
            parameter=name,
        )
    return math.floor(scaled)


def units_text(units: int, unit: int) -> str:
    """The units as a plain decimal string without trailing zeros."""
    text = format(Decimal(units).scaleb(-(len(str(unit)) - 1)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def units_up(amount: float, unit: int) -> int:
    """A computed cost as units, rounded up."""
    return math.ceil(Fraction(amount) * unit)


@dataclass(frozen=True, order=False)
class Budget:
    """An (epsilon, delta) that may be spent, in whole units."""

    epsilon_units: int
    delta_units: int = 0

    def __post_init__(self) -> None:
        if self.epsilon_units <= 0:
            raise InvalidBudget("epsilon must be greater than zero", parameter="epsilon")
        if self.epsilon_units > LARGEST_EPSILON * EPSILON_UNIT:
            raise InvalidBudget(f"epsilon must be at most {LARGEST_EPSILON}", parameter="epsilon")
        if not 0 <= self.delta_units < DELTA_UNIT:
            raise InvalidBudget("delta must be at least 0 and below 1", parameter="delta")

    @classmethod
    def of(cls, epsilon: Amount, delta: Amount = 0) -> Self:
        """Exactly these amounts; refused where they are not whole numbers of units."""
        return cls(to_units(epsilon, EPSILON_UNIT, "epsilon"), to_units(delta, DELTA_UNIT, "delta"))

    @classmethod
    def at_most(cls, epsilon: Amount, delta: Amount = 0) -> Self:
        """The largest budget in whole units that does not exceed these (computed) amounts."""
        return cls(
            to_units(epsilon, EPSILON_UNIT, "epsilon", rounding_down=True),
            to_units(delta, DELTA_UNIT, "delta", rounding_down=True),
        )

    @property
    def epsilon(self) -> float:
        return self.epsilon_units / EPSILON_UNIT

    @property
    def delta(self) -> float:
        return self.delta_units / DELTA_UNIT

    @property
    def is_pure(self) -> bool:
        return self.delta_units == 0

    @property
    def epsilon_text(self) -> str:
        return units_text(self.epsilon_units, EPSILON_UNIT)

    @property
    def delta_text(self) -> str:
        return units_text(self.delta_units, DELTA_UNIT)


def default_delta(size: int) -> float:
    """The delta that is used when none is given: a function of the public size alone."""
    return min(1e-6, 1 / (10 * size))


@dataclass(frozen=True)
class Pure:
    """epsilon-DP. `bounded_range`: an exponential mechanism, whose zCDP cost is four times less."""

    epsilon: float
    bounded_range: bool = False

    def __post_init__(self) -> None:
        _require_loss(self.epsilon)

    @property
    def rho(self) -> float:
        return self.epsilon**2 / (8 if self.bounded_range else 2)

    def for_group(self, records: int) -> Pure:
        return Pure(self.epsilon * records, self.bounded_range)


@dataclass(frozen=True)
class Gaussian:
    """mu-Gaussian DP: no easier to tell apart than N(0, 1) from N(mu, 1)."""

    mu: float

    def __post_init__(self) -> None:
        _require_loss(self.mu)

    @property
    def rho(self) -> float:
        return self.mu**2 / 2

    def for_group(self, records: int) -> Gaussian:
        return Gaussian(self.mu * records)


@dataclass(frozen=True)
class ZCDP:
    """rho-zero-concentrated DP."""

    rho: float

    def __post_init__(self) -> None:
        _require_loss(self.rho)

    def for_group(self, records: int) -> ZCDP:
        return ZCDP(self.rho * records**2)


@dataclass(frozen=True)
class Approximate:
    """(epsilon, delta)-DP with nothing more known about it."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _require_loss(self.epsilon)
        if not 0 < self.delta < 1:
            raise ValueError("an approximate loss has a delta between 0 and 1")

    def for_group(self, records: int) -> Approximate:
        if records == 1:
            return self
        epsilon = self.epsilon * records
        return Approximate(epsilon, min(self.delta * records * math.exp(epsilon - self.epsilon), 1 - 1e-15))


Loss = Pure | Gaussian | ZCDP | Approximate


def _require_loss(value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError("a loss is finite and greater than zero")


@dataclass(frozen=True)
class Composition:
    """What several losses amount to together."""

    mu_squared: float
    pure: Fraction
    pure_rho: float
    zcdp_rho: float
    approximate_epsilon: Fraction
    approximate_delta: Fraction
    approximate_rho: float

    @property
    def rho(self) -> float:
        """The zCDP cost: all of it except on events of probability `approximate_delta`."""
        return (self.mu_squared / 2 + self.pure_rho + self.zcdp_rho + self.approximate_rho) * (1 + ROUNDING)

    @property
    def is_pure(self) -> bool:
        return self.mu_squared == 0 and self.zcdp_rho == 0 and self.approximate_delta == 0

    @property
    def pure_epsilon(self) -> Fraction:
        """The exact epsilon of a composition that is pure."""
        if not self.is_pure:
            raise ValueError("only a pure composition has a pure epsilon")
        return self.pure

    def delta_at(self, epsilon: float | Fraction) -> float:
        """A delta for which (epsilon, delta)-DP holds; 1 where none is known."""
        exact = Fraction(epsilon)
        left = exact - self.approximate_epsilon - self.pure
        spent = float(self.approximate_delta) * (1 + ROUNDING)
        if self.mu_squared == 0 and self.zcdp_rho == 0 and left >= 0:
            return spent
        candidates = [rho_to_delta(self.rho, float(exact) * (1 - ROUNDING))]
        if left > 0:
            rest = float(left) * (1 - ROUNDING)
            if self.zcdp_rho == 0:
                candidates.append(gaussian_delta(math.sqrt(self.mu_squared) * (1 + ROUNDING), rest))
            else:
                candidates.append(rho_to_delta((self.mu_squared / 2 + self.zcdp_rho) * (1 + ROUNDING), rest))
        return min(1.0, min(candidates) + spent)

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon (to a relative 1e-9, rounded up) known to hold at this delta."""
        if self.delta_at(0) <= delta:
            return 0.0
        high = 1.0
        while self.delta_at(high) > delta:
            high *= 2
            if high > 1e7:
                return math.inf
        low = 0.0
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta_at(middle) <= delta else (middle, high)
        return high

    def within(self, budget: Budget) -> bool:
        """Whether everything together keeps the budget's promise."""
        epsilon = Fraction(budget.epsilon_units, EPSILON_UNIT)
        return self.delta_at(epsilon) <= budget.delta


def compose(losses: Iterable[tuple[Loss, int]]) -> Composition:
    """The composition of losses, each with how often it is incurred."""
    mu_squared, pure_rho, zcdp_rho, approximate_rho = [], [], [], []
    pure = approximate_epsilon = approximate_delta = Fraction(0)
    for loss, times in losses:
        match loss:
            case Gaussian(mu):
                mu_squared.append(mu * mu * times)
            case Pure(epsilon):
                pure += Fraction(epsilon) * times
                pure_rho.append(loss.rho * times)
            case ZCDP(rho):
                zcdp_rho.append(rho * times)
            case Approximate(epsilon, delta):
                approximate_epsilon += Fraction(epsilon) * times
                approximate_delta += Fraction(delta) * times
                approximate_rho.append(epsilon**2 / 2 * times)
    return Composition(
        math.fsum(mu_squared),
        pure,
        math.fsum(pure_rho),
        math.fsum(zcdp_rho),
        approximate_epsilon,
        approximate_delta,
        math.fsum(approximate_rho),
    )


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of mu-Gaussian DP at epsilon, rounded up."""
    if mu == 0:
        return 0.0
    likely = math.exp(log_ndtr(mu / 2 - epsilon / mu))
    difference = likely - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
    return max(difference, 0.0) + 1e-13 * likely * (1 + epsilon) + LEAST_DELTA


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-Gaussian DP at delta, rounded up."""
    return compose([(Gaussian(mu), 1)]).epsilon_at(delta)


def rho_to_delta(rho: float, epsilon: float) -> float:
    """The delta of rho-zCDP at epsilon: the best order `a`; any order is valid, so no rounding is needed."""
    if rho == 0:
        return 0.0

    def log_delta(log_order: float) -> float:
        over = math.exp(log_order)
        order = 1 + over
        return over * (order * rho - epsilon) - order * math.log1p(1 / over) - math.log(over)

    return min(1.0, math.exp(_minimum(log_delta)) * (1 + 1e-9) + LEAST_DELTA)


def rho_to_epsilon(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP at delta."""
    if not 0 < delta < 1:
        raise ValueError("zCDP converts at a delta between 0 and 1")

    def epsilon(log_order: float) -> float:
        over = math.exp(log_order)
        order = 1 + over
        return order * rho - (order * math.log1p(1 / over) + math.log(over) + math.log(delta)) / over

    return max(0.0, _minimum(epsilon)) * (1 + ROUNDING)


def _minimum(function: Callable[[float], float]) -> float:
    """The least value over log orders: a coarse grid, then a bounded search about its best point."""
    grid = [-12 + 0.25 * i for i in range(130)]
    best = min(grid, key=function)
    result = minimize_scalar(
        function, bounds=(best - 0.25, best + 0.25), method="bounded", options={"xatol": 1e-12}
    )
    return min(function(best), float(result.fun))


def gaussian_mu(budget: Budget) -> float:
    """The largest mu whose Gaussian DP keeps the budget, less a margin."""
    if budget.is_pure:
        raise InvalidBudget("Gaussian noise needs a delta above zero", parameter="delta")
    return _largest(lambda mu: gaussian_delta(mu, budget.epsilon), budget.delta)


def zcdp_rho(budget: Budget) -> float:
    """The largest rho whose zCDP keeps the budget, less a margin."""
    if budget.is_pure:
        raise InvalidBudget("zCDP needs a delta above zero", parameter="delta")
    return _largest(lambda rho: rho_to_delta(rho, budget.epsilon), budget.delta)


def _largest(delta_of: Callable[[float], float], delta: float) -> float:
    """The largest loss whose delta stays at or below `delta`, in logarithmic bisection."""

    def excess(log_loss: float) -> float:
        return math.log(max(delta_of(math.exp(log_loss)), 1e-300)) - math.log(delta)

    low, high = -30.0, 8.0
    if excess(low) > 0:
        raise InvalidBudget("this epsilon and delta are too small to plan with", parameter="epsilon")
    root = brentq(excess, low, high, xtol=1e-13, rtol=1e-14)
    return math.exp(float(root)) * (1 - MARGIN)


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
