"""Mechanisms that add noise: Gaussian, Laplace and L2-norm."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Integers
from core.mechanisms import sampler
from core.mechanisms.base import OUTWARDS
from core.privacy import Gaussian, Norm, Pure, Sensitivity


def _scales(sensitivity: Sensitivity, shape: tuple[int, ...], factor: float) -> npt.NDArray[np.float64]:
    if not math.isfinite(factor):
        raise ValueError("noise needs a statistic that one record moves by a bounded amount")
    return np.broadcast_to(sensitivity.scales * (factor * OUTWARDS), shape).reshape(-1)


@dataclass(frozen=True)
class GaussianNoise:
    """Adds round(N(0, (scale * l2 / mu)^2)) to every entry: mu-Gaussian DP."""

    kind: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = "l2"
    mu: float

    @property
    def loss(self) -> Gaussian:
        return Gaussian(self.mu)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one (independent of `width`)."""
        return 1 / self.mu

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = _scales(sensitivity, total.shape, sensitivity.l2 / self.mu)
        return total + sampler.gaussian(scales, total.size).reshape(total.shape)


@dataclass(frozen=True)
class LaplaceNoise:
    """Adds rounded Laplace noise of scale scale * l1 / epsilon to every entry: epsilon-DP."""

    kind: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = "l1"
    epsilon: float

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one in a statistic whose l1 is one."""
        return float(np.sqrt(2)) / self.epsilon

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = _scales(sensitivity, total.shape, sensitivity.l1 / self.epsilon)
        return total + sampler.laplace(scales, total.size).reshape(total.shape)


@dataclass(frozen=True)
class L2Noise:
    """Adds to each row noise of density proportional to exp(-epsilon |x / scales| / l2): epsilon-DP.

    One record must touch one row only.
    """

    kind: ClassVar[str] = "l2"
    norm: ClassVar[Norm] = "l2"
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
        scales = _scales(sensitivity, total.shape, sensitivity.l2 / self.epsilon).reshape(total.shape)
        return sampler.l2_vectors(total, scales, max(sensitivity.grid, _coarse_grid(scales)))


def _coarse_grid(scales: npt.NDArray[np.float64]) -> int:
    """Multiples that released vectors are rounded to: about a thousandth of their noise.

    A vector with one uncertain coordinate is decided in mpmath, as a whole. On a fine grid that would happen
    to nearly every vector of tens of thousands of coordinates, and take minutes.
    """
    deviation = float(scales.min()) * math.sqrt(scales.shape[1])
    return 1 << max(0, math.floor(math.log2(deviation / 1024)))


def additive_noise(loss: Gaussian | Pure) -> GaussianNoise | LaplaceNoise:
    """The mechanism for counts that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else LaplaceNoise(loss.epsilon)


def vector_noise(loss: Gaussian | Pure) -> GaussianNoise | L2Noise:
    """The mechanism for sums of vectors that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else L2Noise(loss.epsilon)
