"""Private rounds of Lloyd's algorithm, clipped where noise and bias balance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Floats, Integers
from core.blocks.base import Block, Clusters
from core.blocks.noise import RELEASED
from core.data import UNITS, Domain
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.shrinkage import shorten
from core.postprocessing.spread import DistanceHistogram, DistanceShape, geometric_edges
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.base import Counts, Statistic
from core.statistics.counts import ClusterCounts, NormHistogram
from core.statistics.sums import ResidualSums
from core.views import Assigned, Encoded, RowView

#: k-medians: residuals are clipped at this quantile, which makes the round a smoothed Weiszfeld step.
_MEDIAN_QUANTILE = 0.15


@dataclass(frozen=True, eq=False)
class Round:
    """The release of a round: for each cluster the move from its centre to its mean, and the noise in it."""

    centres: Integers
    moves: Floats
    #: Standard deviation of the noise in each coordinate of a move.
    errors: Floats
    sizes: Floats
    size_error: float
    radii: Integers
    #: The radii that a mean with as much noise, whose sums are measured once, would be clipped to: for
    #: medians more than `radii`, as records beyond the radius count for less than one.
    reaches: Floats
    #: Mean squared distance of a cluster's records to the centre.
    spreads: Floats
    #: Distances to the centre, by cluster, as they were measured.
    distances: DistanceHistogram


@dataclass(frozen=True)
class RoundSteps(Block):
    """Steps of rounds that release a histogram of distances, then sums and sizes of the clusters.

    Of the fraction that all rounds share, `SPREAD` goes to histograms and `sum_share` of the rest to sums.
    """

    #: The share of a round that goes to the histogram of distances, from which it reads clipping radii.
    SPREAD: ClassVar[float] = 0.07
    HISTOGRAM: ClassVar[type[Counts]] = NormHistogram
    SUMS: ClassVar[type[Statistic]] = ResidualSums

    shares: Shares
    fraction: float
    sum_share: float
    rounds: int = 1
    prefix: str = "refine-"
    #: Of the histogram, the sums and the sizes.
    purposes: tuple[str, str, str] = (
        "how far each cluster reaches",
        "where its centre lies",
        "how many records it has",
    )

    def steps(self) -> tuple[Step, ...]:
        rest = self.fraction * (1 - self.SPREAD)
        spread = additive_noise(self.shares.noise(self.fraction * self.SPREAD, self.rounds))
        sums = vector_noise(self.shares.noise(rest * self.sum_share, self.rounds))
        sizes = additive_noise(self.shares.noise(rest * (1 - self.sum_share), self.rounds))
        return (
            self.step("spread", spread, self.HISTOGRAM, self.rounds, self.purposes[0]),
            self.step("sums", sums, self.SUMS, self.rounds, self.purposes[1]),
            self.step("sizes", sizes, ClusterCounts, self.rounds, self.purposes[2]),
        )


@dataclass(frozen=True)
class ClippedRounds(RoundSteps):
    """Rounds that read clipping radii off a histogram for each cluster.

    All that follows the three measurements is arithmetic on released values.
    """

    #: Whether some clusters may be far wider than others, as those of few records far out are. Otherwise a
    #: wide cluster is rather one of several groups, and a tight clip finds one of them.
    own_scales: bool = False
    #: A block with the name of a step that it left, for another measurement of the sums; None in most runs.
    spare: tuple[Block, str] | None = None

    def run(
        self,
        probe: Probe,
        view: RowView,
        centres: Floats,
        edges: Integers,
        free_coordinates: int,
        medians: bool = False,
    ) -> Round:
        """Measure one round about `centres` (rounded here, before anything is derived from them).

        `free_coordinates`: how many the caller's shrinkage keeps; their noise decides the choice of a radius.
        """
        plan = probe.plan
        assigned = Assigned(view, np.rint(centres).astype(np.int64))
        counted = self.measure(probe, "sizes", ClusterCounts(assigned)).astype(np.float64)
        histogram = self.measure(probe, "spread", NormHistogram(assigned, edges)).astype(np.float64)
        per_bin = self.count_noise(plan, "spread")
        sizes, size_error = _combine(
            (counted, self.deviation(plan, "sizes")),
            (histogram.sum(axis=1), per_bin.deviation * len(edges) ** 0.5),
        )
        divisor = np.maximum(sizes, max(2 * size_error, 1.0))
        shape = DistanceShape.of(histogram, edges, divisor, per_bin, self.own_scales)
        sums_by = ((self, "sums"),) if self.spare is None else ((self, "sums"), self.spare)
        deviations = [block.deviation(plan, name, view.width) for block, name in sums_by]
        per_coordinate = _joint_error(deviations)
        if medians:
            radii = edges[shape.quantiles(_MEDIAN_QUANTILE)]
        else:
            radii = edges[shape.best_clip(free_coordinates * per_coordinate**2)]
        radii = np.clip(radii, 1, 2 * UNITS)
        statistic = ResidualSums(assigned, radii)
        measured = [block.measure(probe, name, statistic) / WEIGHT_ONE for block, name in sums_by]
        sums, _ = _combine(*zip(measured, deviations, strict=True))
        weights = shape.weiszfeld_weights(radii) if medians else np.ones(len(radii))
        divisor = np.maximum(divisor * weights, 1.0)
        return Round(
            centres=assigned.centres,
            moves=sums / divisor[:, None],
            errors=radii * per_coordinate / divisor,
            sizes=sizes,
            size_error=size_error,
            radii=radii,
            reaches=radii / weights * (per_coordinate / deviations[0]),
            spreads=shape.spreads,
            distances=DistanceHistogram(histogram, edges, per_bin),
        )


#: Computes how far centres move from the release of a round.
Rule = Callable[[Round], Floats]


def whole_moves(found: Round) -> Floats:
    """Moves as they were measured, no longer than the clipping radius."""
    return shorten(found.moves, found.radii)


@dataclass(frozen=True)
class Refinement(Block):
    """Clipped rounds in all columns, one after the other: the last stage of most algorithms."""

    domain: Domain
    rounds: tuple[ClippedRounds, ...]
    rule: Rule = whole_moves
    medians: bool = False
    #: None for medians that were searched: how far they err depends on the rows.
    clip: str | None = RELEASED

    def steps(self) -> tuple[Step, ...]:
        return tuple(step for rounds in self.rounds for step in rounds.steps())

    def run(
        self,
        probe: Probe,
        centres: Floats,
        edges: Integers | None = None,
        free_coordinates: int | None = None,
    ) -> Clusters:
        """Centres after all rounds, with the noisy sizes and the radii of the last one."""
        return self.run_rounds(probe, centres, edges, free_coordinates)[0]

    def run_rounds(
        self,
        probe: Probe,
        centres: Floats,
        edges: Integers | None = None,
        free_coordinates: int | None = None,
    ) -> tuple[Clusters, Round]:
        """As `run`, with all that the last round has released."""
        rows = Encoded.of(self.domain)
        edges = geometric_edges(2 * UNITS, 1.2, 25) if edges is None else edges
        free = free_coordinates or rows.width
        for rounds in self.rounds:
            for _ in range(rounds.rounds):
                found = rounds.run(probe, rows, centres, edges, free, self.medians)
                centres = clip_into(self.domain, found.centres + self.rule(found))
        return Clusters(centres, np.maximum(found.sizes, 0.0), found.reaches), found


def _combine(*estimates: tuple[Floats, float]) -> tuple[Floats, float]:
    """Estimates of the same numbers, weighted by their precision."""
    if len(estimates) == 1:
        return estimates[0]
    precision = sum(error**-2 for _, error in estimates)
    combined = sum((values * error**-2 for values, error in estimates), start=np.zeros(1)) / precision
    return combined, _joint_error([error for _, error in estimates])


def _joint_error(errors: list[float]) -> float:
    """The standard deviation of estimates that are weighted by their precision."""
    return errors[0] if len(errors) == 1 else sum(error**-2 for error in errors) ** -0.5
