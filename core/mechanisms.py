"""How a statistic is released: mechanisms that know their loss and add exact noise to declared scales.

A mechanism is fixed by the plan and knows no data. At a measurement it receives the exact integer total and
the statistic's declared sensitivity, and returns the only thing that leaves. The loss is the same for every
total, every released scale and every shape. Each mechanism's argument is in `mechanisms.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from core import sampling
from core.privacy import Gaussian, Loss, Pure
from core.sensitivity import Sensitivity

__all__ = [
    "Choice",
    "GaussianNoise",
    "L2Noise",
    "LaplaceNoise",
    "Mechanism",
    "additive_noise",
    "vector_noise",
]

Integers = npt.NDArray[np.int64]

#: Quotients of doubles are rounded; scales are enlarged (rates lowered) by more than that.
_OUTWARDS = 1 + 2.0**-50


@runtime_checkable
class Mechanism(Protocol):
    """A randomised function of a total; a frozen dataclass of JSON numbers."""

    kind: ClassVar[str]

    @property
    def loss(self) -> Loss:
        """What one use costs one record."""

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers: ...


def _scales(sensitivity: Sensitivity, shape: tuple[int, ...], factor: float) -> npt.NDArray[np.float64]:
    return np.broadcast_to(sensitivity.scales * (factor * _OUTWARDS), shape).reshape(-1)


@dataclass(frozen=True)
class GaussianNoise:
    """Adds round(N(0, (scale * l2 / mu)^2)) to every entry: mu-Gaussian DP."""

    kind: ClassVar[str] = "gaussian"
    mu: float

    @property
    def loss(self) -> Gaussian:
        return Gaussian(self.mu)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one (`width` is of no account here)."""
        return 1 / self.mu

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = _scales(sensitivity, total.shape, sensitivity.l2 / self.mu)
        return total + sampling.gaussian(scales, total.size).reshape(total.shape)


@dataclass(frozen=True)
class LaplaceNoise:
    """Adds rounded Laplace noise of scale scale * l1 / epsilon to every entry: epsilon-DP."""

    kind: ClassVar[str] = "laplace"
    epsilon: float

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one in a statistic whose l1 is one."""
        return float(np.sqrt(2)) / self.epsilon

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = _scales(sensitivity, total.shape, sensitivity.l1 / self.epsilon)
        return total + sampling.laplace(scales, total.size).reshape(total.shape)


@dataclass(frozen=True)
class L2Noise:
    """Adds to each row noise of density proportional to exp(-epsilon |x| / (scale * l2)): epsilon-DP.

    One record must touch one row only. The scales of a row may differ by entry: the density is that of the
    rescaled row.
    """

    kind: ClassVar[str] = "l2"
    epsilon: float

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one in rows of this width."""
        return float(np.sqrt(width + 1)) / self.epsilon

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        if not sensitivity.one_block or total.ndim != 2:
            raise ValueError("the L2-norm mechanism needs a statistic of which one record touches one row")
        scales = np.broadcast_to(sensitivity.scales, total.shape)
        if np.any(scales != scales[:, :1]):
            raise ValueError("the L2-norm mechanism needs one scale for each row")
        widths = scales[:, 0] * (sensitivity.l2 / self.epsilon * _OUTWARDS)
        return sampling.l2_vectors(total, widths, sensitivity.grid)


@dataclass(frozen=True)
class Choice:
    """Picks an index with weight exp(eta * score): epsilon-DP and of bounded range.

    eta = epsilon / (scale * linf) where the scores are monotone in the data, half of it where not.
    """

    kind: ClassVar[str] = "choice"
    epsilon: float

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon, bounded_range=True)

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        if sensitivity.scales.size != 1:
            raise ValueError("scores are compared with each other and need one scale")
        reach = float(sensitivity.scales.reshape(())) * sensitivity.linf * (1 if sensitivity.monotone else 2)
        picked = sampling.choice(total.reshape(-1), self.epsilon / (reach * _OUTWARDS))
        return np.array([picked], dtype=np.int64)


_KINDS: dict[str, type[Any]] = {m.kind: m for m in (GaussianNoise, LaplaceNoise, L2Noise, Choice)}


def mechanism_to_json(mechanism: Mechanism) -> dict[str, Any]:
    return {"kind": mechanism.kind, **asdict(mechanism)}  # type: ignore[call-overload]  # all are dataclasses


def mechanism_from_json(data: Mapping[str, Any]) -> Mechanism:
    parameters = {name: value for name, value in data.items() if name != "kind"}
    mechanism: Mechanism = _KINDS[data["kind"]](**parameters)
    return mechanism


def additive_noise(loss: Gaussian | Pure) -> GaussianNoise | LaplaceNoise:
    """The mechanism for counts that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else LaplaceNoise(loss.epsilon)


def vector_noise(loss: Gaussian | Pure) -> GaussianNoise | L2Noise:
    """The mechanism for sums of vectors that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else L2Noise(loss.epsilon)
