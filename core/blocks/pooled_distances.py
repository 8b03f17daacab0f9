"""The distances of all records to their nearest centre: one more histogram, for runs that leave k open."""

from dataclasses import dataclass

import numpy as np

from core.arrays import Integers
from core.blocks.base import Block
from core.data import Domain
from core.mechanisms.noise import additive_noise
from core.plan import Step
from core.postprocessing.spread import DistanceHistogram
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import PooledHistogram
from core.views import Assigned, Encoded


@dataclass(frozen=True)
class PooledDistances(Block):
    """A histogram of distances to the nearest of some released centres, all clusters together."""

    domain: Domain
    shares: Shares
    fraction: float
    prefix: str = ""

    def steps(self) -> tuple[Step, ...]:
        noise = additive_noise(self.shares.noise(self.fraction))
        purpose = "how far records are from their nearest centre, all clusters together"
        return (self.step("pooled", noise, PooledHistogram, 1, purpose),)

    def run(self, probe: Probe, centres: Integers, edges: Integers) -> DistanceHistogram:
        assigned = Assigned(Encoded.of(self.domain), centres)
        counts = self.measure(probe, "pooled", PooledHistogram(assigned, edges)).astype(np.float64)
        return DistanceHistogram(counts, edges, self.count_noise(probe.plan, "pooled"))
