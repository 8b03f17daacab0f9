"""The regime of most requests: find where rows vary, explore there, refine in all columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from core.algorithms.summit.axes import Axes, PrincipalAxes, VaryingColumnAxes
from core.algorithms.summit.base import Regime, memory_of
from core.algorithms.summit.exploration import SEED_COORDINATES, Exploration, enough_seeds, level_rule
from core.algorithms.summit.overview import CENTRE, Extent, Overview, RecordExtent, radius_share
from core.algorithms.summit.shrinkage import CombinedRounds, Shrinkage
from core.algorithms.summit.signal import Signal
from core.arrays import Floats
from core.blocks.adaptive_tree import AdaptiveTree, count_deviation
from core.blocks.base import Block, Clusters
from core.blocks.rounds import ClippedRounds, Refinement, Round, Rule
from core.blocks.work import lloyd_rounds
from core.plan import Plan, Work
from core.postprocessing.bounds import clip_into
from core.postprocessing.seeds import exactly
from core.postprocessing.shrinkage import shorten
from core.probe import Probe

TREE = 0.12  # Weight of the tree when stages divide what is left of the budget.
EXPLORE = 0.2  # Weight of the exploring rounds.
WIDE_EXPLORE = 0.1  # Weight of the exploring rounds with many columns: the loss is noise in all columns then.
REFINE = 0.3  # Weight of the refining rounds.
LEAST_MOMENTS = 0.15  # Least weight of second moments of many columns.
MOST_MOMENTS = 0.4  # Most weight of second moments: more, the more noise blurs the principal axes.
MOMENTS_SIGNAL = 0.015  # Share of the records at which the edge of the spectrum of their noise should lie.
MOMENTS_COLUMNS = 32  # Columns below which moments get less: most axes are kept in any case.
LEAST_TURN = 0.05  # Least weight of second moments of few columns, which only turn and scale the axes.
TURN_ROOM = 4.0  # Moments of few columns get at least this many times what `MOMENTS_SIGNAL` takes.
VARYING_FROM = 128  # Columns from which on second moments are of those that vary: noise grows with columns.
VARYING_SHARE = 0.015  # Share of the budget that finds the columns that vary.
EXPLORE_SUMS = 0.7  # Part of an exploring round that goes to sums; the rest goes to sizes.
REFINE_SUMS = 0.9  # Part of a refining round that goes to sums.
REFINE_GROWTH = 1.5  # Each refining round gets this many times the budget of the one before.
TREE_AXES = 8  # Axes that the tree cuts, at most.
HALVINGS_PER_AXIS = 2.5  # Halvings of the tree for each of its axes.
LEAST_DEPTH = 4  # Halvings of a tree, at least.
MOST_DEPTH = 11  # Halvings of a deeper tree, at most, where one level alone can count finer cells.
MOST_SEEDS = 128  # Seeds in few columns: small clusters far from each other get their own seeds.
SEEDS_PER_COLUMN = 24  # Seeds for each column, at most: in up to three columns cells are fine enough.
MEDIAN_REACH = 4.0  # A median moves at most this many times the root mean squared distance.

_PURPOSES = (
    "how far each cluster reaches, to clip it well",
    "where the middle of each cluster lies",
    "how many records each cluster has",
)


def moments_wanted(columns: int, power: float) -> float:
    """The weight of second moments that brings the edge of their noise down to `MOMENTS_SIGNAL`."""
    return 2 * columns / (MOMENTS_SIGNAL * power) ** 2


def moments_weight(columns: int, power: float, most: float = MOST_MOMENTS) -> float:
    """The weight of second moments of this many columns; `power` is N * mu."""
    wanted = moments_wanted(columns, power)
    few = LEAST_MOMENTS * columns / MOMENTS_COLUMNS
    least = min(LEAST_MOMENTS, max(few, LEAST_TURN, TURN_ROOM * wanted))
    return min(max(wanted, least), most)


@dataclass(frozen=True)
class Weights:
    """The proportions in which stages divide what is left of the budget."""

    moments: float
    tree: float = TREE
    explore: float = EXPLORE
    refine: float = REFINE

    @property
    def total(self) -> float:
        return self.moments + self.tree + self.explore + self.refine


@dataclass(frozen=True, eq=False)
class Refined:
    """Clusters with the last round, and the overview that led to them."""

    overview: Overview
    clusters: Clusters
    last: Round


@dataclass(frozen=True, kw_only=True)
class Exploring(Regime):
    """Enough records to look at them round by round."""

    #: Most weight of second moments.
    most_moments: ClassVar[float] = MOST_MOMENTS

    #: Share that finds the columns that vary; 0 with few columns.
    columns_share: float = 0.0

    @classmethod
    def suits(cls, signal: Signal) -> bool:
        return True

    @classmethod
    def tuned(cls, signal: Signal, reserved: float = 0.0) -> Self:
        """The regime for a request; the share `reserved` is for other measurements."""
        varying = VARYING_SHARE if signal.width >= VARYING_FROM else 0.0
        few = signal.width == 1
        moments = 0.0 if few else moments_weight(signal.width, signal.power, cls.most_moments)
        weights = Weights(moments, explore=WIDE_EXPLORE if varying else EXPLORE)
        return cls.divided(signal, weights, reserved, columns_share=varying)

    @classmethod
    def divided(cls, signal: Signal, weights: Weights, reserved: float, **numbers: Any) -> Self:
        """The regime whose stages get these weights of what is left."""
        radius, shares = radius_share(signal), signal.shares
        whole = weights.total / (1 - CENTRE - radius - numbers.get("columns_share", 0.0) - reserved)
        explore_rounds, refine_rounds = cls.rounds_for(signal)
        growth = [REFINE_GROWTH**i for i in range(refine_rounds)]
        tree, axes = weights.tree / whole, min(TREE_AXES, signal.width)
        fine = level_rule(MOST_DEPTH).first(signal.size, count_deviation(shares, tree))
        depth = max(LEAST_DEPTH, round(HALVINGS_PER_AXIS * axes), fine)
        return cls(
            moments=weights.moments > 0,
            radius_share=radius,
            subspace_share=weights.moments / whole,
            tree_share=tree,
            explore_share=weights.explore / whole,
            refine_shares=tuple(weights.refine / whole * part / sum(growth) for part in growth),
            tree_axes=axes,
            tree_depth=depth,
            tree_levels=level_rule(depth).levels(signal.size, shares, tree),
            explore_rounds=explore_rounds,
            explore_centres=cls.seeds_for(signal),
            **numbers,
        )

    @classmethod
    def rounds_for(cls, signal: Signal) -> tuple[int, int]:
        """Exploring and refining rounds."""
        return (3, 3) if signal.plenty else (2, 2)

    @classmethod
    def seeds_for(cls, signal: Signal) -> int:
        """Seeds to follow at most."""
        spare = min(SEED_COORDINATES // signal.width, SEEDS_PER_COLUMN * signal.width, MOST_SEEDS)
        return max(enough_seeds(signal.k), spare)

    # --- stages -----------------------------------------------------------------------------------------

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        return self.extent(plan), self.axes(plan), self.exploration(plan), self.refinement(plan)

    def extent(self, plan: Plan) -> RecordExtent:
        return RecordExtent(plan.domain, plan.shares(), self.radius_share)

    def axes(self, plan: Plan) -> Axes:
        measured = (plan.domain, plan.shares(), self.subspace_share)
        if self.columns_share:
            return VaryingColumnAxes(*measured, self.columns_share)
        return PrincipalAxes(*measured) if self.moments else Axes(plan.domain)

    def exploration(self, plan: Plan) -> Exploration:
        shares, rounds = plan.shares(), self.explore_rounds
        return Exploration(
            plan.k,
            AdaptiveTree(shares, self.tree_share, self.tree_levels),
            ClippedRounds(shares, self.explore_share, EXPLORE_SUMS, rounds, "explore-", _PURPOSES),
            self.tree_axes,
            self.tree_depth,
            self.explore_centres,
        )

    def refinement(self, plan: Plan) -> Refinement:
        rounds = tuple(
            ClippedRounds(plan.shares(), share, REFINE_SUMS, 1, f"refine-{number}-", _PURPOSES)
            for number, share in enumerate(self.refine_shares, start=1)
        )
        return Refinement(plan.domain, rounds, medians=plan.objective == "medians")

    # --- runs -------------------------------------------------------------------------------------------

    def run(self, plan: Plan, probe: Probe) -> Clusters:
        return self.continued(plan, probe, self.extent(plan).run(probe)).clusters

    def continued(self, plan: Plan, probe: Probe, extent: Extent) -> Refined:
        """All that follows the extent of the records."""
        overview = Overview.of(plan.domain, extent, self.axes(plan).run(probe, extent))
        seeds = self.exploration(plan).run(probe, overview)
        return self.refined(plan, probe, overview, exactly(seeds, plan.k))

    def refined(self, plan: Plan, probe: Probe, overview: Overview, starts: Floats) -> Refined:
        """Rounds in all columns, from seeds in the projected view."""
        shrinkage = Shrinkage.by_axes(overview.subspace)
        return self.in_all_columns(plan, probe, overview, overview.in_all_columns(starts), shrinkage)

    def in_all_columns(
        self, plan: Plan, probe: Probe, overview: Overview, centres: Floats, shrinkage: Shrinkage
    ) -> Refined:
        """Rounds in all columns, from centres there."""
        stage, domain = self.refinement(plan), plan.domain
        rounds = tuple(replace(each, own_scales=overview.extent.far_out) for each in stage.rounds)
        stage = replace(stage, rounds=rounds, rule=self.rule(plan, shrinkage))
        free = min(domain.dimension, 2 * overview.view.width)
        found, last = stage.run_rounds(probe, clip_into(domain, centres), overview.edges, free)
        return Refined(overview, overview.detailed(domain, found), last)

    def rule(self, plan: Plan, shrinkage: Shrinkage) -> Rule:
        """How far centres move after a round."""
        combined = CombinedRounds(shrinkage)

        def of_medians(outcome: Round) -> Floats:
            moves = shrinkage.of(outcome.moves, outcome.errors)
            return shorten(moves, MEDIAN_REACH * np.sqrt(outcome.spreads))

        def of_means(outcome: Round) -> Floats:
            return shorten(shrinkage.of(outcome.moves, outcome.errors), outcome.radii)

        def of_all_rounds(outcome: Round) -> Floats:
            return shorten(combined(outcome), outcome.radii)

        if plan.objective == "medians":
            return of_medians
        return of_all_rounds if self.columns_share else of_means

    # --- what is said of a plan -------------------------------------------------------------------------

    def smallest_cluster(self, plan: Plan) -> float:
        return self.exploration(plan).smallest_cluster(plan)

    def work(self, plan: Plan) -> Work:
        axes = self.axes(plan)
        work = memory_of(plan, axes.count) + self.extent(plan).work() + axes.work()
        return work + self.exploration(plan).work(plan, axes.count) + self.refining_work(plan, axes.count)

    def refining_work(self, plan: Plan, axes: int) -> Work:
        return Work(lloyd_rounds(plan.domain, plan.k, len(self.refine_shares)), 0.0)
