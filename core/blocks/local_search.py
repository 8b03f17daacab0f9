"""Local search over a finite set of candidates: private swaps of single centres, then a private pick."""

from __future__ import annotations

import numpy as np

from core.arrays import Floats, Integers
from core.postprocessing.kmeans import weighted_kmeans
from core.probe import Probe
from core.statistics import SetLosses, SwapLosses
from core.views import Distances


def local_swaps(
    probe: Probe, swap: str, pick: str, source: Distances, start: Integers, swaps: int
) -> Integers:
    """The numbers of the chosen candidates after `swaps` measurements of swap losses and one of whole sets.

    The start takes part in the final pick, and a swap may leave everything as it is.
    """
    visited = [start]
    for _ in range(swaps):
        choice = int(probe.measure(swap, SwapLosses(source, visited[-1]))[0])
        leaves, comes = divmod(choice, source.count)
        swapped = visited[-1].copy()
        swapped[leaves] = comes
        visited.append(swapped)
    best = int(probe.measure(pick, SetLosses(source, np.array(visited)))[0])
    return visited[best]


def crowded_choice(points: Floats, k: int, draw: np.random.Generator) -> Integers:
    """k different candidates to start from: those nearest to k means of all candidates.

    Candidates crowd where records do and are released, so this costs nothing and starts near the records; the
    uniform start in print often begins with the centres of cubes that hold hardly any.
    """
    means = weighted_kmeans(points, np.ones(len(points)), k, draw, restarts=3)
    chosen: list[int] = []
    for mean in means:
        distance = ((points - mean) ** 2).sum(axis=1)
        distance[chosen] = np.inf
        chosen.append(int(distance.argmin()))
    others = np.setdiff1d(np.arange(len(points)), chosen)
    filling = draw.choice(others, k - len(chosen), replace=False) if len(chosen) < k else others[:0]
    return np.concatenate([np.array(chosen, dtype=np.int64), filling])
