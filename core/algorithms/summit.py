"""The house algorithm: find where rows vary, grow a private coreset there, refine it in all columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from core.algorithms import summit_tuning as tuning
from core.algorithms.base import Algorithm, Clustering, read_options
from core.algorithms.summit_tuning import Schedule, forecast_for, schedule_for
from core.arrays import Floats, Integers
from core.blocks.adaptive_tree import grow_tree, halvings, level_bits
from core.blocks.forecast import widest_unit
from core.blocks.noise import count_noise, deviation
from core.blocks.rounds import Round, RoundSteps, noisy_round
from core.data import UNITS, Domain
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms import LaplaceNoise, additive_noise, vector_noise
from core.plan import KEPT_BYTES, Plan, Request, Step, Work
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import weighted_kmeans
from core.postprocessing.seeds import Coreset, exactly, inside, merged, padded, reseeded
from core.postprocessing.shrinkage import shorten, shrink_by_groups
from core.postprocessing.spread import geometric_edges, trimmed_shares
from core.postprocessing.subspace import Subspace, principal_axes
from core.privacy import Pure, Shares
from core.probe import Probe
from core.statistics import (
    ClusterCounts,
    Count,
    GroupResidualSums,
    NormHistogram,
    PrefixCounts,
    ResidualSums,
    SecondMoments,
    Sums,
)
from core.views import Assigned, Encoded, Projected, RowView

_EXPLORE = RoundSteps("explore-spread", "explore-sums", "explore-sizes")
_RECOVER = RoundSteps("", "recover-sums", "recover-sizes")


def _refine(number: int) -> RoundSteps:
    return RoundSteps(f"refine-{number}-spread", f"refine-{number}-sums", f"refine-{number}-sizes")


class Summit(Algorithm):
    """The default; its privacy argument is in `summit.md`."""

    name = "summit"
    summary = "subspace, adaptive tree and clipped rounds: nearly as good as without privacy"
    objectives = ("means", "medians")
    guarantee = "either"
    domains = ("dense", "sparse")
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
            forecast=forecast_for(schedule, domain, request),
            work=_work(schedule, domain, request.k),
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
            "radius",
            additive_noise(shares.of(schedule.radius_share)),
            NormHistogram.kind,
            1,
            "how far records reach",
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
    if schedule.sketch:
        steps += _recover_steps(shares, schedule.refine_shares[0])
    for number in schedule.refine_numbers:
        share = schedule.refine_shares[number - 1]
        steps += _round_steps(_refine(number), shares, share, tuning.REFINE_SUMS, 1)
    return tuple(steps)


def _recover_steps(shares: Shares, share: float) -> list[Step]:
    sums = vector_noise(shares.of(share * tuning.REFINE_SUMS))
    sizes = additive_noise(shares.of(share * (1 - tuning.REFINE_SUMS)))
    return [
        Step(_RECOVER.sizes, sizes, ClusterCounts.kind, 1, "how many records each cluster of the sketch has"),
        Step(_RECOVER.sums, sums, GroupResidualSums.kind, 1, "where its middle lies in all columns"),
    ]


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


def _work(schedule: Schedule, domain: Domain, k: int) -> Work:
    size, width = float(domain.size), float(domain.dimension)
    seen = float(schedule.sketch or width)  # columns in which second moments are taken
    axes = min(seen, tuning.MOST_AXES)
    operations = (
        size * width * (4.0 + seen * bool(schedule.sketch) + axes + schedule.refine_rounds * (k + 4.0))
    )
    operations += size * axes * schedule.explore_rounds * (schedule.explore_centres + 4.0)
    operations += 20.0 * size * schedule.tree_levels
    kept = min(2.0 * size * axes + 16.0 * size, KEPT_BYTES)
    memory = kept + 32.0 * k * width + 24.0 * schedule.sketch * width + 6e7
    if schedule.moments:
        operations += size * seen * seen + 10.0 * seen**3
        memory += 40.0 * seen * seen
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

    @property
    def deviations(self) -> Floats:
        """Standard deviations along the axes of the projected view, in its units."""
        return np.sqrt(np.maximum(self.subspace.variances, 0.0)) * self.zoom


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
            {
                "axes": int(scene.subspace.axes.shape[1]),
                # In units of the widest column: multiplied by the forecast, the noise in each centre.
                "clipping_radii": (last.reaches * widest_unit(self._domain)).tolist(),
            },
        )

    # --- scene ----------------------------------------------------------------------------------------------

    def _scene(self) -> _Scene:
        size = max(float(self._probe.measure("size", Count(self._domain.fingerprint))[0]), 1.0)
        centre = self._centre(size)
        edges = geometric_edges(2 * UNITS, tuning.RADIUS_FACTOR, tuning.RADIUS_BINS)
        assigned = Assigned(self._rows, centre[None, :])
        histogram = self._probe.measure("radius", NormHistogram(assigned, edges))[0].astype(np.float64)
        shares = trimmed_shares(histogram, count_noise(self._plan, "radius"))
        tight, radius = (
            int(edges[np.argmax(shares.cumsum() >= level)])
            for level in (tuning.SHAPE_LEVEL, tuning.DATA_LEVEL)
        )
        subspace = self._subspace(centre, size, shares, edges, radius, tight)
        zoom = UNITS / radius
        matrix = np.rint(subspace.axes * (WEIGHT_ONE * zoom)).astype(np.int64)
        view = Projected(self._rows, matrix, UNITS, centre)
        return _Scene(centre, size, radius, subspace, view, zoom)

    def _centre(self, size: float) -> Integers:
        """The mean of all records, shrunk towards the middle of the bounds where noise would carry it off."""
        width = self._rows.width
        mean = self._probe.measure("centre", Sums(self._rows))[0] / size
        noise = width * (UNITS * deviation(self._plan, "centre", width) / size) ** 2
        mean = mean * max(0.0, 1.0 - noise / max(float(mean @ mean), 1e-30))
        rounded: Integers = np.rint(clip_into(self._domain, mean[None, :])[0]).astype(np.int64)
        return rounded

    def _subspace(
        self, centre: Integers, size: float, shares: Floats, edges: Integers, radius: int, tight: int
    ) -> Subspace:
        """Axes in all columns, orthonormal or (through a sketch) nearly so."""
        width, sketch = self._rows.width, self._sketch()
        middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])

        def energy(limit: int) -> float:
            return max(float(shares @ np.minimum(middles, limit) ** 2), 1e-9)

        if not self._schedule.moments:
            axes = np.eye(width) if sketch is None else sketch
            variances = np.full(axes.shape[1], energy(radius) / axes.shape[1])
            return Subspace(axes, variances, axes, np.zeros(width))
        view: RowView = self._rows
        middle, zoom = centre, 1.0
        if sketch is not None:
            zoom = UNITS / (tuning.SKETCH_ROOM * radius)
            matrix = np.rint(sketch * (WEIGHT_ONE * zoom)).astype(np.int64)
            view, middle = Projected(self._rows, matrix, UNITS, centre), np.zeros(sketch.shape[1], np.int64)
        clip = min(max(round(tight * zoom), 1), 2 * UNITS)
        shift = max(0, clip.bit_length() - tuning.MOMENT_BITS) if view.width >= tuning.COARSE_FROM else 0
        moments = SecondMoments(view, middle, clip, shift)
        packed = self._probe.measure("moments", moments) << (2 * shift)
        noise = float(moments.steps << shift) ** 2 * deviation(self._plan, "moments")
        if self._plan.budget.is_pure:
            noise *= view.width  # Laplace noise pays for the l1 norm of a whole matrix
        found = principal_axes(packed, view.width, noise, size, tuning.LEAST_AXES, tuning.MOST_AXES)
        found = replace(
            found, variances=found.variances * (max(1.0, energy(radius) / energy(tight)) / zoom**2)
        )
        return found if sketch is None else replace(found, axes=sketch @ found.axes)

    def _sketch(self) -> Floats | None:
        """A random projection that keeps lengths on average; None where all columns are looked at."""
        columns = self._schedule.sketch
        if columns == 0:
            return None
        drawn = self._probe.draw("sketch").normal(size=(self._rows.width, columns))
        return drawn / math.sqrt(columns)

    # --- coreset --------------------------------------------------------------------------------------------

    def _tree(self, scene: _Scene) -> Coreset:
        schedule = self._schedule
        axes = min(schedule.tree_axes, scene.view.width)
        reach = tuning.BOX_DEVIATIONS * scene.deviations[:axes]
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
        coreset = padded(coreset, seeds + 2, scene.deviations, draw)
        centres = weighted_kmeans(coreset.points, coreset.weights, seeds, draw, restarts=5)
        edges = geometric_edges(2 * UNITS, tuning.ROUND_FACTOR, tuning.ROUND_BINS)
        weights = np.ones(len(centres))
        groups = _groups(scene.view.width)
        for number in range(self._schedule.explore_rounds):
            outcome = noisy_round(self._probe, _EXPLORE, scene.view, centres, edges, scene.view.width)
            moves = shorten(shrink_by_groups(outcome.moves, outcome.errors, groups), outcome.radii)
            centres = inside(outcome.centres + moves)
            weights = np.where(outcome.sizes > outcome.size_error, outcome.sizes, 0.0)
            if number + 1 < self._schedule.explore_rounds:
                centres = reseeded(centres, weights, outcome.spreads, coreset, scene.deviations, draw)
        return merged(centres, weights, k, draw)

    # --- refinement -----------------------------------------------------------------------------------------

    def _refine(self, scene: _Scene, seeds: Floats) -> tuple[Floats, Round]:
        seeds = exactly(seeds, self._plan.k)
        if self._schedule.sketch:
            shrinkage = _Shrinkage.by_columns(np.abs(scene.centre).astype(np.float64))
            centres = self._recover(scene, seeds, shrinkage)
        else:
            shrinkage = _Shrinkage.by_axes(scene.subspace)
            centres = scene.centre + (seeds / scene.zoom) @ scene.subspace.axes.T
        # Two records in the ball of the data are at most its diameter apart; the last bin takes the rest.
        edges = geometric_edges(min(2 * scene.radius, 2 * UNITS), tuning.ROUND_FACTOR, tuning.ROUND_BINS)
        medians = self._plan.objective == "medians"
        free = min(self._rows.width, 2 * scene.view.width)
        for number in self._schedule.refine_numbers:
            centres = clip_into(self._domain, centres)
            outcome = noisy_round(self._probe, _refine(number), self._rows, centres, edges, free, medians)
            moves = shrinkage.of(outcome.moves, outcome.errors)
            moves = shorten(moves, 4 * np.sqrt(outcome.spreads) if medians else outcome.radii)
            centres = outcome.centres + moves
        return clip_into(self._domain, centres), outcome

    def _recover(self, scene: _Scene, seeds: Floats, shrinkage: _Shrinkage) -> Floats:
        """Centres in all columns of clusters that were found in a sketch."""
        assigned = Assigned(scene.view, np.rint(seeds).astype(np.int64))
        counted = self._probe.measure(_RECOVER.sizes, ClusterCounts(assigned)).astype(np.float64)
        sizes = np.maximum(counted, max(2 * deviation(self._plan, _RECOVER.sizes), 1.0))
        residuals = GroupResidualSums(assigned, Assigned(self._rows, scene.centre[None, :]), scene.radius)
        sums = self._probe.measure(_RECOVER.sums, residuals) / WEIGHT_ONE
        errors = scene.radius * deviation(self._plan, _RECOVER.sums, self._rows.width) / sizes
        return scene.centre + shrinkage.of(sums / sizes[:, None], errors)


def _groups(width: int) -> list[npt.NDArray[np.intp]]:
    """Neighbouring principal axes, a few at a time."""
    return [np.arange(i, min(i + tuning.GROUP_AXES, width)) for i in range(0, width, tuning.GROUP_AXES)]


class _Shrinkage:
    """Empirical Bayes in groups of coordinates that vary alike between clusters."""

    def __init__(self, axes: Floats, across: list[npt.NDArray[np.intp]]) -> None:
        width, wide = axes.shape
        self._axes = axes
        self._along = _groups(wide)
        self._across = across
        self._outside = (width - wide) / width

    @classmethod
    def by_axes(cls, subspace: Subspace) -> _Shrinkage:
        """Few principal axes at a time, then columns by what the axes leave of their variance."""
        columns = np.argsort(-subspace.leftover, kind="stable")
        return cls(subspace.candidates, np.array_split(columns, min(tuning.GROUPS_OF_COLUMNS, len(columns))))

    @classmethod
    def by_columns(cls, importance: Floats) -> _Shrinkage:
        """Columns in order of importance, in groups that double in size."""
        columns = np.argsort(-importance, kind="stable")
        cuts = [tuning.FIRST_COLUMNS * (2**i - 1) for i in range(1, 32)]
        groups = np.split(columns, [cut for cut in cuts if cut < len(columns)])
        return cls(np.zeros((len(columns), 0)), groups)

    def of(self, moves: Floats, errors: Floats) -> Floats:
        """Moves with these standard deviations per coordinate, shrunk as far as the noise asks for."""
        inner = moves @ self._axes
        shrunk: Floats = shrink_by_groups(inner, errors, self._along) @ self._axes.T
        if self._outside > 0:
            rest = moves - inner @ self._axes.T
            shrunk += shrink_by_groups(rest, errors * math.sqrt(self._outside), self._across)
        return shrunk
