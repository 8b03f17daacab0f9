"""An adaptive partition tree of noisy counts, whose leaves are a private coreset."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.arrays import Floats, Integers
from core.blocks.base import Block
from core.mechanisms.noise import additive_noise
from core.plan import Step
from core.postprocessing.seeds import Coreset
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import PrefixCounts
from core.views import PathCodes, RowView

MOST_CELLS = 1 << 17  # Cells of one level; a tree that would need more stops growing.
MOST_FIRST_BITS = 14  # Halvings of the first level, at most.


def halvings(view: RowView, half_widths: Floats, depth: int, reach: float = 0.0) -> PathCodes:
    """`depth` halvings, always of the widest side, of a box that reaches at least `half_widths`.

    A side that ends before `reach` is lengthened to it by cells that grow in proportion to their distance
    from the middle: few of them hold records that lie far out, and those within stay fine.
    """
    inner = np.maximum(half_widths, 0.5)
    # On a scale that is logarithmic from the inner end on, with the same slope there, all cells are equal.
    widths = 2.0 * inner * (1.0 + np.log(np.maximum(reach / inner, 1.0)))
    left = widths.copy()
    axes = []
    for _ in range(depth):
        axis = int(left.argmax())
        axes.append(axis)
        left[axis] /= 2
    cells = np.array([1 << axes.count(axis) for axis in range(len(widths))], dtype=np.int64)
    if reach <= inner.min():
        # Whole cells of whole units: cuts lie at integers.
        whole = np.ceil(widths / cells).astype(np.int64) * cells
        return PathCodes.even(view, -(whole // 2), whole, tuple(axes))
    edges = []
    for half, width, count in zip(inner, widths, cells, strict=True):
        scaled = np.linspace(-width / 2, width / 2, count + 1)
        beyond = np.maximum(np.abs(scaled) / half - 1.0, 0.0)
        places = np.sign(scaled) * np.minimum(np.abs(scaled), half) * np.exp(beyond)
        edges.append(tuple(np.rint(places).astype(np.int64).tolist()))
    return PathCodes(view, tuple(edges), tuple(axes))


def count_deviation(shares: Shares, fraction: float) -> float:
    """Standard deviation of a noisy count that spends this fraction of the budget."""
    return additive_noise(shares.noise(fraction)).deviation()


@dataclass(frozen=True)
class LevelRule:
    """How the halvings of a tree are divided into levels, by the records and the noise of a count."""

    depth: int
    #: Standard deviations of the noise that an average cell of the first level should hold.
    head: float
    #: Halvings of the levels after the first, at most.
    later: tuple[int, ...]

    def first(self, size: float, noise: float) -> int:
        """Halvings of the first level."""
        room = math.log2(max(size / (self.head * noise), 2.0))
        return int(min(max(math.floor(room), 1), self.depth, MOST_FIRST_BITS))

    def bits(self, size: float, noise: float, levels: int) -> list[int]:
        """Halvings of each of at most `levels` levels."""
        bits = [self.first(size, noise)]
        for want in self.later:
            if len(bits) == levels or sum(bits) >= self.depth:
                break
            bits.append(min(want, self.depth - sum(bits)))
        return bits

    def levels(self, size: float, shares: Shares, fraction: float) -> int:
        """Number of levels that reach the depth, given that each gets an equal part of this fraction."""
        levels = 1
        for _ in range(3):  # more levels mean more noise, fewer first bits and more levels: settles at once
            noise = count_deviation(shares, fraction / levels)
            levels = len(self.bits(size, noise, self.depth))
        return levels


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """Counts of all children of the cells that are active: a row for each parent, a column for each child."""

    depth: int
    #: Halvings between a parent and its children.
    bits: int
    parents: Integers
    children: Integers
    totals: Floats
    counts: Floats
    #: Standard deviation of the counts of each parent's children.
    errors: Floats
    #: Which children stay active.
    kept: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CountTree(Block):
    """Counts of the descendants of active cells, level by level; released counts decide which stay active."""

    shares: Shares
    fraction: float
    levels: int

    def steps(self) -> tuple[Step, ...]:
        noise = additive_noise(self.shares.noise(self.fraction, self.levels))
        return (self.step("tree", noise, PrefixCounts, self.levels, "where records crowd"),)

    def grow(
        self, probe: Probe, codes: PathCodes, bits: Sequence[int], total: float, threshold: float
    ) -> Iterator[TreeLevel]:
        """At most as many levels as there are in `bits`, each measured once.

        A cell stays active while its count is above `threshold` standard deviations. Counts of parents and
        children are made consistent: each corrects the other by its variance.
        """
        noise = self.deviation(probe.plan, "tree")
        active = np.zeros(1, dtype=np.int64)
        counts, variances = np.array([total]), np.array([math.inf])
        depth = 0
        for more in bits:
            fan = 1 << more
            if len(active) == 0 or len(active) * fan > MOST_CELLS:
                break
            depth += more
            children = (active[:, None] * fan + np.arange(fan)).reshape(-1)
            asked = PrefixCounts(codes, len(codes.axes) - depth, children)
            measured = self.measure(probe, "tree", asked).astype(np.float64).reshape(-1, fan)
            totals, measured, variance = _consistent(counts, variances, measured, noise**2)
            errors = np.sqrt(variance)[:, None]
            kept = measured > threshold * errors
            yield TreeLevel(depth, more, active, children, totals, measured, errors, kept)
            flat = kept.reshape(-1)
            active, counts = children[flat], measured.reshape(-1)[flat]
            variances = np.repeat(variance, fan)[flat]


@dataclass(frozen=True)
class AdaptiveTree(CountTree):
    """A tree whose leaves are the cells that stay active to the end, and what is left over on the way."""

    def run(
        self, probe: Probe, codes: PathCodes, bits: Sequence[int], total: float, threshold: float
    ) -> Coreset:
        """Leaves and their counts."""
        noise = self.deviation(probe.plan, "tree")
        leaves: list[Coreset] = []
        for level in self.grow(probe, codes, bits, total, threshold):
            middles = codes.middles(level.children, level.depth).reshape(*level.counts.shape, -1)
            parents = codes.middles(level.parents, level.depth - level.bits)
            spread = noise * math.sqrt(1 << level.bits)
            leaves.append(_left_over(level.counts, level.kept, level.totals, middles, parents, spread))
        active = level.children[level.kept.reshape(-1)]
        leaves.append(Coreset(codes.middles(active, level.depth), level.counts[level.kept]))
        weights = np.concatenate([leaf.weights for leaf in leaves])
        return Coreset(np.concatenate([leaf.points for leaf in leaves]), np.maximum(weights, 0.0))


def _consistent(
    counts: Floats, variances: Floats, measured: Floats, noise: float
) -> tuple[Floats, Floats, Floats]:
    """Parents' and children's counts that add up, each weighted by its precision; the children's variance."""
    fan = measured.shape[1]
    sums = measured.sum(axis=1)
    known = np.isfinite(variances)
    gain = np.where(known, fan * noise / (fan * noise + np.where(known, variances, 0.0)), 0.0)
    adjusted = measured + ((counts - sums) * gain / fan)[:, None]
    totals = np.where(known, counts + (sums - counts) * (1 - gain), counts)
    return totals, adjusted, noise - gain * noise / fan


def _left_over(
    measured: Floats,
    kept: npt.NDArray[np.bool_],
    totals: Floats,
    middles: Floats,
    parents: Floats,
    noise: float,
) -> Coreset:
    """Mass that no active child carries on: one leaf for each parent in which it exceeds the noise."""
    weak = np.where(kept, 0.0, np.maximum(measured, 0.0))
    mass = weak.sum(axis=1)
    places = np.where(
        (mass > 0)[:, None],
        (weak[:, :, None] * middles).sum(axis=1) / np.maximum(mass, 1e-9)[:, None],
        parents,
    )
    goes_on = kept.any(axis=1)
    rest = totals - np.where(kept, measured, 0.0).sum(axis=1)
    leaves = (~goes_on | (rest > noise)) & (rest > 0)
    amount = np.where(goes_on, rest - 0.5 * noise, totals)
    return Coreset(places[leaves], amount[leaves])
