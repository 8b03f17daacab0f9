"""How large the noise of a planned step is: what post-processing needs to weigh released values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

from core.mechanisms import GaussianNoise, L2Noise, LaplaceNoise
from core.plan import Plan

__all__ = ["CountNoise", "deviation"]


def deviation(plan: Plan, step: str, width: int = 1) -> float:
    """Standard deviation of the noise in an entry of scale one; `width` matters to vectors under pure DP."""
    mechanism = plan.step(step).mechanism
    if not isinstance(mechanism, (GaussianNoise, LaplaceNoise, L2Noise)):
        raise ValueError(f"step {step!r} adds no noise: it chooses")
    return mechanism.deviation(width)


@dataclass(frozen=True)
class CountNoise:
    """The law of the noise in one count: what may well be noise, and what hardly can be."""

    deviation: float
    #: Laplace noise has the longer tails: the same chance lies more standard deviations out.
    long_tails: bool

    @classmethod
    def of(cls, plan: Plan, step: str) -> CountNoise:
        return cls(deviation(plan, step), isinstance(plan.step(step).mechanism, LaplaceNoise))

    def beyond(self, chance: float, terms: float = 1.0) -> float:
        """What the sum of so many noises exceeds with (about) this chance, over the root of `terms`.

        Exact for one term and for Gaussian noise. A sum of Laplace noises approaches the normal law with one
        over the root of its terms, which is how far its quantile is taken to be on the way here.
        """
        normal = -float(ndtri(chance))
        if not self.long_tails:
            return self.deviation * normal
        alone = math.log(0.5 / chance) / math.sqrt(2.0)
        return self.deviation * (normal + (alone - normal) / math.sqrt(terms))
