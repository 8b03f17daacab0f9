"""The privacy loss of one mechanism to one record, or to a group of records."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
    """mu-Gaussian DP: at least as hard to distinguish as N(0, 1) and N(mu, 1)."""

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
