"""Rounds for few records: each corrects the synthetic points, whose k-means are the next centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.algorithms.summit.overview import Overview
from core.algorithms.summit.shrinkage import Shrinkage
from core.blocks.base import Block, Clusters
from core.blocks.few_records_rounds import FewRecordsRound
from core.blocks.noise import RELEASED
from core.data import Domain
from core.plan import Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import agglomerated
from core.postprocessing.precision import Known
from core.postprocessing.shrinkage import shorten
from core.postprocessing.synthetic_points import SyntheticPoints
from core.probe import Probe
from core.views import Encoded

CLIPPING_BIAS = (0.7, 0.5, 0.35)  # Move of a mean by clipping over the mean overshoot, by round.
DOUBT = 0.5  # Relative error of cluster sizes in the synthetic points before the first round.
LATER_DOUBT = 0.4  # Relative error of cluster sizes in the synthetic points after a round.
LEAST_SIZE = 0.1  # No cluster is expected to have less than this share of N / k records.
LEAST_WEIGHT = 0.01  # Weight of clusters that are likely noise, as a share of N / k.


@dataclass(frozen=True)
class FewRecordsRefinement(Block):
    """Rounds in all columns; each corrects the synthetic points, whose k-means are the next centres."""

    domain: Domain
    rounds: tuple[FewRecordsRound, ...]
    clip: str = RELEASED

    def steps(self) -> tuple[Step, ...]:
        return tuple(step for each in self.rounds for step in each.steps())

    def run(
        self, probe: Probe, overview: Overview, synthetic: SyntheticPoints, followed: int, k: int
    ) -> Clusters:
        """k centres after all rounds, given points in the subspace; the first round has `followed`."""
        rows, draw = Encoded.of(self.domain), probe.draw("seeding")
        free = min(rows.width, 2 * overview.view.width)
        shrinkage = Shrinkage.by_axes(overview.subspace)
        centres = synthetic.means(followed, draw)
        known = Known((synthetic.masses(centres) + overview.size / followed) / 2, DOUBT)
        synthetic = SyntheticPoints(overview.in_all_columns(synthetic.points), synthetic.weights)
        centres = clip_into(self.domain, overview.in_all_columns(centres))
        for each, bias in zip(self.rounds, CLIPPING_BIAS, strict=True):
            found = each.run(probe, rows, centres, overview.edges, free, known, bias)
            moves = shorten(shrinkage.of(found.moves, found.errors), found.radii)
            if followed > k:
                weights = np.maximum(found.expected, LEAST_WEIGHT * overview.size / len(centres))
            else:  # with so few records, counts hardly show which clusters are noise
                weights = np.maximum(found.sizes, LEAST_SIZE * overview.size / len(centres))
            synthetic = synthetic.corrected(found.centres, moves, weights)
            start = found.centres + moves
            if len(start) > k:
                start = agglomerated(start, weights, k)
            # New starts may find missed clusters; not after the last round, as no round would measure them.
            anew = each is not self.rounds[-1]
            centres = clip_into(self.domain, synthetic.means(k, draw, start, anew))
            sizes = np.maximum(synthetic.masses(centres), LEAST_SIZE * overview.size / k)
            known = Known(sizes, LATER_DOUBT)
        radii = found.radii.astype(np.float64)
        return overview.detailed(self.domain, Clusters(centres, np.maximum(found.sizes, 0.0), radii))
