"""Local search over a finite set of candidates: private swaps of single centres, then a private pick."""

from dataclasses import dataclass

import numpy as np

from core.arrays import Floats, Integers
from core.blocks.base import Block
from core.mechanisms.choice import Choice
from core.plan import Step
from core.postprocessing.kmeans import weighted_kmeans
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.scores import SetLosses, SwapLosses
from core.views import Distances


@dataclass(frozen=True)
class LocalSearch(Block):
    """Swaps of one centre for a candidate, and a pick of the best set on the way; `trials` times."""

    shares: Shares
    fraction: float
    swaps: int
    trials: int = 1
    #: Word for a candidate, in purposes.
    noun: str = "centre"

    def steps(self) -> tuple[Step, ...]:
        choice = Choice(self.shares.choice(self.fraction, self.trials * (self.swaps + 1)))
        swap = f"which {self.noun} to swap for which"
        pick = f"the best set of {self.noun}s on the way"
        swaps = [self.step("swap", choice, SwapLosses, self.trials * self.swaps, swap)] if self.swaps else []
        return (*swaps, self.step("pick", choice, SetLosses, self.trials, pick))

    def run(self, probe: Probe, source: Distances, start: Integers) -> Integers:
        """The candidates that are picked among the start, which takes part, and the set after each swap."""
        visited = [start]
        for _ in range(self.swaps):
            choice = int(self.measure(probe, "swap", SwapLosses(source, visited[-1]))[0])
            leaves, comes = divmod(choice, source.count)
            swapped = visited[-1].copy()
            swapped[leaves] = comes
            visited.append(swapped)
        best = int(self.measure(probe, "pick", SetLosses(source, np.array(visited)))[0])
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
