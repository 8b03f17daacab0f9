"""The house algorithm with public rows: mean, axes and seeds are taken from them if a check passes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.algorithms import summit_tuning as tuning
from core.arrays import Floats, Integers
from core.blocks.base import Block
from core.data import Domain, PublicRowFacts, PublicRows
from core.errors import PlanViolation
from core.mechanisms.noise import additive_noise
from core.plan import Step
from core.postprocessing.kmeans import nearest_points, weighted_kmeans
from core.postprocessing.spread import DistanceHistogram
from core.postprocessing.subspace import Subspace, axes_of_points
from core.postprocessing.synopsis.losses import MeanSquare
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import PooledHistogram
from core.views import Assigned, Encoded


@dataclass(frozen=True, eq=False)
class PublicOverview:
    """What public rows tell about the records: mean and principal axes, and rows to find seeds among."""

    centre: Integers
    subspace: Subspace
    #: Enough of the rows to find seeds among.
    rows: Floats

    @classmethod
    def of(cls, rows: Floats, some: Floats) -> PublicOverview:
        few = len(rows) // tuning.ROWS_PER_AXIS
        axes, candidates = min(few, tuning.PUBLIC_AXES), min(few, tuning.PUBLIC_CANDIDATES)
        centre = rows.mean(axis=0)
        subspace = axes_of_points(rows - centre, axes, candidates)
        return cls(np.rint(centre).astype(np.int64), subspace, some)


@dataclass(frozen=True)
class PublicCheck(Block):
    """Decides whether the records resemble the public rows.

    Half of the public rows, or of enough of them, are grouped. If records are of the same kind, these groups
    explain about as much of the records' variance as of the other half's.
    """

    domain: Domain
    shares: Shares
    fraction: float
    public: PublicRows | PublicRowFacts
    prefix: str = "public-"

    def steps(self) -> tuple[Step, ...]:
        noise = additive_noise(self.shares.noise(self.fraction))
        purpose = "how far records lie from groups of public rows, to decide whether those are of use"
        return (self.step("distances", noise, PooledHistogram, 1, purpose),)

    def run(
        self, probe: Probe, size: float, around: DistanceHistogram, error: float
    ) -> PublicOverview | None:
        """Mean, axes and seeds from public rows; None where records are not of their kind.

        `around` are distances to a centre, which is `error`, squared, off the records' mean.
        """
        if not isinstance(self.public, PublicRows):
            raise PlanViolation("this plan was read without its public rows and cannot be run")
        rows, draw = self.public.encoded(self.domain), probe.draw("public-rows")
        some = rows[draw.permutation(len(rows))[: tuning.ENOUGH_ROWS]]
        grouped, others = some[::2], some[1::2]
        groups = max(2, min(tuning.PUBLIC_GROUPS, len(grouped) // tuning.ROWS_PER_GROUP))
        middles = weighted_kmeans(grouped, np.ones(len(grouped)), groups, draw, restarts=3)
        seeds = Assigned(Encoded.of(self.domain), np.rint(middles).astype(np.int64))
        counts = self.measure(probe, "distances", PooledHistogram(seeds, around.edges)).astype(np.float64)
        found = DistanceHistogram(counts, around.edges, self.count_noise(probe.plan, "distances"))
        left, whole = MeanSquare.of(found, size), MeanSquare.of(around, size)
        variance = max(whole.value - error, 1e-9)
        unexplained = left.value / variance
        doubt = math.hypot(left.error, unexplained * whole.error) / variance
        surely = 1 - unexplained - tuning.CHECK_ERRORS * doubt
        if surely < tuning.PUBLIC_EXPLAINS * _explained(others, middles):
            return None
        return PublicOverview.of(rows, some)


def _explained(rows: Floats, middles: Floats) -> float:
    """The share of the variance of public rows that is between groups with these middles."""
    left = ((rows - middles[nearest_points(rows, middles)]) ** 2).sum()
    return max(0.0, 1 - float(left / max(((rows - rows.mean(axis=0)) ** 2).sum(), 1e-9)))
