"""Estimates of the same numbers, weighed by their precision."""

from dataclasses import dataclass

import numpy as np

from core.arrays import Floats


@dataclass(frozen=True, eq=False)
class Known:
    """Numbers of records to expect, and their relative error."""

    sizes: Floats
    doubt: float

    def updated(self, measured: Floats, error: float) -> tuple[Floats, Floats]:
        """The numbers weighed against noisy counts by precision, and the standard deviations that remain."""
        return weighed(self.sizes, self.doubt * self.sizes, measured, error)


def weighed(
    first: Floats, first_error: Floats, second: Floats, second_error: Floats | float
) -> tuple[Floats, Floats]:
    """Two estimates of the same numbers by their precision, and the standard deviations that remain."""
    gain = first_error**2 / (first_error**2 + second_error**2)
    return first + gain * (second - first), np.sqrt(gain) * second_error
