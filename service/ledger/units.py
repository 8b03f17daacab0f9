"""Costs and balances in whole units of the dataset's currency.

Epsilon and rho are counted in units of 1e-12, delta in units of 1e-18, as integers, so sums and the
database's CHECK never round. Decimals become units, exactly or not at all, in `core.privacy`.
"""

from __future__ import annotations

from dataclasses import dataclass

#: The largest BIGINT of both databases.
LARGEST_UNITS = 2**63 - 1


@dataclass(frozen=True)
class Cost:
    """A loss in the currency of the dataset's accountant, in units of 1e-12, and delta in units of 1e-18."""

    loss: int
    delta: int

    def __post_init__(self) -> None:
        if min(self.loss, self.delta) < 0 or max(self.loss, self.delta) > LARGEST_UNITS:
            raise ValueError("an amount must lie between 0 and 2**63 - 1 units")

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.loss + other.loss, self.delta + other.delta)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.loss - other.loss, self.delta - other.delta)

    def fits(self, room: Cost) -> bool:
        """Return True when both parts fit into `room`."""
        return self.loss <= room.loss and self.delta <= room.delta

    def at_most(self, other: Cost) -> Cost:
        """Return the smaller of both, part by part."""
        return Cost(min(self.loss, other.loss), min(self.delta, other.delta))


NOTHING = Cost(0, 0)
