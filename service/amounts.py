"""Exact amounts of privacy loss: whole units inside, decimal strings on the wire.

Epsilon and rho are counted in units of 1e-12, delta in units of 1e-18, as integers, so sums and the
database's CHECK never round. A decimal that is not a whole number of units is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

__all__ = ["DELTA_PLACES", "LOSS_PLACES", "Cost", "parse_units", "units_text"]

LOSS_PLACES = 12
DELTA_PLACES = 18
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Cost:
    """What a plan costs, or what an account holds, in the currency of its dataset's accountant.

    `loss` is epsilon (accountant `sum`) or rho (accountant `zcdp`) in units of 1e-12; `delta` is in
    units of 1e-18.
    """

    loss: int
    delta: int

    def __post_init__(self) -> None:
        if min(self.loss, self.delta) < 0 or max(self.loss, self.delta) > _LARGEST:
            raise ValueError("an amount must lie between 0 and 2**63 - 1 units")

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.loss + other.loss, self.delta + other.delta)

    def fits(self, room: Cost) -> bool:
        """True when both parts fit into `room`."""
        return self.loss <= room.loss and self.delta <= room.delta


def parse_units(value: str | int | float | Decimal, places: int) -> int:
    """The whole number of units in a decimal; ValueError when it is not a whole number of them."""
    if isinstance(value, bool):
        raise ValueError('a boolean is not an amount; write a decimal such as "0.5"')
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, ValueError) as error:
        raise ValueError('an amount must be a decimal number such as "0.5"') from error
    if not number.is_finite() or number < 0:
        raise ValueError("an amount must be finite and at least 0")
    if number.adjusted() > 18:
        raise ValueError("an amount this large is not supported; use at most 1000000")
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + places
    whole = int("".join(map(str, digits)))
    if whole == 0:
        return 0
    if len(digits) < -shift:
        raise ValueError(f"an amount must be a whole number of units of 1e-{places}")
    if shift >= 0:
        units = whole * int(10**shift)
    else:
        units, rest = divmod(whole, int(10**-shift))
        if rest:
            raise ValueError(f"an amount must be a whole number of units of 1e-{places}")
    if units > _LARGEST:
        raise ValueError("an amount this large is not supported; use at most 1000000")
    return units


def units_text(units: int, places: int) -> str:
    """The exact decimal of a number of units, without exponent or trailing zeros."""
    sign = "-" if units < 0 else ""
    whole, rest = divmod(abs(units), 10**places)
    if not rest:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{rest:0{places}d}".rstrip("0")
