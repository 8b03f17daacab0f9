"""The regime for too many columns: clusters are found in a random projection, then recovered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from core.algorithms.summit import pure
from core.algorithms.summit.axes import Axes, RandomAxes, SketchedAxes
from core.algorithms.summit.exploration import enough_seeds
from core.algorithms.summit.exploring import REFINE, REFINE_SUMS, Exploring, Refined, Weights, moments_weight
from core.algorithms.summit.overview import Overview
from core.algorithms.summit.shrinkage import Shrinkage
from core.algorithms.summit.signal import Signal
from core.arrays import Floats
from core.blocks.base import Block
from core.blocks.rounds import Refinement
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Plan, Step
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import ClusterCounts
from core.statistics.sums import GroupResidualSums
from core.views import Assigned, Encoded

MOST_COLUMNS = 2048  # Columns beyond which second moments are taken in a random projection.
MOST_SKETCH = 256  # Columns of that projection, at most.
SKETCH_ENTRIES = 1 << 23  # Entries of its matrix, at most, unless it would have too few columns.
LEAST_SKETCH = 24  # Columns of that projection, at least.
RANDOM_AXES = 12  # Axes drawn at random where second moments would drown in Laplace noise.
BLIND_NOISE = 0.04  # Noise, columns * k / (N * epsilon), beyond which random axes mean more refining.
MOST_BLIND_REFINE = 16.0  # Refining rounds then get up to this many times as much, by that noise squared.


@dataclass(frozen=True, kw_only=True)
class Sketch(Exploring):
    """As exploring in a random projection, with one more measurement that recovers centres in all columns."""

    mark: ClassVar[str] = "sketch"

    @classmethod
    def suits(cls, signal: Signal) -> bool:
        drowned = signal.pure and signal.width > RANDOM_AXES and not pure.moments_tell(signal.width, signal)
        return signal.width > MOST_COLUMNS or drowned

    @classmethod
    def tuned(cls, signal: Signal, reserved: float = 0.0) -> Self:
        columns = min(max(SKETCH_ENTRIES // signal.width, LEAST_SKETCH), MOST_SKETCH)
        if not signal.pure:
            weights = Weights(moments_weight(columns, signal.power))
        elif signal.width > MOST_COLUMNS and pure.moments_tell(columns, signal):
            weights = Weights(pure.moments_weight(columns, signal.power))
        else:
            columns, weights = RANDOM_AXES, Weights(0.0, refine=_blind_refine(signal))
        return cls.divided(signal, weights, reserved, sketch=columns)

    @classmethod
    def rounds_for(cls, signal: Signal) -> tuple[int, int]:
        return (1, 2) if signal.pure else super().rounds_for(signal)

    @classmethod
    def seeds_for(cls, signal: Signal) -> int:
        return enough_seeds(signal.k)

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        *found, refinement = super().blocks(plan)
        return (*found, self.recovery(plan), refinement)

    def axes(self, plan: Plan) -> Axes:
        if not self.moments:
            return RandomAxes(plan.domain, self.sketch)
        return SketchedAxes(plan.domain, plan.shares(), self.subspace_share, self.sketch)

    def recovery(self, plan: Plan) -> SketchRecovery:
        return SketchRecovery(plan.shares(), self.refine_shares[0])

    def refinement(self, plan: Plan) -> Refinement:
        """The rounds after recovery, which takes the place of the first."""
        whole = super().refinement(plan)
        return replace(whole, rounds=whole.rounds[1:])

    def refined(self, plan: Plan, probe: Probe, overview: Overview, starts: Floats) -> Refined:
        shrinkage = Shrinkage.by_columns(np.abs(overview.extent.centre).astype(np.float64))
        centres = self.recovery(plan).run(probe, overview, starts, shrinkage)
        return self.in_all_columns(plan, probe, overview, centres, shrinkage)


def _blind_refine(signal: Signal) -> float:
    """The weight of refining rounds after looking along random axes."""
    if signal.request.objective != "means" or signal.domain.kind == "sparse":
        return REFINE
    noise = signal.width * signal.k / (signal.size * signal.shares.total)
    return REFINE * min(max((noise / BLIND_NOISE) ** 2, 1.0), MOST_BLIND_REFINE)


@dataclass(frozen=True)
class SketchRecovery(Block):
    """Centres, in all columns, of clusters that were found in a projection."""

    shares: Shares
    fraction: float
    prefix: str = "recover-"

    def steps(self) -> tuple[Step, ...]:
        sums = vector_noise(self.shares.noise(self.fraction * REFINE_SUMS))
        sizes = additive_noise(self.shares.noise(self.fraction * (1 - REFINE_SUMS)))
        purpose = "how many records each cluster of the sketch has"
        return (
            self.step("sizes", sizes, ClusterCounts, 1, purpose),
            self.step("sums", sums, GroupResidualSums, 1, "where its middle lies in all columns"),
        )

    def run(self, probe: Probe, overview: Overview, found: Floats, shrinkage: Shrinkage) -> Floats:
        """Centres in all columns, given those that were found in the projection."""
        plan, rows, extent = probe.plan, Encoded.of(probe.plan.domain), overview.extent
        assigned = Assigned(overview.view, np.rint(found).astype(np.int64))
        counted = self.measure(probe, "sizes", ClusterCounts(assigned)).astype(np.float64)
        sizes = np.maximum(counted, max(2 * self.deviation(plan, "sizes"), 1.0))
        residuals = GroupResidualSums(assigned, Assigned(rows, extent.centre[None, :]), extent.radius)
        sums = self.measure(probe, "sums", residuals) / WEIGHT_ONE
        errors = extent.radius * self.deviation(plan, "sums", rows.width) / sizes
        return extent.centre + shrinkage.of(sums / sizes[:, None], errors)
