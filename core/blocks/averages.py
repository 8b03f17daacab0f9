"""Noisy means, in all columns, of clusters that were found in a projection, and rounds that refine them.

A mean is a noisy sum over a noisy count. "paper" draws the noise that Chaturvedi et al. (2021) take from
Nissim, Stemmer and Vadhan (2016): about three times as much, for comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.blocks.lloyd import sum_share
from core.blocks.rounds import Round, RoundSteps, noisy_round
from core.data import UNITS
from core.mechanisms import GaussianNoise, LaplaceNoise
from core.plan import Step
from core.postprocessing.bounds import clip_into, spread_centres
from core.postprocessing.shrinkage import shorten
from core.postprocessing.spread import geometric_edges
from core.privacy import MARGIN, Budget, gaussian_mu
from core.probe import Probe
from core.statistics import ClusterCounts, GroupSums, NormHistogram, ResidualSums
from core.views import Assigned, Encoded

AVERAGES = ("tight", "paper")
#: The constants of the paper's NoisyAVG.
_COUNT_SHARE = 1 / 5
_DIAMETER_FACTOR = 5 / 4
_DELTA_FACTOR = 3.5

#: The share of a refining round that goes to the histogram of distances, from which it reads clipping radii.
_SPREAD = 0.07
_ROUND = RoundSteps("refine-spread", "refine-sums", "refine-sizes")
ARC_EDGES = geometric_edges(2 * UNITS, 1.2, 25)


@dataclass(frozen=True)
class Averages:
    """The noise of sizes and sums that together spend a budget."""

    sizes: GaussianNoise | LaplaceNoise
    sums: GaussianNoise

    @classmethod
    def tight(cls, mu: float, width: int) -> Averages:
        """mu of Gaussian DP, cut where the error of the quotient is least."""
        share = sum_share(width)
        return cls(GaussianNoise(mu * math.sqrt(1 - share)), GaussianNoise(mu * math.sqrt(share)))

    @classmethod
    def paper(cls, budget: Budget, rows_per_person: int) -> Averages:
        """The paper's constants, or exact ones where those would not hold (at a large epsilon)."""
        counts = budget.epsilon * _COUNT_SHARE * (1 - MARGIN)
        printed = budget.epsilon / (
            2 * _DIAMETER_FACTOR * math.sqrt(2 * math.log(_DELTA_FACTOR / budget.delta))
        )
        valid = gaussian_mu(Budget.at_most(budget.epsilon * (1 - _COUNT_SHARE), budget.delta))
        return cls(
            LaplaceNoise(counts / rows_per_person), GaussianNoise(min(printed, valid) / rows_per_person)
        )

    def steps(self) -> tuple[Step, ...]:
        return (
            Step("sizes", self.sizes, ClusterCounts.kind, 1, "size of each cluster"),
            Step("means", self.sums, GroupSums.kind, 1, "its mean in all columns"),
        )


def noisy_averages(probe: Probe, assigned: Assigned) -> tuple[Floats, Floats]:
    """The mean of each cluster in encoded units, inside the bounds, and its noisy size.

    Under the paper's constants a cluster that is too small to tell gets a random point, as printed.
    """
    domain, step = probe.plan.domain, probe.plan.step("sizes")
    sizes = probe.measure("sizes", ClusterCounts(assigned))
    sums = probe.measure("means", GroupSums(assigned, Encoded.of(domain)))
    means = clip_into(domain, sums / np.maximum(sizes, 1)[:, None])
    if isinstance(step.mechanism, LaplaceNoise):
        unsure = sizes < math.log(2 / probe.plan.budget.delta) / step.mechanism.epsilon
        means[unsure] = spread_centres(domain, len(sizes), probe.draw("too-small"))[unsure]
    return means, np.maximum(sizes, 0).astype(np.float64)


def refining_steps(mu: float, rounds: int, width: int) -> tuple[Step, ...]:
    """The measurements of `refine`, which together spend mu."""

    def noise(fraction: float) -> GaussianNoise:
        return GaussianNoise(mu * math.sqrt(fraction / rounds))

    rest, share = 1 - _SPREAD, sum_share(width)
    return (
        Step(_ROUND.spread, noise(_SPREAD), NormHistogram.kind, rounds, "how far each cluster reaches"),
        Step(_ROUND.sums, noise(rest * share), ResidualSums.kind, rounds, "where its middle lies"),
        Step(_ROUND.sizes, noise(rest * (1 - share)), ClusterCounts.kind, rounds, "how many records it has"),
    )


def refine(probe: Probe, centres: Floats, rounds: int, medians: bool) -> tuple[Floats, Floats]:
    """Centres after some private rounds of Lloyd's algorithm, and the noisy sizes of the last one."""
    domain = probe.plan.domain
    rows = Encoded.of(domain)
    sizes = np.zeros(len(centres))
    for _ in range(rounds):
        outcome = noisy_round(probe, _ROUND, rows, centres, ARC_EDGES, domain.dimension, medians)
        centres = clip_into(domain, outcome.centres + _shrunk(outcome))
        sizes = np.maximum(outcome.sizes, 0.0)
    return centres, sizes


def _shrunk(outcome: Round) -> Floats:
    """Moves shrunk by James and Stein's rule, cluster by cluster, and no longer than the clipping radius."""
    energy = np.maximum((outcome.moves**2).sum(axis=1), 1e-30)
    factor = np.maximum(0.0, 1.0 - outcome.moves.shape[1] * outcome.errors**2 / energy)
    return shorten(factor[:, None] * outcome.moves, outcome.radii)
