"""Rounds of DP-Lloyd: noisy cluster means of residuals about the current centres.

Residuals are clipped to the radius of the domain, as in the classic algorithm, or to radii that each round
reads off a noisy histogram of distances: noise follows the radius.
"""

from __future__ import annotations

import math

import numpy as np

from core.arrays import Floats
from core.blocks.rounds import RoundSteps, noisy_round
from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms import additive_noise, vector_noise
from core.plan import Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.shrinkage import shorten
from core.postprocessing.spread import geometric_edges
from core.privacy import Gaussian, Pure, Split
from core.probe import Probe
from core.statistics import ClusterCounts, NormHistogram, ResidualSums
from core.views import Assigned, Encoded


def sum_share(width: int) -> float:
    """The share of a round that goes to sums, not counts: it minimises the error of their quotient."""
    root = math.sqrt(width)
    return root / (1 + root)


def lloyd_steps(
    sums: Gaussian | Pure, counts: Gaussian | Pure, rounds: int, prefix: str = ""
) -> tuple[Step, ...]:
    return (
        Step(f"{prefix}counts", additive_noise(counts), ClusterCounts.kind, rounds, "size of each cluster"),
        Step(
            f"{prefix}sums",
            vector_noise(sums),
            ResidualSums.kind,
            rounds,
            "where the mean of each cluster lies",
        ),
    )


def lloyd_rounds(
    probe: Probe, centres: Floats, radius: int, rounds: int, prefix: str = ""
) -> tuple[Floats, Floats]:
    """Centres in encoded units after some rounds, and the last noisy sizes of their clusters."""
    domain = probe.plan.domain
    rows = Encoded.of(domain)
    radii = np.full(len(centres), radius, dtype=np.int64)
    sizes = np.zeros(len(centres))
    for _ in range(rounds):
        assigned = Assigned(rows, np.rint(centres).astype(np.int64))
        counts = probe.measure(f"{prefix}counts", ClusterCounts(assigned))
        sums = probe.measure(f"{prefix}sums", ResidualSums(assigned, radii))
        sizes = np.maximum(counts, 0).astype(np.float64)
        moves = sums / WEIGHT_ONE / np.maximum(counts, 1)[:, None]
        centres = clip_into(domain, assigned.centres + moves)
    return centres, sizes


#: The share of a clipped round that goes to the histogram of distances.
_SPREAD = 0.07
_NAMES = RoundSteps("refine-spread", "refine-sums", "refine-sizes")


def clipped_steps(split: Split, fraction: float, rounds: int, width: int) -> tuple[Step, ...]:
    """The planned measurements of `clipped_rounds`, which together spend this fraction of the budget."""
    rest = fraction * (1 - _SPREAD)
    spread = split.noise(fraction * _SPREAD, rounds)
    sums = split.noise(rest * sum_share(width), rounds)
    sizes = split.noise(rest * (1 - sum_share(width)), rounds)
    return (
        Step(
            _NAMES.spread, additive_noise(spread), NormHistogram.kind, rounds, "how far each cluster reaches"
        ),
        Step(_NAMES.sums, vector_noise(sums), ResidualSums.kind, rounds, "where its centre lies"),
        Step(_NAMES.sizes, additive_noise(sizes), ClusterCounts.kind, rounds, "how many records it has"),
    )


def clipped_rounds(
    probe: Probe, centres: Floats, rounds: int, medians: bool = False
) -> tuple[Floats, Floats]:
    """Like `lloyd_rounds`, with released clipping radii; for medians a step of smoothed unit gradients."""
    domain = probe.plan.domain
    rows = Encoded.of(domain)
    edges = geometric_edges(2 * UNITS, 1.2, 25)
    sizes = np.zeros(len(centres))
    for _ in range(rounds):
        outcome = noisy_round(probe, _NAMES, rows, centres, edges, rows.width, medians)
        reach = 2 * np.sqrt(outcome.spreads) if medians else outcome.radii
        centres = clip_into(domain, outcome.centres + shorten(outcome.moves, reach))
        sizes = np.maximum(outcome.sizes, 0.0)
    return centres, sizes
