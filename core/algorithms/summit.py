"""The house algorithm: find where rows vary, grow a private coreset there, refine it in all columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.algorithms import summit_open as open_k
from core.algorithms import summit_tuning as tuning
from core.algorithms.base import Algorithm
from core.algorithms.summit_few_records import FewRecordsBlocks
from core.algorithms.summit_overview import Overview, OverviewSteps, overview_details
from core.algorithms.summit_public import PublicCheck
from core.algorithms.summit_settled import settled_seeds, settling_operations
from core.algorithms.summit_shrinkage import CombinedRounds, Shrinkage, axis_groups
from core.algorithms.summit_tuning import Schedule, clusters_for, schedule_for
from core.arrays import Floats
from core.blocks.adaptive_tree import AdaptiveTree, halvings
from core.blocks.base import Block, Clusters
from core.blocks.pooled_distances import PooledDistances
from core.blocks.rounds import ClippedRounds, Refinement, Round
from core.blocks.work import PASS, PRODUCT, RECORD, VALUE, dense_rounds, lloyd_rounds, numbers, projection
from core.data import UNITS, Domain
from core.errors import InvalidRequest
from core.kernels.clipping import WEIGHT_ONE, into_ball
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import KEPT_BYTES, KRange, Plan, Request, Step, Work
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import (
    best_kmeans_operations,
    many_points_operations,
    merge_operations,
    weighted_kmeans,
)
from core.postprocessing.seeds import Coreset, exactly, handed_over, merged, padded, reseeded
from core.postprocessing.shrinkage import shorten, shrink_by_groups
from core.postprocessing.spread import geometric_edges
from core.postprocessing.synopsis import Cells, made_up_rows, synopsis_operations
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import ClusterCounts
from core.statistics.sums import GroupResidualSums
from core.views import Assigned, Encoded

_PURPOSES = (
    "how far each cluster reaches, to clip it well",
    "where the middle of each cluster lies",
    "how many records each cluster has",
)

#: Operations for each frequency of a sketch: to add a record; to fit a mixture, in any case and for each of
#: its components.
_FREQUENCY_OPERATIONS, _FIT_OPERATIONS, _COMPONENT_OPERATIONS = 12.0, 1.2e5, 1.9e4
#: Starts of k-means on the coreset, of which the best gives the seeds.
_SEED_STARTS = 5
#: Operations of a plan for few records beside its rounds, in any case.
_FEW_RECORDS_OPERATIONS = 1.2e8


@dataclass(frozen=True)
class Blocks:
    """The stages of the house algorithm, in order; a run holds released values only."""

    k: int
    overview: OverviewSteps
    tree: AdaptiveTree
    explore: ClippedRounds
    #: Only where clusters are found in a sketch.
    recover: SketchRecovery | None
    refine: Refinement
    #: Only where k is open.
    pooled: PooledDistances | None

    @classmethod
    def of(cls, plan: Plan) -> Blocks:
        shares, schedule = plan.shares(), Schedule.from_json(plan.parameters)
        share, times = schedule.explore_share, schedule.explore_rounds
        explore = ClippedRounds(shares, share, tuning.EXPLORE_SUMS, times, "explore-", _PURPOSES)
        rounds = tuple(
            ClippedRounds(shares, share, tuning.REFINE_SUMS, 1, f"refine-{number}-", _PURPOSES)
            for number, share in enumerate(schedule.refine_shares, start=1)
        )
        if schedule.sketch:  # the first round recovers centres in all columns instead
            recover, rounds = SketchRecovery(shares, schedule.refine_shares[0]), rounds[1:]
        else:
            recover = None
        return cls(
            plan.k,
            OverviewSteps(plan.domain, shares, schedule, _check(plan, schedule)),
            AdaptiveTree(shares, schedule.tree_share, schedule.tree_levels),
            explore,
            recover,
            Refinement(plan.domain, rounds, medians=plan.objective == "medians"),
            PooledDistances(plan.domain, shares, schedule.pooled_share) if plan.k_range else None,
        )

    def run(self, probe: Probe) -> Clusters:
        overview = self.overview.run(probe)
        coreset = self._coreset(probe, overview)
        seeds = self._explored(probe, overview, coreset)
        if self.overview.schedule.along_axes and overview.public is None:
            found, cells = self._refined_along_axes(probe, overview, seeds), None
        else:
            found, last = self._refined(probe, overview, seeds)
            cells = None if self.pooled is None else self._cells(probe, overview, found, last)
        assert found.radii is not None
        return replace(found, details=overview_details(probe.plan.domain, overview, found.radii), cells=cells)

    def _cells(self, probe: Probe, overview: Overview, found: Clusters, last: Round) -> Cells:
        """All that was released of the fine clusters, with one more histogram about their anchors."""
        assert self.pooled is not None
        edges = geometric_edges(min(3 * overview.radius, 2 * UNITS), open_k.POOLED_FACTOR, open_k.POOLED_BINS)
        # Axes through a sketch are not orthonormal: without them every direction counts alike.
        sketched = bool(self.overview.schedule.sketch)
        subspace, width = overview.subspace, len(overview.centre)
        return Cells(
            domain=probe.plan.domain,
            anchors=last.centres.astype(np.float64),
            centres=found.centres,
            moves=last.moves,
            errors=last.errors,
            sizes=last.sizes,
            size_error=last.size_error,
            radii=last.radii.astype(np.float64),
            distances=last.distances,
            pooled=self.pooled.run(probe, last.centres, edges),
            middle=overview.centre.astype(np.float64),
            around=overview.distances,
            axes=np.zeros((width, 0)) if sketched else subspace.axes,
            variances=np.zeros(0) if sketched else subspace.variances,
            columns=np.ones(width) if sketched else subspace.columns,
            tight=float(overview.tight),
        )

    def _coreset(self, probe: Probe, overview: Overview) -> Coreset:
        schedule = self.overview.schedule
        axes = min(schedule.tree_axes, overview.view.width)
        reach = tuning.BOX_DEVIATIONS * overview.deviations[:axes]
        codes = halvings(overview.view, np.clip(reach, 1.0, UNITS), schedule.tree_depth, overview.outer)
        noise = self.tree.deviation(probe.plan, "tree")
        bits = tuning.tree_bits(overview.size, noise, schedule.tree_depth, schedule.tree_levels, False)
        leaves = self.tree.run(probe, codes, bits, overview.size, tuning.KEEP)
        points = np.zeros((len(leaves.points), overview.view.width))
        points[:, :axes] = leaves.points
        coreset = Coreset(points, leaves.weights)
        if overview.public is None:
            return coreset
        return handed_over(coreset, overview.projected(overview.public), axes)

    def _explored(self, probe: Probe, overview: Overview, coreset: Coreset) -> Floats:
        """k centres in the subspace: rounds on more seeds than asked for, then a merge."""
        k, draw = self.k, probe.draw("seeding")
        explore = replace(self.explore, own_scales=overview.far_out)
        noise = explore.deviation(probe.plan, "sizes")
        seeds = tuning.affordable_seeds(overview.size, noise, k, self.overview.schedule.explore_centres)
        coreset = padded(coreset, seeds + 2, overview.deviations, draw)
        centres = weighted_kmeans(coreset.points, coreset.weights, seeds, draw, _SEED_STARTS)
        edges = geometric_edges(2 * UNITS, tuning.ROUND_FACTOR, tuning.ROUND_BINS)
        weights = np.ones(len(centres))
        for number in range(explore.rounds):
            outcome = explore.run(probe, overview.view, centres, edges, overview.view.width)
            more = number + 1 < explore.rounds
            long = more and self.overview.schedule.long_moves
            centres = _moved_along_axes(outcome, open_k.LONG_EXPLORE if long else 1.0)
            weights = np.where(outcome.sizes > outcome.size_error, outcome.sizes, 0.0)
            if more:
                centres = reseeded(centres, weights, outcome.spreads, coreset, overview.deviations, draw)
        if self.overview.schedule.long_moves:
            return settled_seeds(overview, outcome, centres, weights, k, draw)
        return merged(centres, weights, k, draw)

    def _refined_along_axes(self, probe: Probe, overview: Overview, seeds: Floats) -> Clusters:
        """Centres that differ along the principal axes alone, where noise hides how they differ otherwise."""
        edges = geometric_edges(2 * UNITS, tuning.ROUND_FACTOR, tuning.ROUND_BINS)
        centres = exactly(seeds, self.k)
        for rounds in self.refine.rounds:
            outcome = rounds.run(probe, overview.view, centres, edges, overview.view.width)
            centres = _moved_along_axes(outcome)
        found = clip_into(probe.plan.domain, overview.in_all_columns(centres))
        return Clusters(found, np.maximum(outcome.sizes, 0.0), outcome.reaches / overview.zoom)

    def _refined(self, probe: Probe, overview: Overview, seeds: Floats) -> tuple[Clusters, Round]:
        """Centres in all columns, and the last round."""
        seeds, medians = exactly(seeds, self.k), self.refine.medians
        if self.recover is not None:
            shrinkage = Shrinkage.by_columns(np.abs(overview.centre).astype(np.float64))
            centres = self.recover.run(probe, overview, seeds, shrinkage)
        else:
            shrinkage = Shrinkage.by_axes(overview.subspace)
            centres = overview.in_all_columns(seeds)

        combined = CombinedRounds(shrinkage)
        longer = open_k.LONG_REFINE if self.overview.schedule.long_moves else 1.0
        factors = iter([longer] * (len(self.refine.rounds) - 1) + [1.0])

        def rule(outcome: Round) -> Floats:
            if self.overview.schedule.columns_share and not medians:
                return shorten(combined(outcome), outcome.radii)
            longest = 4 * np.sqrt(outcome.spreads) if medians else outcome.radii
            return next(factors) * shorten(shrinkage.of(outcome.moves, outcome.errors), longest)

        rounds = tuple(replace(each, own_scales=overview.far_out) for each in self.refine.rounds)
        domain, refine = probe.plan.domain, replace(self.refine, rounds=rounds, rule=rule)
        if overview.public is not None:  # what second moments did not need
            last = replace(refine.rounds[-1], spare=(self.overview, "moments"))
            refine = replace(refine, rounds=(*refine.rounds[:-1], last))
        free = min(domain.dimension, 2 * overview.view.width)
        return refine.run_rounds(probe, clip_into(domain, centres), overview.edges, free)


def _check(plan: Plan, schedule: Schedule) -> PublicCheck | None:
    if not schedule.check_share:
        return None
    assert plan.public_rows is not None  # `Algorithm.plan` puts them in
    return PublicCheck(plan.domain, plan.shares(), schedule.check_share, plan.public_rows)


def _moved_along_axes(outcome: Round, factor: float = 1.0) -> Floats:
    """Centres of the projected view after a round, moved so many times as far as measured."""
    groups = axis_groups(outcome.moves.shape[1])
    moves = shorten(shrink_by_groups(outcome.moves, outcome.errors, groups), outcome.radii)
    return into_ball(outcome.centres + factor * moves)


class Summit(Algorithm):
    """The default; its privacy argument is in `summit.md`."""

    name = "summit"
    summary = "subspace, adaptive tree and clipped rounds: nearly as good as without privacy"
    objectives = ("means", "medians")
    leaves_k_open = True

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        return schedule_for(domain, request).to_json()

    def require_open_k(self, domain: Domain, request: Request) -> None:
        if request.objective != "means":
            raise InvalidRequest("a range of k is for means: ask for a single k of medians", parameter="k")
        if domain.kind not in ("dense", "table") or domain.dimension > open_k.MOST_OPEN_COLUMNS:
            raise InvalidRequest(
                f"a range of k is for dense rows of at most {open_k.MOST_OPEN_COLUMNS} columns, levels of "
                "categories counted one by one: ask for a single k",
                parameter="k",
            )
        if isinstance(request.k, KRange) and domain.dimension * sum(request.k) > open_k.MOST_OPEN_VALUES:
            raise InvalidRequest(
                "the centres for every k of this range would have too many values: ask for a shorter range, "
                "or for a single k",
                parameter="k",
            )

    def clusters(self, domain: Domain, request: Request) -> int:
        return clusters_for(domain, request)

    def learns_from_public_rows(self, domain: Domain, request: Request) -> bool:
        return bool(schedule_for(domain, request).check_share)

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        if Schedule.from_json(plan.parameters).few_records:
            return FewRecordsBlocks.of(plan).stages
        made = Blocks.of(plan)
        stages = (made.overview, made.tree, made.explore, made.recover, made.pooled, made.refine)
        return tuple(stage for stage in stages if stage is not None)

    def forecast(self, plan: Plan, steps: Sequence[Step]) -> dict[str, float]:
        """For medians, `noise_per_radius` is at most this fraction of the mean distance to the centre.

        `smallest_cluster`: about how many records a group far from all others needs to be found.
        """
        smallest = self._smallest_cluster(replace(plan, steps=tuple(steps)))
        return {**super().forecast(plan, steps), "smallest_cluster": smallest}

    @staticmethod
    def _smallest_cluster(plan: Plan) -> float:
        if Schedule.from_json(plan.parameters).few_records:
            return FewRecordsBlocks.of(plan).smallest_cluster(plan)
        made = Blocks.of(plan)
        cell, seed = made.tree.deviation(plan, "tree"), made.explore.deviation(plan, "sizes")
        return tuning.FOUND * max(tuning.KEEP * cell, tuning.SEED_NOISES * seed)

    def work(self, plan: Plan) -> Work:
        schedule, k, domain = Schedule.from_json(plan.parameters), plan.k, plan.domain
        size, width = float(domain.size), float(domain.dimension)
        seen = float(schedule.sketch or width)  # columns in which second moments are taken
        axes = min(seen, tuning.MOST_AXES)
        # The middle of all records and how far they reach from it; the axes; the tree, level by level.
        operations = lloyd_rounds(domain, 1, 1) + projection(domain, schedule.sketch + axes)
        operations += size * (RECORD / 4 + tuning.LEVEL_OPERATIONS * schedule.tree_levels)
        if schedule.columns_share:
            operations += PASS * size * numbers(domain)
        if schedule.along_axes:
            operations += dense_rounds(size, axes, k, len(schedule.refine_shares))
        else:
            operations += lloyd_rounds(domain, k, len(schedule.refine_shares))
        if schedule.few_records:  # the first round is about more centres
            operations += lloyd_rounds(domain, schedule.explore_centres - k, 1)
        if not schedule.few_records:
            made = Blocks.of(plan)
            noise, cell = made.explore.deviation(plan, "sizes"), made.tree.deviation(plan, "tree")
            seeds = float(tuning.affordable_seeds(size, noise, k, schedule.explore_centres))
            operations += dense_rounds(size, axes, seeds, schedule.explore_rounds)
            operations += tuning.SEED_OPERATIONS * seeds + tuning.CLUSTER_OPERATIONS * min(k, seeds)
            cells = size / (tuning.KEEP * cell)  # as many as may stay active; of many about half do
            operations += merge_operations(cells)
            operations += many_points_operations(cells / 2, axes, seeds)
        kept = min(2.0 * size * axes + 16.0 * size, KEPT_BYTES)
        memory = kept + 32.0 * k * width + 24.0 * schedule.sketch * width + 6e7
        if schedule.moments:
            operations += size * (RECORD / 2 + 2 * PASS * seen + PRODUCT * seen * seen / 2)
            operations += 2 * PRODUCT * seen**3 + tuning.MOMENT_OPERATIONS * seen * seen / 2
            memory += 40.0 * seen * seen
        if plan.public_rows is not None:
            operations += lloyd_rounds(domain, tuning.PUBLIC_GROUPS, 1) + PASS * size * numbers(domain)
            operations += PRODUCT * len(plan.public_rows) * width * width
            memory += 24.0 * len(plan.public_rows) * width
        if schedule.few_records:
            points = float(tuning.synthetic_point_count(k))
            operations += _FEW_RECORDS_OPERATIONS + best_kmeans_operations(points, width, k)
            memory += 40.0 * points * width
        if schedule.frequencies:
            frequencies = float(schedule.frequencies)
            operations += size * frequencies * _FREQUENCY_OPERATIONS + 2 * VALUE * frequencies
            operations += frequencies * (_FIT_OPERATIONS + _COMPONENT_OPERATIONS * k)
            memory += 1e5 * frequencies
        if plan.k_range is not None:
            noise = Blocks.of(plan).explore.deviation(plan, "sizes")
            operations += synopsis_operations(domain, k, tuple(plan.k_range), noise * k / size)
            memory += 60.0 * made_up_rows(domain.dimension) * width
        if schedule.long_moves:
            operations += settling_operations(axes, k)
        return Work(operations, memory)

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        if Schedule.from_json(plan.parameters).few_records:
            return FewRecordsBlocks.of(plan).run(probe)
        return Blocks.of(plan).run(probe)


@dataclass(frozen=True)
class SketchRecovery(Block):
    """Centres, in all columns, of clusters that were found in a sketch."""

    shares: Shares
    fraction: float
    prefix: str = "recover-"

    def steps(self) -> tuple[Step, ...]:
        sums = vector_noise(self.shares.noise(self.fraction * tuning.REFINE_SUMS))
        sizes = additive_noise(self.shares.noise(self.fraction * (1 - tuning.REFINE_SUMS)))
        purpose = "how many records each cluster of the sketch has"
        return (
            self.step("sizes", sizes, ClusterCounts, 1, purpose),
            self.step("sums", sums, GroupResidualSums, 1, "where its middle lies in all columns"),
        )

    def run(self, probe: Probe, overview: Overview, found: Floats, shrinkage: Shrinkage) -> Floats:
        """Centres in all columns, given those that were found in the sketch."""
        plan, rows = probe.plan, Encoded.of(probe.plan.domain)
        assigned = Assigned(overview.view, np.rint(found).astype(np.int64))
        counted = self.measure(probe, "sizes", ClusterCounts(assigned)).astype(np.float64)
        sizes = np.maximum(counted, max(2 * self.deviation(plan, "sizes"), 1.0))
        residuals = GroupResidualSums(assigned, Assigned(rows, overview.centre[None, :]), overview.radius)
        sums = self.measure(probe, "sums", residuals) / WEIGHT_ONE
        errors = overview.radius * self.deviation(plan, "sums", rows.width) / sizes
        return overview.centre + shrinkage.of(sums / sizes[:, None], errors)
