"""Budgets in exact integer units: an (epsilon, delta) that somebody may spend."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Self

from core.errors import InvalidBudget

EPSILON_UNIT = 10**12
RHO_UNIT = 10**12
DELTA_UNIT = 10**18
#: Above this epsilon a guarantee means nothing and the formulas leave the range of doubles.
LARGEST_EPSILON = 1000
#: Doubles end at 1e-324; a longer tail of decimals only costs time.
FINEST_DECIMAL = 400
Amount = str | int | float | Decimal
#: `Decimal` would also take other scripts' digits, underscores and surrounding white space.
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def to_units(amount: Amount, unit: int, name: str, *, rounding_down: bool = False) -> int:
    """The amount as a whole number of units; a float counts as the decimal it prints as."""
    if isinstance(amount, bool):
        raise InvalidBudget(f"{name} must be a number, not a boolean", parameter=name)
    try:
        if isinstance(amount, str) and not _DECIMAL.fullmatch(amount):
            raise ValueError(amount)
        value = Decimal(repr(float(amount)) if isinstance(amount, float) else amount)
    except (InvalidOperation, TypeError, ValueError):
        raise InvalidBudget(f"{name} must be a number: write decimals with a point", parameter=name) from None
    if not value.is_finite():
        raise InvalidBudget(f"{name} must be finite", parameter=name)
    if value.adjusted() > 30:
        raise InvalidBudget(f"{name} is too large", parameter=name)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -FINEST_DECIMAL:
        raise InvalidBudget(f"{name} has more than {FINEST_DECIMAL} decimals: use fewer", parameter=name)
    scaled = Fraction(value) * unit  # exact, however many digits were written
    if scaled.denominator != 1 and not rounding_down:
        wanted = f"a whole number of units of {Decimal(1) / unit}: use fewer decimals"
        raise InvalidBudget(f"{name} must be {wanted}", parameter=name)
    return math.floor(scaled)


def units_text(units: int, unit: int) -> str:
    """The units as a plain decimal string without trailing zeros."""
    text = format(Decimal(units).scaleb(-(len(str(unit)) - 1)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def units_up(amount: float, unit: int) -> int:
    """A computed cost as units, rounded up."""
    return math.ceil(Fraction(amount) * unit)


@dataclass(frozen=True)
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
