"""Shrinkage of the house algorithm: all rounds together, in groups of coordinates that vary alike."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.blocks.rounds import Round
from core.kernels.clipping import into_ball
from core.postprocessing.shrinkage import shorten, shrink_by_groups
from core.postprocessing.subspace import Subspace

GROUP_AXES = 4  # Neighbouring principal axes that are shrunk together.
GROUPS_OF_COLUMNS = 8  # Groups of columns, each shrunk together, next to the axes.
FIRST_COLUMNS = 16  # Columns in the first group by importance; each group is twice the one before.


def axis_groups(width: int) -> list[npt.NDArray[np.intp]]:
    """Neighbouring principal axes, a few at a time."""
    return [np.arange(i, min(i + GROUP_AXES, width)) for i in range(0, width, GROUP_AXES)]


def moved_along_axes(outcome: Round, factor: float = 1.0) -> Floats:
    """Centres of the projected view after a round, moved `factor` times as far as measured."""
    groups = axis_groups(outcome.moves.shape[1])
    moves = shorten(shrink_by_groups(outcome.moves, outcome.errors, groups), outcome.radii)
    return into_ball(outcome.centres + factor * moves)


class Shrinkage:
    """Empirical Bayes in groups of coordinates that vary alike between clusters."""

    def __init__(self, axes: Floats, across: list[npt.NDArray[np.intp]]) -> None:
        width, wide = axes.shape
        self._axes = axes
        self._along = axis_groups(wide)
        self._across = across
        self._outside = (width - wide) / width

    @classmethod
    def by_axes(cls, subspace: Subspace) -> Shrinkage:
        """Few principal axes at a time, then columns by what the axes leave of their variance."""
        columns = np.argsort(-subspace.leftover, kind="stable")
        return cls(subspace.candidates, np.array_split(columns, min(GROUPS_OF_COLUMNS, len(columns))))

    @classmethod
    def by_columns(cls, importance: Floats) -> Shrinkage:
        """Columns in order of importance, in groups that double in size."""
        columns = np.argsort(-importance, kind="stable")
        cuts = [FIRST_COLUMNS * (2**i - 1) for i in range(1, 32)]
        groups = np.split(columns, [cut for cut in cuts if cut < len(columns)])
        return cls(np.zeros((len(columns), 0)), groups)

    def of(self, moves: Floats, errors: Floats) -> Floats:
        """Moves, shrunk according to the standard deviations of the noise in each coordinate."""
        inner = moves @ self._axes
        shrunk: Floats = shrink_by_groups(inner, errors, self._along) @ self._axes.T
        if self._outside > 0:
            rest = moves - inner @ self._axes.T
            shrunk += shrink_by_groups(rest, errors * math.sqrt(self._outside), self._across)
        return shrunk


class CombinedRounds:
    """Moves from the first centres to the clusters' means as all rounds so far tell them, then shrunk.

    Means of an earlier round count for less, the more their cluster has changed since: what two rounds differ
    by beyond their noise is added to the variance of the earlier one.
    """

    def __init__(self, shrinkage: Shrinkage) -> None:
        self._shrinkage = shrinkage
        self._start: Floats | None = None
        self._means: Floats = np.zeros((0, 0))
        self._variances: Floats = np.zeros(0)

    def __call__(self, found: Round) -> Floats:
        """Moves from the centres of this round."""
        means, noise = found.centres + found.moves, found.errors**2
        if self._start is None:
            self._start, self._means, self._variances = found.centres.astype(np.float64), means, noise
        else:
            change = ((means - self._means) ** 2).mean(axis=1) - noise - self._variances
            earlier = self._variances + np.maximum(change, 0.0)
            trust = earlier / (earlier + noise)
            self._means = self._means + trust[:, None] * (means - self._means)
            self._variances = trust * noise
        moves = self._shrinkage.of(self._means - self._start, np.sqrt(self._variances))
        return self._start + moves - found.centres
