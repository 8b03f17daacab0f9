"""Estimates of the same numbers, weighed by their precision."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from core.arrays import Floats

_MADE_UP = 0.1  # The expected share of clusters that noise made up, before anything is counted.
_COUNTS_LIKE = 10  # That expectation counts as much as this many clusters.
_ROUNDS = 20  # Rounds in which that share is estimated from all clusters; it settles in fewer.


@dataclass(frozen=True, eq=False)
class Known:
    """Numbers of records to expect, and their relative error."""

    sizes: Floats
    doubt: float

    def updated(self, measured: Floats, error: float) -> tuple[Floats, Floats]:
        """The numbers weighed against noisy counts by precision, and the standard deviations that remain."""
        return weighed(self.sizes, self.doubt * self.sizes, measured, error)

    def chances(self, measured: Floats, errors: Floats) -> Floats:
        """The chance that each cluster has records at all, given noisy counts: noise may have made it up.

        A cluster is either real, with about the size that is known, or has no records. How many are made up
        is estimated from all of them.
        """
        noise = errors**2
        variances = noise + (self.doubt * self.sizes) ** 2
        if_real = (measured - self.sizes) ** 2 / variances + np.log(variances)
        if_made_up = np.maximum(measured, 0.0) ** 2 / noise + np.log(noise)
        likelier, share = (if_made_up - if_real) / 2, _MADE_UP
        for _ in range(_ROUNDS):
            chances: Floats = expit(likelier + math.log(1 / share - 1))
            made_up = _COUNTS_LIKE * _MADE_UP + float((1 - chances).sum())
            share = made_up / (_COUNTS_LIKE + len(chances))
        return chances


def weighed(
    first: Floats, first_error: Floats, second: Floats, second_error: Floats | float
) -> tuple[Floats, Floats]:
    """Two estimates of the same numbers by their precision, and the standard deviations that remain."""
    gain = first_error**2 / (first_error**2 + second_error**2)
    return first + gain * (second - first), np.sqrt(gain) * second_error
