"""The house algorithm: find where rows vary, grow a private coreset there, refine it in all columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from core.algorithms import summit_tuning as tuning
from core.algorithms.base import Algorithm, Clustering, read_options
from core.algorithms.summit_tuning import Schedule, schedule_for
from core.arithmetic import WEIGHT_ONE
from core.blocks.coreset import nearest_points, weighted_kmeans
from core.blocks.noise import deviation
from core.blocks.rounds import (
    Round,
    RoundSteps,
    geometric_edges,
    noisy_round,
    shorten,
    shrink_by_groups,
    trimmed_shares,
)
from core.blocks.starts import clip_into
from core.blocks.subspace import Subspace, principal_axes
from core.blocks.tree import Coreset, grow_tree, halvings, level_bits
from core.domain import UNITS, Domain
from core.mechanisms import LaplaceNoise, additive_noise, vector_noise
from core.plan import Plan, Request, Step, Work
from core.privacy import Pure, Shares
from core.probe import Probe
from core.statistics import (
    ClusterCounts,
    Count,
    NormHistogram,
    PrefixCounts,
    ResidualSums,
    SecondMoments,
    Sums,
)
from core.views import Assigned, Encoded, Projected

__all__ = ["Summit"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_EXPLORE = RoundSteps("explore-spread", "explore-sums", "explore-sizes")


def _refine(number: int) -> RoundSteps:
    return RoundSteps(f"refine-{number}-spread", f"refine-{number}-sums", f"refine-{number}-sizes")


class Summit(Algorithm):
    """The default; its privacy argument is in `summit.md`."""

    name = "summit"
    summary = "subspace, adaptive tree and clipped rounds: nearly as good as without privacy"
    objectives = ("means", "medians")
    guarantee = "either"
    domains = ("dense",)
    options = ()

    def plan(self, domain: Domain, request: Request) -> Plan:
        read_options(self.options, request.options)
        schedule = schedule_for(domain, request)
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=_steps(schedule, Shares(request.budget, domain.rows_per_person)),
            parameters=schedule.to_json(),
            work=_work(schedule, domain),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        return _Run(plan, probe).clustering()


def _steps(schedule: Schedule, shares: Shares) -> tuple[Step, ...]:
    centre_sum = tuning.CENTRE * tuning.CENTRE_SUM
    steps = [
        Step(
            "size", additive_noise(shares.of(tuning.CENTRE - centre_sum)), Count.kind, 1, "how many records"
        ),
        Step("centre", vector_noise(shares.of(centre_sum)), Sums.kind, 1, "the middle of all records"),
        Step(
            "radius", additive_noise(shares.of(tuning.RADIUS)), NormHistogram.kind, 1, "how far records reach"
        ),
    ]
    if schedule.moments:
        loss = shares.of(schedule.subspace_share)
        noise = LaplaceNoise(loss.epsilon) if isinstance(loss, Pure) else vector_noise(loss)
        steps.append(Step("moments", noise, SecondMoments.kind, 1, "the directions in which records vary"))
    levels = schedule.tree_levels
    steps.append(
        Step(
            "tree",
            additive_noise(shares.of(schedule.tree_share / levels)),
            PrefixCounts.kind,
            levels,
            "where records crowd",
        )
    )
    rounds = schedule.explore_rounds
    steps += _round_steps(_EXPLORE, shares, schedule.explore_share / rounds, tuning.EXPLORE_SUMS, rounds)
    for number, share in enumerate(schedule.refine_shares, 1):
        steps += _round_steps(_refine(number), shares, share, tuning.REFINE_SUMS, 1)
    return tuple(steps)


def _round_steps(names: RoundSteps, shares: Shares, share: float, sums: float, rounds: int) -> list[Step]:
    rest = share * (1 - tuning.ROUND_SPREAD)
    return [
        Step(
            names.spread,
            additive_noise(shares.of(share * tuning.ROUND_SPREAD)),
            NormHistogram.kind,
            rounds,
            "how far each cluster reaches, to clip it well",
        ),
        Step(
            names.sums,
            vector_noise(shares.of(rest * sums)),
            ResidualSums.kind,
            rounds,
            "where the middle of each cluster lies",
        ),
        Step(
            names.sizes,
            additive_noise(shares.of(rest * (1 - sums))),
            ClusterCounts.kind,
            rounds,
            "how many records each cluster has",
        ),
    ]


def _work(schedule: Schedule, domain: Domain) -> Work:
    size, width = float(domain.size), float(domain.dimension)
    axes = min(width, tuning.MOST_AXES)
    passes = 4.0 + 3.0 * schedule.refine_rounds
    operations = size * width * (passes + axes + 2.0 * schedule.refine_rounds * schedule.explore_centres)
    operations += size * axes * schedule.explore_rounds * (schedule.explore_centres + 2.0)
    operations += schedule.tree_levels * size * 20.0
    memory = 2.0 * size * axes + 16.0 * size + 24.0 * schedule.explore_centres * width + 6e7
    if schedule.moments:
        operations += size * width * width + 10.0 * width**3
        memory += 40.0 * width * width
    return Work(operations, memory)


@dataclass(frozen=True, eq=False)
class _Scene:
    """What the first measurements told: about where, how far and in which directions records lie."""

    centre: Integers
    size: float
    radius: int
    subspace: Subspace
    view: Projected
    #: Units of the projected view per encoded unit.
    zoom: float


class _Run:
    """One run of a plan; holds released values only."""

    def __init__(self, plan: Plan, probe: Probe) -> None:
        self._plan = plan
        self._probe = probe
        self._schedule = Schedule.from_json(plan.parameters)
        self._domain = plan.domain
        self._rows = Encoded.of(plan.domain)

    def clustering(self) -> Clustering:
        scene = self._scene()
        seeds = self._explore(scene, self._tree(scene))
        centres, last = self._refine(scene, seeds)
        return Clustering(
            self._domain.decode(centres),
            np.maximum(last.sizes, 0.0),
            self._plan,
            dict(self._probe.draws),
            {"axes": int(scene.subspace.axes.shape[1]), "clipping_radii_units": last.radii.tolist()},
        )

    # --- scene ----------------------------------------------------------------------------------------------

    def _scene(self) -> _Scene:
        size = max(float(self._probe.measure("size", Count(self._domain.fingerprint))[0]), 1.0)
        sums = self._probe.measure("centre", Sums(self._rows))[0]
        centre = np.rint(clip_into(self._domain, (sums / size)[None, :])[0]).astype(np.int64)
        edges = geometric_edges(2 * UNITS, tuning.RADIUS_FACTOR, tuning.RADIUS_BINS)
        assigned = Assigned(self._rows, centre[None, :])
        histogram = self._probe.measure("radius", NormHistogram(assigned, edges))[0].astype(np.float64)
        shares = trimmed_shares(histogram, deviation(self._plan, "radius"))
        tight, radius = (
            int(edges[np.argmax(shares.cumsum() >= level)])
            for level in (tuning.SHAPE_LEVEL, tuning.DATA_LEVEL)
        )
        subspace = self._subspace(centre, size, shares, edges, radius, tight)
        zoom = UNITS / radius
        matrix = np.rint(subspace.axes * (WEIGHT_ONE * zoom)).astype(np.int64)
        view = Projected(self._rows, matrix, UNITS, centre)
        return _Scene(centre, size, radius, subspace, view, zoom)

    def _subspace(
        self, centre: Integers, size: float, shares: Floats, edges: Integers, radius: int, tight: int
    ) -> Subspace:
        width = self._rows.width
        middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])

        def energy(limit: int) -> float:
            return max(float(shares @ np.minimum(middles, limit) ** 2), 1e-9)

        if not self._schedule.moments:
            axes = np.eye(width)
            if width > tuning.RANDOM_AXES:
                drawn = self._probe.draw("axes").normal(size=(width, tuning.RANDOM_AXES))
                axes = np.linalg.qr(drawn)[0]
            variance = energy(radius) / width
            return Subspace(axes, np.full(axes.shape[1], variance), axes, np.zeros(width))
        packed = self._probe.measure("moments", SecondMoments(self._rows, centre, tight))
        noise = float(tight) ** 2 * deviation(self._plan, "moments", width)
        if self._plan.budget.is_pure:
            noise *= width  # Laplace noise pays for the l1 norm of a whole matrix
        found = principal_axes(packed, width, noise, size, tuning.LEAST_AXES, tuning.MOST_AXES)
        unclipped = max(1.0, energy(radius) / energy(tight))
        return replace(found, variances=found.variances * unclipped)

    # --- coreset --------------------------------------------------------------------------------------------

    def _tree(self, scene: _Scene) -> Coreset:
        schedule = self._schedule
        axes = min(schedule.tree_axes, scene.view.width)
        reach = tuning.BOX_DEVIATIONS * np.sqrt(scene.subspace.variances[:axes]) * scene.zoom
        cuts = halvings(np.clip(reach, 1.0, UNITS), schedule.tree_depth)
        noise = deviation(self._plan, "tree")
        first = tuning.first_bits(scene.size, noise, schedule.tree_depth)
        bits = level_bits(first, tuning.LATER_BITS, schedule.tree_depth, schedule.tree_levels)
        leaves = grow_tree(self._probe, "tree", scene.view, cuts, bits, scene.size, tuning.KEEP)
        points = np.zeros((len(leaves.points), scene.view.width))
        points[:, :axes] = leaves.points
        return Coreset(points, leaves.weights)

    def _explore(self, scene: _Scene, coreset: Coreset) -> Floats:
        """k centres in the subspace: rounds on more seeds than asked for, then a merge."""
        k, draw = self._plan.k, self._probe.draw("seeding")
        noise = deviation(self._plan, _EXPLORE.sizes)
        seeds = tuning.affordable_seeds(scene.size, noise, k, self._schedule.explore_centres)
        coreset = _padded(coreset, seeds + 2, scene, draw)
        centres = weighted_kmeans(coreset.points, coreset.weights, seeds, draw, restarts=5)
        edges = geometric_edges(2 * UNITS, tuning.ROUND_FACTOR, tuning.ROUND_BINS)
        weights = np.ones(len(centres))
        groups = _groups(scene.view.width)
        for number in range(self._schedule.explore_rounds):
            outcome = noisy_round(self._probe, _EXPLORE, scene.view, centres, edges, scene.view.width)
            moves = shorten(shrink_by_groups(outcome, groups, outcome.moves, 1.0), outcome.radii)
            centres = _inside(outcome.centres + moves)
            weights = np.where(outcome.sizes > outcome.size_error, outcome.sizes, 0.0)
            if number + 1 < self._schedule.explore_rounds:
                centres = _reseed(centres, weights, outcome.spreads, coreset, scene, draw)
        return _merge(centres, weights, k, draw)

    # --- refinement -----------------------------------------------------------------------------------------

    def _refine(self, scene: _Scene, seeds: Floats) -> tuple[Floats, Round]:
        axes = scene.subspace.axes
        width, kept = axes.shape
        centres = clip_into(self._domain, scene.centre + (seeds / scene.zoom) @ axes.T)
        centres = _enough(centres, self._plan.k)
        # Two records in the ball of the data are at most its diameter apart; the last bin takes the rest.
        edges = geometric_edges(min(2 * scene.radius, 2 * UNITS), tuning.ROUND_FACTOR, tuning.ROUND_BINS)
        medians = self._plan.objective == "medians"
        shrinkage = _Shrinkage(scene.subspace)
        for number in range(1, self._schedule.refine_rounds + 1):
            outcome = noisy_round(
                self._probe, _refine(number), self._rows, centres, edges, min(width, 2 * kept), medians
            )
            moves = shrinkage.of(outcome)
            moves = shorten(moves, 4 * np.sqrt(outcome.spreads) if medians else outcome.radii)
            centres = clip_into(self._domain, outcome.centres + moves)
        return centres, outcome


def _groups(width: int) -> list[npt.NDArray[np.intp]]:
    """Neighbouring principal axes, a few at a time."""
    return [np.arange(i, min(i + tuning.GROUP_AXES, width)) for i in range(0, width, tuning.GROUP_AXES)]


class _Shrinkage:
    """Empirical Bayes in groups of coordinates that vary alike between clusters."""

    def __init__(self, subspace: Subspace) -> None:
        width, wide = subspace.candidates.shape
        self._axes = subspace.candidates
        self._along = _groups(wide)
        self._across = np.array_split(np.argsort(-subspace.leftover), min(tuning.GROUPS_OF_COLUMNS, width))
        self._outside = (width - wide) / width

    def of(self, outcome: Round) -> Floats:
        """The moves of a round, shrunk as far as the noise asks for."""
        inner = outcome.moves @ self._axes
        moves = shrink_by_groups(outcome, self._along, inner, 1.0) @ self._axes.T
        if self._outside > 0:
            rest = outcome.moves - inner @ self._axes.T
            moves += shrink_by_groups(outcome, self._across, rest, self._outside)
        return moves


def _inside(points: Floats) -> Floats:
    """Points of the projected view moved into its ball."""
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    inside: Floats = points * np.minimum(1.0, UNITS / np.maximum(norms, 1.0))
    return inside


def _padded(coreset: Coreset, least: int, scene: _Scene, draw: np.random.Generator) -> Coreset:
    """The coreset with random points of hardly any weight where it has too few of its own."""
    missing = max(0, least - len(coreset.points))
    deviations = np.sqrt(np.maximum(scene.subspace.variances, 0.0)) * scene.zoom
    extra = _inside(draw.normal(size=(missing, scene.view.width)) * np.maximum(0.7 * deviations, 1.0))
    return Coreset(
        np.concatenate([coreset.points, extra]), np.concatenate([coreset.weights, np.full(missing, 1e-3)])
    )


def _reseed(
    centres: Floats,
    weights: Floats,
    spreads: Floats,
    coreset: Coreset,
    scene: _Scene,
    draw: np.random.Generator,
) -> Floats:
    """Seeds without records move to where splitting a large, wide cluster saves most."""
    centres, weights = centres.copy(), weights.copy()
    cost = weights * spreads
    owner = nearest_points(coreset.points, centres)
    for idle in np.flatnonzero(weights == 0):
        wide = int(cost.argmax())
        if cost[wide] <= 0:
            break
        own = np.flatnonzero((owner == wide) & (coreset.weights > 0))
        apart = None
        if len(own) >= 2:
            pair = weighted_kmeans(coreset.points[own], coreset.weights[own], 2, draw, restarts=3)
            if len(pair) == 2:
                apart = pair[0] - pair[1]
        if apart is None or not np.any(apart):
            apart = draw.normal(size=centres.shape[1]) * np.sqrt(np.maximum(scene.subspace.variances, 1e-9))
        apart = apart / np.linalg.norm(apart) * (0.5 * math.sqrt(spreads[wide]))
        centres[idle], centres[wide] = centres[wide] + apart, centres[wide] - apart
        cost[wide] /= 4
        weights[idle] = weights[wide] = weights[wide] / 2
    return _inside(centres)


def _merge(centres: Floats, weights: Floats, k: int, draw: np.random.Generator) -> Floats:
    """At most k centres that stand for all seeds with records."""
    if len(centres) <= k:
        return centres
    alive = np.flatnonzero(weights > 0)
    if len(alive) > k:
        return weighted_kmeans(centres[alive], weights[alive], k, draw, restarts=20)
    return centres[np.argsort(-weights, kind="stable")[:k]]


def _enough(centres: Floats, k: int) -> Floats:
    """Exactly k centres: where fewer were found, the first ones again, each a unit apart."""
    if len(centres) == k:
        return centres
    copies = centres[np.arange(k - len(centres)) % len(centres)]
    return np.concatenate([centres, copies])
