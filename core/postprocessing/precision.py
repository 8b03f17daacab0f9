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
        variance = (self.doubt * self.sizes) ** 2
        gain = variance / (variance + error**2)
        return self.sizes + gain * (measured - self.sizes), np.sqrt(gain) * error
