"""Epsilons that compositions keep, and options that algorithms cannot do without."""

import math
from typing import Any

import numpy as np

from core.algorithms.base import Algorithm
from core.algorithms.papers.base import SiteAlgorithm
from core.data import Dense, Ids, Stored
from core.privacy.composition import Composition, compose
from core.privacy.losses import Gaussian


def is_pure(whole: Composition) -> bool:
    """True if a composition costs no delta at the sum of its pure losses."""
    return whole.mu_squared == 0 and whole.zcdp_rho == 0 and whole.approximate_delta == 0


def epsilon_at(whole: Composition, delta: float) -> float:
    """The smallest epsilon (to a relative 1e-9, rounded up) known to hold at this delta."""
    if whole.delta_at(0) <= delta:
        return 0.0
    high = 1.0
    while whole.delta_at(high) > delta:
        high *= 2
        if high > 1e7:
            return math.inf
    low = 0.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if whole.delta_at(middle) <= delta else (middle, high)
    return high


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-Gaussian DP at delta, rounded up."""
    return epsilon_at(compose([(Gaussian(mu), 1)]), delta)


def example_options(algorithm: Algorithm, domain: Stored) -> dict[str, Any]:
    """Required options for a small example on this domain: sites, where the algorithm needs them."""
    if not isinstance(algorithm, SiteAlgorithm):
        return {}
    if isinstance(domain, Ids):
        places = np.arange(domain.count, dtype=float)
        return {"sites": {"kind": "distances", "matrix": np.abs(places[:, None] - places).tolist()}}
    assert isinstance(domain, Dense)
    middle, step = domain.decode(np.zeros((1, domain.dimension)))[0], domain.unit_lengths() * 1000
    points = [(middle + i * step).tolist() for i in range(-4, 5)]
    return {"sites": {"kind": "coordinates", "points": points}}
