"""A Fourier sketch of few records, in which clusters are found wherever they lie."""

import math
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats, Integers
from core.blocks.base import Block
from core.kernels.clipping import WEIGHT_ONE
from core.kernels.fourier import TURN
from core.mechanisms.noise import vector_noise
from core.plan import Plan, Step
from core.postprocessing.mixture import MixtureFit
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.fourier import FourierSums
from core.views import LONGEST_COLUMN, RowView


@dataclass(frozen=True)
class FourierSketch(Block):
    """One vector of noisy sums of cosines and sines, at frequencies drawn without looking at records.

    A cell of a tree that is as wide as a cluster holds it only if it happens to lie in its middle. A
    sketch treats all places alike: it tells the density at any of them with the noise of one count.
    """

    shares: Shares
    fraction: float
    frequencies: int

    def steps(self) -> tuple[Step, ...]:
        noise = vector_noise(self.shares.noise(self.fraction))
        return (self.step("sketch", noise, FourierSums, 1, "where records crowd"),)

    def density_noise(self, plan: Plan) -> float:
        """Standard deviation of the noise in the number of records near a place."""
        return self.deviation(plan, "sketch", 2 * self.frequencies)

    def run(self, probe: Probe, view: RowView, deviations: Floats, length: float, total: float) -> MixtureFit:
        """Measure a sketch with a resolution of about `length`, given deviations of all records."""
        drawn = probe.draw("frequencies").normal(size=(self.frequencies, view.width)) / length
        matrix = _steps_of_turns(drawn)
        statistic = FourierSums(view, matrix)
        summed = self.measure(probe, "sketch", statistic)[0] / statistic.length
        cosines, sines = summed.astype(np.float32).reshape(2, -1)
        frequencies = matrix.T * (2 * math.pi / (TURN * WEIGHT_ONE))
        return MixtureFit(
            frequencies=frequencies.astype(np.float32),
            cosines=cosines,
            sines=sines,
            noise=self.density_noise(probe.plan),
            total=total,
            deviations=deviations,
            length=length,
        )


def _steps_of_turns(frequencies: Floats) -> Integers:
    """Frequencies as an integer matrix; those too high for exact phases are lowered."""
    steps = frequencies.T * (TURN * WEIGHT_ONE / (2 * math.pi))
    lengths = np.sqrt((steps**2).sum(axis=0))
    steps *= np.minimum(1.0, LONGEST_COLUMN / (2 * np.maximum(lengths, 1.0)))  # half of it: they are rounded
    rounded: Integers = np.rint(steps).astype(np.int64)
    return rounded
