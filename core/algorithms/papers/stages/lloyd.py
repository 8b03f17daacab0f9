"""Lloyd iterations clipped to a fixed radius, and the published rules by which centres move."""

import math
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.blocks.base import Block, Clusters
from core.blocks.rounds import Round
from core.data import UNITS, Domain
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.shrinkage import shorten
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import ClusterCounts
from core.statistics.sums import ResidualSums
from core.views import Assigned, Encoded


def sum_share(width: int) -> float:
    """The share of a round that goes to sums, not counts: it minimises the error of their quotient."""
    root = math.sqrt(width)
    return root / (1 + root)


@dataclass(frozen=True)
class LloydRounds(Block):
    """Lloyd iterations with residuals clipped to a fixed radius, as in the classic algorithm."""

    domain: Domain
    shares: Shares
    fraction: float
    rounds: int
    radius: int = UNITS
    prefix: str = ""

    @property
    def clip(self) -> int:
        return self.radius

    def steps(self) -> tuple[Step, ...]:
        share = sum_share(self.domain.dimension)
        sums = vector_noise(self.shares.noise(self.fraction * share, self.rounds))
        counts = additive_noise(self.shares.noise(self.fraction * (1 - share), self.rounds))
        return (
            self.step("counts", counts, ClusterCounts, self.rounds, "size of each cluster"),
            self.step("sums", sums, ResidualSums, self.rounds, "where the mean of each cluster lies"),
        )

    def run(self, probe: Probe, centres: Floats) -> Clusters:
        """Centres after all rounds, with the last noisy sizes."""
        rows = Encoded.of(self.domain)
        radii = np.full(len(centres), self.radius, dtype=np.int64)
        counts = np.zeros(len(centres), dtype=np.int64)
        for _ in range(self.rounds):
            assigned = Assigned(rows, np.rint(centres).astype(np.int64))
            counts = self.measure(probe, "counts", ClusterCounts(assigned))
            sums = self.measure(probe, "sums", ResidualSums(assigned, radii))
            moves = sums / WEIGHT_ONE / np.maximum(counts, 1)[:, None]
            centres = clip_into(self.domain, assigned.centres + moves)
        return Clusters(centres, np.maximum(counts, 0).astype(np.float64))


def median_moves(found: Round) -> Floats:
    """Steps of smoothed unit gradients, no longer than twice the root mean squared distance."""
    return shorten(found.moves, 2 * np.sqrt(found.spreads))


def stein_moves(found: Round) -> Floats:
    """Moves shrunk by James and Stein's rule, cluster by cluster, and no longer than the clipping radius."""
    energy = np.maximum((found.moves**2).sum(axis=1), 1e-30)
    factor = np.maximum(0.0, 1.0 - found.moves.shape[1] * found.errors**2 / energy)
    return shorten(factor[:, None] * found.moves, found.radii)
