"""The house algorithm for few records: k-means on a picture of them, which every round corrects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.algorithms import summit_tuning as tuning
from core.algorithms.summit_scene import Scene, SceneSteps, scene_details
from core.algorithms.summit_shrinkage import Shrinkage
from core.algorithms.summit_tuning import Schedule
from core.blocks.adaptive_tree import halvings
from core.blocks.base import Block, Clusters
from core.blocks.density_tree import DensityTree
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


@dataclass(frozen=True)
class PictureBlocks:
    """The stages for few records, in order; a run holds released values only."""

    k: int
    scene: SceneSteps
    tree: DensityTree
    refine: PictureRefinement

    @classmethod
    def of(cls, plan: Plan) -> PictureBlocks:
        shares, schedule = plan.shares(), Schedule.from_json(plan.parameters)
        rounds = tuple(
            PictureRound(shares, share, tuning.REFINE_SUMS, 1, f"refine-{number}-")
            for number, share in enumerate(schedule.refine_shares, start=1)
        )
        return cls(
            plan.k,
            SceneSteps(plan.domain, shares, schedule),
            DensityTree(shares, schedule.tree_share, schedule.tree_levels),
            PictureRefinement(plan.domain, rounds),
        )

    @property
    def stages(self) -> tuple[Block, ...]:
        return self.scene, self.tree, self.refine

    def run(self, probe: Probe) -> Clusters:
        scene = self.scene.run(probe)
        seeds = self.scene.schedule.explore_centres
        return self.refine.run(probe, scene, self._picture(probe, scene), seeds, self.k)

    def _picture(self, probe: Probe, scene: Scene) -> Picture:
        """Points in the subspace that stand for as many records as there are."""
        schedule = self.scene.schedule
        deviations = scene.deviations[: schedule.tree_axes]
        reach = np.clip(tuning.BOX_DEVIATIONS * deviations, 1.0, UNITS)
        codes = halvings(scene.view, reach, schedule.tree_depth)
        noise = self.tree.deviation(probe.plan, "tree")
        bits = tuning.tree_bits(scene.size, noise, schedule.tree_depth, schedule.tree_levels, True)
        spread, clump = np.maximum(deviations, 1.0), scene.size / self.k
        leaves = self.tree.run(probe, codes, bits, scene.size, tuning.PICTURE_KEEP, spread, clump)
        count, draw = tuning.picture_points(self.k), probe.draw("picture")
        seen = painted(leaves, scene.deviations, tuning.PICTURE_OUTSIDE, count, draw)
        return Picture(into_ball(seen.points), seen.weights)


@dataclass(frozen=True)
class PictureRefinement(Block):
    """Rounds in all columns; each corrects the picture, on which k-means then finds the next centres."""

    domain: Domain
    rounds: tuple[PictureRound, ...]
    clip: str = RELEASED

    def steps(self) -> tuple[Step, ...]:
        return tuple(step for each in self.rounds for step in each.steps())

    def run(self, probe: Probe, scene: Scene, seen: Picture, seeds: int, k: int) -> Clusters:
        """k centres after all rounds, given a picture in the subspace; the first round is about `seeds`."""
        rows, draw = Encoded.of(self.domain), probe.draw("seeding")
        free = min(rows.width, 2 * scene.view.width)
        shrinkage = Shrinkage.by_axes(scene.subspace)
        centres = seen.means(seeds, draw)
        known = Known((seen.masses(centres) + scene.size / seeds) / 2, tuning.PICTURE_DOUBT)
        picture = Picture(scene.in_all_columns(seen.points), seen.weights)
        centres = clip_into(self.domain, scene.in_all_columns(centres))
        for each, bias in zip(self.rounds, tuning.PICTURE_BIAS, strict=True):
            found = each.run(probe, rows, centres, scene.edges, free, known, bias)
            moves = shorten(shrinkage.of(found.moves, found.errors), found.radii)
            sizes = np.maximum(found.sizes, tuning.LEAST_SIZE * scene.size / len(centres))
            picture = picture.corrected(found.centres, moves, sizes)
            start = found.centres + moves
            if len(start) > k:
                start = agglomerated(start, sizes, k)
            # New starts may find what was missed; after the last round nothing would measure them.
            anew = each is not self.rounds[-1]
            centres = clip_into(self.domain, picture.means(k, draw, start, anew))
            known = Known(
                np.maximum(picture.masses(centres), tuning.LEAST_SIZE * scene.size / k), tuning.LATER_DOUBT
            )
        radii = found.radii.astype(np.float64)
        details = scene_details(self.domain, scene, radii)
        return Clusters(centres, np.maximum(found.sizes, 0.0), radii, details)
