"""The regime for pure epsilon: fewer rounds, since Laplace noise grows with their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from core.algorithms.summit.exploration import enough_seeds
from core.algorithms.summit.exploring import (
    LEAST_MOMENTS,
    MOST_MOMENTS,
    Exploring,
    Weights,
    moments_wanted,
)
from core.algorithms.summit.signal import Signal

MOMENTS_NOISE = 0.05  # Share of the signal below which the noise of second moments must be.


def moments_tell(columns: int, signal: Signal) -> bool:
    """Whether second moments of this many columns stand out from Laplace noise."""
    noise = columns**1.5 / (LEAST_MOMENTS * signal.size * signal.shares.total)
    return columns > 1 and noise < MOMENTS_NOISE


def moments_weight(columns: int, power: float) -> float:
    """The weight of second moments; not less of few columns, since their noise is larger."""
    return min(max(moments_wanted(columns, power), LEAST_MOMENTS), MOST_MOMENTS)


@dataclass(frozen=True, kw_only=True)
class PureEpsilon(Exploring):
    """As exploring, under pure epsilon: one exploring round, and the columns themselves if moments drown."""

    @classmethod
    def suits(cls, signal: Signal) -> bool:
        return signal.pure

    @classmethod
    def tuned(cls, signal: Signal, reserved: float = 0.0) -> Self:
        told = moments_tell(signal.width, signal)
        moments = moments_weight(signal.width, signal.power) if told else 0.0
        return cls.divided(signal, Weights(moments), reserved)

    @classmethod
    def rounds_for(cls, signal: Signal) -> tuple[int, int]:
        return (1, 2) if signal.plenty else (1, 1)

    @classmethod
    def seeds_for(cls, signal: Signal) -> int:
        return enough_seeds(signal.k)
