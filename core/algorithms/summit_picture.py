"""The house algorithm for few records: k-means on a picture of them, which every round corrects."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from core.algorithms import summit_tuning as tuning
from core.algorithms.summit_scene import Scene, SceneSteps, scene_details
from core.algorithms.summit_shrinkage import Shrinkage
from core.algorithms.summit_tuning import Schedule
from core.arrays import Floats
from core.blocks.adaptive_tree import halvings
from core.blocks.base import Block, Clusters
from core.blocks.density_tree import DensityTree
from core.blocks.fourier_sketch import FourierSketch
from core.blocks.noise import RELEASED
from core.blocks.picture_rounds import PictureRound
from core.data import UNITS, Domain
from core.kernels.clipping import into_ball
from core.plan import Plan, Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import agglomerated
from core.postprocessing.picture import Picture, painted
from core.postprocessing.precision import Known
from core.postprocessing.shrinkage import shorten
from core.probe import Probe
from core.views import Encoded

#: Relative errors of the sizes in a picture, at first and after a round. None is expected below
#: `_LEAST_SIZE * N / k`; clusters that noise made up keep `_LEAST_WEIGHT * N / k` of the picture at least.
_DOUBT, _LATER_DOUBT, _LEAST_SIZE, _LEAST_WEIGHT = 0.5, 0.4, 0.1, 0.01
#: As `FOUND` of an exploring plan: weak counts are weighed, but so are those of empty cells.
_FOUND = 3.0
#: The resolution of a sketch, in standard deviations of all records: this many divided by the side of a cube
#: of as many cells as a tree would have, and no less than so many divided by the side of a cube of k cells:
#: clusters that fill space are not closer. No axis counts for less than this part of the mean deviation.
_RESOLUTION, _CLUSTERS_APART, _LEAST_DEVIATION = 3.4, 1.22, 0.8
#: Frequencies lie in the first principal axes, so many at most: those that stand out from noise in second
#: moments and others whose deviation is a part of the largest, while it is a part of the resolution. Clusters
#: are not told apart along the rest, and noise there would hide what is.
_SKETCH_AXES, _STANDING_BY, _TELLING = 8, 0.35, 0.4
#: A group of so many standard deviations of the noise in the sketch's density is found.
_SKETCH_FOUND = 6.0


@dataclass(frozen=True)
class PictureBlocks:
    """The stages for few records, in order; a run holds released values only."""

    k: int
    scene: SceneSteps
    #: What the picture is drawn from.
    density: DensityTree | FourierSketch
    refine: PictureRefinement

    @classmethod
    def of(cls, plan: Plan) -> PictureBlocks:
        shares, schedule = plan.shares(), Schedule.from_json(plan.parameters)
        rounds = tuple(
            PictureRound(shares, share, tuning.REFINE_SUMS, 1, f"refine-{number}-")
            for number, share in enumerate(schedule.refine_shares, start=1)
        )
        density: DensityTree | FourierSketch
        if schedule.frequencies:
            density = FourierSketch(shares, schedule.tree_share, schedule.frequencies)
        else:
            density = DensityTree(shares, schedule.tree_share, schedule.tree_levels)
        scene, refine = SceneSteps(plan.domain, shares, schedule), PictureRefinement(plan.domain, rounds)
        return cls(plan.k, scene, density, refine)

    @property
    def stages(self) -> tuple[Block, ...]:
        return self.scene, self.density, self.refine

    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""
        if isinstance(self.density, FourierSketch):
            return _SKETCH_FOUND * self.density.density_noise(plan)
        return _FOUND * tuning.PICTURE_KEEP * self.density.deviation(plan, "tree")

    def run(self, probe: Probe) -> Clusters:
        scene = self.scene.run(probe)
        if isinstance(self.density, FourierSketch):
            seen = self._seen_in_sketch(probe, scene, self.density)
        else:
            seen = self._seen_in_cells(probe, scene, self.density)
        seen = Picture(into_ball(seen.points), seen.weights)
        return self.refine.run(probe, scene, seen, self.scene.schedule.explore_centres, self.k)

    def _seen_in_cells(self, probe: Probe, scene: Scene, tree: DensityTree) -> Picture:
        """Points in the subspace that stand for as many records as there are, from counts of a tree."""
        schedule = self.scene.schedule
        deviations = scene.deviations[: schedule.tree_axes]
        reach = np.clip(tuning.BOX_DEVIATIONS * deviations, 1.0, UNITS)
        codes = halvings(scene.view, reach, schedule.tree_depth)
        noise = tree.deviation(probe.plan, "tree")
        bits = tuning.tree_bits(scene.size, noise, schedule.tree_depth, schedule.tree_levels, True)
        spread, clump = np.maximum(deviations, 1.0), scene.size / self.k
        leaves = tree.run(probe, codes, bits, scene.size, tuning.PICTURE_KEEP, spread, clump)
        count, draw = tuning.picture_points(self.k), probe.draw("picture")
        return painted(leaves, scene.deviations, tuning.PICTURE_OUTSIDE, count, draw)

    def _seen_in_sketch(self, probe: Probe, scene: Scene, sketch: FourierSketch) -> Picture:
        """The same, from a mixture of round clusters that is fitted to a sketch."""
        power = scene.size * probe.plan.shares().total
        axes = _telling_axes(scene.deviations, scene.subspace.clear, power, self.k)
        overall = math.sqrt(float(np.mean(scene.deviations[:axes] ** 2)))
        deviations = np.maximum(scene.deviations[:axes], max(_LEAST_DEVIATION * overall, 1.0))
        length = _resolution(deviations, power, self.k)
        view = replace(scene.view, matrix=scene.view.matrix[:, :axes])
        fit, draw = sketch.run(probe, view, deviations, length, scene.size), probe.draw("picture")
        seen = fit.mixture(self.k, draw).painted(scene.size, tuning.picture_points(self.k), draw)
        others = np.zeros((len(seen.points), scene.view.width - axes))
        return Picture(np.concatenate([seen.points, others], axis=1), seen.weights)


def _telling_axes(deviations: Floats, clear: int, power: float, k: int) -> int:
    """Along how many axes a sketch can tell clusters apart; the first `clear` ones stand out from noise.

    Deviations of all records along the axes fall; `power` is N * mu.
    """
    likely = max(clear, int((deviations >= _STANDING_BY * deviations[0]).sum()))
    axes, most = 1, min(likely, len(deviations), _SKETCH_AXES)
    while axes < most and deviations[axes] >= _TELLING * _resolution(deviations[: axes + 1], power, k):
        axes += 1
    return axes


def _resolution(deviations: Floats, power: float, k: int) -> float:
    """The least distance of clusters that a sketch tells apart; `power` is N * mu."""
    side = 1 / len(deviations)
    by_noise = _RESOLUTION / max(2.0**tuning.PICTURE_CELLS * power, 1.0) ** side
    mean = float(np.exp(np.log(np.maximum(deviations, 1e-6)).mean()))
    return mean * float(max(by_noise, _CLUSTERS_APART / k**side))


@dataclass(frozen=True)
class PictureRefinement(Block):
    """Rounds in all columns; each corrects the picture, on which k-means then finds the next centres."""

    domain: Domain
    rounds: tuple[PictureRound, ...]
    clip: str = RELEASED

    def steps(self) -> tuple[Step, ...]:
        return tuple(step for each in self.rounds for step in each.steps())

    def run(self, probe: Probe, scene: Scene, seen: Picture, followed: int, k: int) -> Clusters:
        """k centres after all rounds, given a picture in the subspace; the first round has `followed`."""
        rows, draw = Encoded.of(self.domain), probe.draw("seeding")
        free = min(rows.width, 2 * scene.view.width)
        shrinkage = Shrinkage.by_axes(scene.subspace)
        centres = seen.means(followed, draw)
        known = Known((seen.masses(centres) + scene.size / followed) / 2, _DOUBT)
        picture = Picture(scene.in_all_columns(seen.points), seen.weights)
        centres = clip_into(self.domain, scene.in_all_columns(centres))
        for each, bias in zip(self.rounds, tuning.PICTURE_BIAS, strict=True):
            found = each.run(probe, rows, centres, scene.edges, free, known, bias)
            moves = shorten(shrinkage.of(found.moves, found.errors), found.radii)
            if followed > k:
                weights = np.maximum(found.expected, _LEAST_WEIGHT * scene.size / len(centres))
            else:  # so few records that counts hardly tell which clusters are made up
                weights = np.maximum(found.sizes, _LEAST_SIZE * scene.size / len(centres))
            picture = picture.corrected(found.centres, moves, weights)
            start = found.centres + moves
            if len(start) > k:
                start = agglomerated(start, weights, k)
            # New starts may find what was missed; after the last round nothing would measure them.
            anew = each is not self.rounds[-1]
            centres = clip_into(self.domain, picture.means(k, draw, start, anew))
            known = Known(np.maximum(picture.masses(centres), _LEAST_SIZE * scene.size / k), _LATER_DOUBT)
        radii = found.radii.astype(np.float64)
        details = scene_details(self.domain, scene, radii)
        return Clusters(centres, np.maximum(found.sizes, 0.0), radii, details)
