"""All mechanisms by which statistics are released."""

from core.mechanisms.base import Mechanism
from core.mechanisms.choice import Choice, TopChoice
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.kinds import mechanism_from_json, mechanism_to_json
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise, additive_noise, vector_noise
from core.mechanisms.threshold import Threshold, threshold

__all__ = [
    "Choice",
    "CoverageChoice",
    "GaussianNoise",
    "L2Noise",
    "LaplaceNoise",
    "Mechanism",
    "Threshold",
    "TopChoice",
    "additive_noise",
    "mechanism_from_json",
    "mechanism_to_json",
    "threshold",
    "vector_noise",
]
