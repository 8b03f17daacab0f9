"""Amounts of privacy loss and balances, as exact decimals."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from cairn_client.formatting import number

#: An amount of epsilon or delta as a caller may write it.
Number = int | float | str | Decimal


def amount_text(value: Number) -> str:
    """The exact decimal to send; a float means the number that it prints as."""
    if isinstance(value, bool):
        raise ValueError("a boolean is not an amount; write a number such as 0.5")
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise ValueError(f"{value!r} is not an amount; write a number such as 0.5") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is not an amount; write a number such as 0.5")
    return format(number, "f")


@dataclass(frozen=True)
class Amount:
    """An amount of privacy loss. With the accountant `zcdp` it is `rho`, and epsilon is its equivalent."""

    epsilon: Decimal
    delta: Decimal
    rho: Decimal | None = None

    def __str__(self) -> str:
        """Rounded to six digits for people; the fields are exact."""
        name, loss = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        return f"{name} {number(loss, 6)}, delta {number(self.delta, 6)}"


@dataclass(frozen=True)
class Account:
    """The balance of a budget or a cap; `declared` is the epsilon and delta that the curator set."""

    declared: Amount
    total: Amount
    spent: Amount
    reserved: Amount
    remaining: Amount
