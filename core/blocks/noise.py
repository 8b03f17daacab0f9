"""The size of the noise of a planned step."""

from __future__ import annotations

from core.mechanisms import GaussianNoise, L2Noise, LaplaceNoise
from core.plan import Plan
from core.postprocessing.spread import CountNoise


def deviation(plan: Plan, step: str, width: int = 1) -> float:
    """Standard deviation of the noise in an entry of scale one; `width` matters to vectors under pure DP."""
    mechanism = plan.step(step).mechanism
    if not isinstance(mechanism, (GaussianNoise, LaplaceNoise, L2Noise)):
        raise ValueError(f"step {step!r} adds no noise: it chooses")
    return mechanism.deviation(width)


def count_noise(plan: Plan, step: str) -> CountNoise:
    """The law of the noise in a count that this step measures."""
    return CountNoise(deviation(plan, step), isinstance(plan.step(step).mechanism, LaplaceNoise))
