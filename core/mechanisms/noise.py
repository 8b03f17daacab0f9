"""Mechanisms that add noise: Gaussian, Laplace and L2-norm."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Floats, Integers
from core.mechanisms import sampler
from core.mechanisms.base import OUTWARDS
from core.privacy.losses import Gaussian, Pure
from core.privacy.sensitivity import Norm, Sensitivity


class AdditiveNoise:
    """Base of the mechanisms that add noise to every entry of a total."""

    norm: ClassVar[Norm]
    #: Standard deviations that noise of an entry, or a weighted sum of it, stays within in 95 of 100 draws.
    tail: ClassVar[float]

    def deviation(self, width: int = 1) -> float:
        """Standard deviation of an entry of scale one, in rows of this width whose `norm` is one."""
        raise NotImplementedError

    def _scales(self, total: Integers, sensitivity: Sensitivity, amount: float) -> Floats:
        """The scale of the noise in each entry: what one record moves, over the loss it may cost."""
        factor: float = getattr(sensitivity, self.norm) / amount
        if not math.isfinite(factor):
            raise ValueError("noise needs a statistic that one record moves by a bounded amount")
        return np.broadcast_to(sensitivity.scales * (factor * OUTWARDS), total.shape)


@dataclass(frozen=True)
class GaussianNoise(AdditiveNoise):
    """Adds round(N(0, (scale * l2 / mu)^2)) to every entry: mu-Gaussian DP."""

    kind: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = "l2"
    tail: ClassVar[float] = 1.96
    mu: float

    @property
    def loss(self) -> Gaussian:
        return Gaussian(self.mu)

    def deviation(self, width: int = 1) -> float:
        return 1 / self.mu

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = self._scales(total, sensitivity, self.mu)
        return total + sampler.gaussian(scales.reshape(-1), total.size).reshape(total.shape)


@dataclass(frozen=True)
class _PureNoise(AdditiveNoise):
    tail: ClassVar[float] = math.log(20) / math.sqrt(2)
    epsilon: float

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon)


@dataclass(frozen=True)
class LaplaceNoise(_PureNoise):
    """Adds rounded Laplace noise of scale scale * l1 / epsilon to every entry: epsilon-DP."""

    kind: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = "l1"

    def deviation(self, width: int = 1) -> float:
        return float(np.sqrt(2)) / self.epsilon

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        scales = self._scales(total, sensitivity, self.epsilon)
        return total + sampler.laplace(scales.reshape(-1), total.size).reshape(total.shape)


@dataclass(frozen=True)
class L2Noise(_PureNoise):
    """Adds to each row noise of density proportional to exp(-epsilon |x / scales| / l2): epsilon-DP.

    One record must touch one row only.
    """

    kind: ClassVar[str] = "l2"
    norm: ClassVar[Norm] = "l2"

    def deviation(self, width: int = 1) -> float:
        return float(np.sqrt(width + 1)) / self.epsilon

    def release(self, total: Integers, sensitivity: Sensitivity) -> Integers:
        if not sensitivity.one_block or total.ndim != 2:
            raise ValueError("the L2-norm mechanism needs a statistic of which one record touches one row")
        scales = self._scales(total, sensitivity, self.epsilon)
        return sampler.l2_vectors(total, scales, max(sensitivity.grid, _coarse_grid(scales)))


def _coarse_grid(scales: Floats) -> int:
    """Multiples that released vectors are rounded to: about a thousandth of their noise.

    A vector with one uncertain coordinate is decided in mpmath as a whole; on a fine grid most would be.
    """
    deviation = float(scales.min()) * math.sqrt(scales.shape[1])
    return 1 << max(0, math.floor(math.log2(deviation / 1024)))


def additive_noise(loss: Gaussian | Pure) -> GaussianNoise | LaplaceNoise:
    """The mechanism for counts that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else LaplaceNoise(loss.epsilon)


def vector_noise(loss: Gaussian | Pure) -> GaussianNoise | L2Noise:
    """The mechanism for sums of vectors that spends this loss."""
    return GaussianNoise(loss.mu) if isinstance(loss, Gaussian) else L2Noise(loss.epsilon)
