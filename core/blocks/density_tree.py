"""A tree of noisy counts for few records: weak counts are weighed against a prior, not dropped."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.blocks.adaptive_tree import CountTree
from core.postprocessing.synthetic_points import Leaves, cell_chances, expected_counts
from core.probe import Probe
from core.views import PathCodes


@dataclass(frozen=True)
class DensityTree(CountTree):
    """The counts of an adaptive tree as an estimate of the density."""

    def run(
        self,
        probe: Probe,
        codes: PathCodes,
        bits: Sequence[int],
        total: float,
        threshold: float,
        deviations: Floats,
        clump: float,
    ) -> Leaves:
        """Cells, and the expected number of records in each.

        The prior is a normal distribution of these `deviations`, with most records in clumps of `clump`.
        """
        leaves: list[Leaves] = []
        held = np.array([total])
        for level in self.grow(probe, codes, bits, total, threshold):
            low, high = codes.corners(level.children, level.depth)
            chances = cell_chances(low, high, deviations).reshape(level.counts.shape)
            chances = (chances / chances.sum(axis=1, keepdims=True) + 0.5**level.bits) / 2
            expected = expected_counts(level.counts, level.errors, held[:, None] * chances, clump)
            expected = (expected * (held / expected.sum(axis=1))[:, None]).reshape(-1)
            goes_on = level.kept.reshape(-1)
            leaves.append(Leaves(low[~goes_on], high[~goes_on], expected[~goes_on]))
            low, high, held = low[goes_on], high[goes_on], expected[goes_on]
        return Leaves.joined([*leaves, Leaves(low, high, held)])
