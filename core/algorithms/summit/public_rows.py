"""The regime with public rows: middle, axes and seeds are taken from them if a check passes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from core.algorithms.summit.along_axes import AlongAxes
from core.algorithms.summit.axes import MOST_AXES, Axes
from core.algorithms.summit.base import Regime
from core.algorithms.summit.exploring import Exploring
from core.algorithms.summit.overview import Extent, Overview
from core.algorithms.summit.signal import Signal
from core.arrays import Floats, Integers
from core.blocks.base import Block, Clusters
from core.blocks.rounds import Refinement
from core.blocks.work import PASS, PRODUCT, lloyd_rounds, numbers
from core.data import Domain, PublicRowFacts, PublicRows
from core.errors import PlanViolation
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step, Work
from core.postprocessing.kmeans import nearest_points, weighted_kmeans
from core.postprocessing.seeds import exactly, handed_over
from core.postprocessing.spread import DistanceHistogram
from core.postprocessing.subspace import Subspace, axes_of_points
from core.postprocessing.synopsis.losses import MeanSquare
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import PooledHistogram
from core.statistics.sums import ResidualSums
from core.views import Assigned, Encoded

PUBLIC_CHECK = 0.03  # Share of the check whether public rows resemble the records.
PUBLIC_GROUPS = 16  # Groups into which the check divides half of the public rows, at most.
ROWS_PER_GROUP = 8  # Public rows of a group, on average.
ENOUGH_ROWS = 1000  # Public rows that the check and the search for seeds need, at most.
PUBLIC_EXPLAINS = 0.5  # Part of what groups explain of public rows that they must explain of the records.
CHECK_ERRORS = 1.0  # Standard errors by which they must explain more than that.
PUBLIC_AXES = 32  # Axes along which centres are looked for, at most.
PUBLIC_CANDIDATES = 64  # Axes along which moves are shrunk, at most.
ROWS_PER_AXIS = 4  # Public rows for each axis, at least.


@dataclass(frozen=True, kw_only=True)
class WithPublicRows(Regime):
    """As without public rows, but for a check; if it passes, second moments are not measured."""

    mark: ClassVar[str] = "check_share"

    columns_share: float = 0.0
    along_axes: bool = False
    check_share: float

    @classmethod
    def suits(cls, signal: Signal) -> bool:
        wide = signal.domain.kind == "dense" and signal.width > MOST_AXES
        return signal.request.public_rows is not None and wide and signal.single_means

    @classmethod
    def tuned(cls, signal: Signal) -> Self:
        without = AlongAxes if AlongAxes.suits(signal) else Exploring
        return cls.like(without.tuned(signal, reserved=PUBLIC_CHECK), check_share=PUBLIC_CHECK)

    @property
    def without(self) -> Exploring:
        """The regime if the public rows are refused."""
        return AlongAxes.like(self) if self.along_axes else Exploring.like(self)

    def check(self, plan: Plan) -> PublicCheck:
        assert plan.public_rows is not None  # `Algorithm.plan` puts them in
        return PublicCheck(plan.domain, plan.shares(), self.check_share, plan.public_rows)

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        extent, axes, *stages = self.without.blocks(plan)
        assert isinstance(axes, Axes)
        return (extent, CheckedAxes(axes, self.check(plan)), *stages)

    def run(self, plan: Plan, probe: Probe) -> Clusters:
        extent = self.without.extent(plan).run(probe)
        public = self.check(plan).run(probe, extent)
        if public is None:
            return self.without.continued(plan, probe, extent).clusters
        overview = Overview.of(plan.domain, replace(extent, centre=public.centre), public.subspace)
        exploration, taken = self.without.exploration(plan), Taken.like(self)
        coreset, points = exploration.coreset(probe, overview), overview.projected(public.rows)
        coreset = handed_over(coreset, points, min(self.tree_axes, overview.view.width))
        seeds = exploration.seeds(probe, overview, coreset)
        return taken.refined(plan, probe, overview, exactly(seeds, plan.k)).clusters

    def smallest_cluster(self, plan: Plan) -> float:
        return self.without.smallest_cluster(plan)

    def work(self, plan: Plan) -> Work:
        return self.without.work(plan) + self.check(plan).work()


class Taken(Exploring):
    """Exploring with axes of public rows: the last sums are measured again with what moments leave."""

    def refinement(self, plan: Plan) -> Refinement:
        whole = super().refinement(plan)
        *first, last = whole.rounds
        return replace(whole, rounds=(*first, replace(last, spare=(self.axes(plan), "moments"))))


@dataclass(frozen=True)
class CheckedAxes(Block):
    """The steps of a check and of second moments, which are spent on the last sums if it passes."""

    axes: Axes
    check: PublicCheck

    def steps(self) -> tuple[Step, ...]:
        *others, moments = self.axes.steps()
        return (*others, *self.check.steps(), replace(moments, alternative=ResidualSums.kind))


@dataclass(frozen=True, eq=False)
class PublicOverview:
    """What public rows tell about the records: mean and principal axes, and rows to find seeds among."""

    centre: Integers
    subspace: Subspace
    #: Enough of the rows to find seeds among.
    rows: Floats

    @classmethod
    def of(cls, rows: Floats, some: Floats) -> PublicOverview:
        few = len(rows) // ROWS_PER_AXIS
        axes, candidates = min(few, PUBLIC_AXES), min(few, PUBLIC_CANDIDATES)
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
        purpose = "how far records lie from groups of public rows, to decide whether to learn from them"
        return (self.step("distances", noise, PooledHistogram, 1, purpose),)

    def run(self, probe: Probe, extent: Extent) -> PublicOverview | None:
        """Mean, axes and seeds from public rows; None where records do not resemble them."""
        if not isinstance(self.public, PublicRows):
            raise PlanViolation("this plan was read without its public rows and cannot be run")
        around, size = extent.distances, extent.size
        rows, draw = self.public.encoded(self.domain), probe.draw("public-rows")
        some = rows[draw.permutation(len(rows))[:ENOUGH_ROWS]]
        grouped, others = some[::2], some[1::2]
        groups = max(2, min(PUBLIC_GROUPS, len(grouped) // ROWS_PER_GROUP))
        middles = weighted_kmeans(grouped, np.ones(len(grouped)), groups, draw, restarts=3)
        seeds = Assigned(Encoded.of(self.domain), np.rint(middles).astype(np.int64))
        counts = self.measure(probe, "distances", PooledHistogram(seeds, around.edges)).astype(np.float64)
        found = DistanceHistogram(counts, around.edges, self.count_noise(probe.plan, "distances"))
        left, whole = MeanSquare.of(found, size), MeanSquare.of(around, size)
        variance = max(whole.value - extent.centre_error, 1e-9)
        unexplained = left.value / variance
        doubt = math.hypot(left.error, unexplained * whole.error) / variance
        surely = 1 - unexplained - CHECK_ERRORS * doubt
        if surely < PUBLIC_EXPLAINS * _explained(others, middles):
            return None
        return PublicOverview.of(rows, some)

    def work(self) -> Work:
        """The work of the check, and of the axes of public rows."""
        domain, rows, width = self.domain, float(len(self.public)), self.domain.dimension
        checked = lloyd_rounds(domain, PUBLIC_GROUPS, 1) + PASS * domain.size * numbers(domain)
        return Work(checked + PRODUCT * rows * width * width, 24.0 * rows * width)


def _explained(rows: Floats, middles: Floats) -> float:
    """The share of the variance of public rows that is between groups with these middles."""
    left = ((rows - middles[nearest_points(rows, middles)]) ** 2).sum()
    return max(0.0, 1 - float(left / max(((rows - rows.mean(axis=0)) ** 2).sum(), 1e-9)))
