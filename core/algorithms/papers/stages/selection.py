"""The first half of Balcan et al. (2017): project, grow candidates, select k of them by local swaps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from core.algorithms.papers.stages.candidates import TreeCandidates
from core.algorithms.papers.stages.local_search import LocalSearch, crowded_choice
from core.algorithms.papers.stages.projection import dimension_for, random_projection
from core.algorithms.papers.stages.recovery import GroupMeans
from core.blocks.base import Block, Clusters
from core.blocks.work import partition_levels, projection
from core.data import UNITS, Domain
from core.errors import WorkLimitExceeded
from core.mechanisms.choice import Choice
from core.plan import Plan, Request, Step, Work
from core.postprocessing.bounds import inside_ball
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.scores import SetLosses
from core.views import Assigned, CandidateDistances, Cubes, Encoded

LARGEST_DIMENSION = 40  # Children of a cube are numbered by 62 bits, with room for a million cubes.
#: Limit on the work of a run: minutes on one core, and the memory of a small machine.
LIMIT = Work(operations=2e12, memory_bytes=8e9)
_PRINTED_FAILURE = 0.01  # The failure probability in the printed constants.


@dataclass(frozen=True)
class SearchSettings:
    """Public numbers of the search for candidates and of the selection among them."""

    dimension: int
    trees: int
    depth: int
    candidates: int
    swaps: int
    trials: int
    #: The count a cube's noisy count must exceed; None: what noise alone rarely exceeds.
    limit: int | None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{name: data[name] for name in cls.__dataclass_fields__})

    def work(self, domain: Domain, k: int, objective: str) -> Work:
        """Operations and bytes, for `trials` runs of everything here."""
        size = float(domain.size)
        project = projection(domain, self.dimension)
        trees = partition_levels(domain, self.dimension, self.trees * self.depth)
        paid = 3.0 if objective == "means" else 8.0  # square roots
        swaps = size * self.candidates * (self.swaps * (paid + 6.0) + paid)
        memory = 16.0 * size * self.dimension + 16.0 * k * self.candidates + 1e8
        return Work(self.trials * (project + trees + swaps), memory)


def settings_for(domain: Domain, request: Request, chosen: Mapping[str, Any]) -> SearchSettings:
    """Settings from options, the paper's experiments or its printed constants; refuses what could not run."""
    k, logarithm = request.clusters, math.log(domain.size / _PRINTED_FAILURE)
    if chosen["constants"] == "printed":
        derived = {
            "dimension": math.ceil(8 * math.log(domain.size)),
            "trees": math.ceil(27 * k * logarithm),
            "depth": max(1, math.ceil(math.log2(domain.size))),
            "swaps": math.ceil(100 * k * logarithm),
            "trials": math.ceil(2 * math.log(1 / _PRINTED_FAILURE)),
            "candidates": 2000,
        }
    else:
        derived = {
            "dimension": dimension_for(domain.size),
            "trees": k,
            "depth": max(3, math.ceil(math.log(domain.size) / 2)),
            "swaps": min(k, 6),
            "trials": 1,
            "candidates": max(300, 8 * k),
        }
    whole = {name: chosen[name] if chosen[name] is not None else value for name, value in derived.items()}
    whole["dimension"] = min(whole["dimension"], domain.dimension)
    whole["depth"] = min(whole["depth"], Cubes.DEPTH)
    whole["candidates"] = max(whole["candidates"], k)
    settings = SearchSettings(**whole, limit=chosen["threshold"])
    if settings.dimension > LARGEST_DIMENSION:
        raise WorkLimitExceeded(
            f"{settings.dimension} projected dimensions give every cube 2^{settings.dimension} children; "
            f"at most {LARGEST_DIMENSION} dimensions can be searched: lower the option dimension",
            parameter="options.dimension",
        )
    settings.work(domain, k, request.objective).require_within(LIMIT)
    return settings


@dataclass(frozen=True)
class Selection(Block):
    """Candidates from partition trees in a random projection, and local search among them."""

    domain: Domain
    k: int
    objective: str
    settings: SearchSettings
    shares: Shares
    #: Fractions of the budget that all trials together spend on trees and on swaps.
    tree_fraction: float
    swap_fraction: float

    @classmethod
    def of(cls, plan: Plan, shares: Shares, trees: float, swaps: float) -> Self:
        settings = SearchSettings.from_json(plan.parameters)
        return cls(plan.domain, plan.k, plan.objective, settings, shares, trees, swaps)

    @property
    def candidates(self) -> TreeCandidates:
        s = self.settings
        return TreeCandidates(
            self.shares, self.tree_fraction, s.trees, s.depth, s.dimension, s.candidates, s.limit, s.trials
        )

    @property
    def work(self) -> Work:
        return self.settings.work(self.domain, self.k, self.objective)

    @property
    def search(self) -> LocalSearch:
        return LocalSearch(self.shares, self.swap_fraction, self.settings.swaps, self.settings.trials)

    def steps(self) -> tuple[Step, ...]:
        return (*self.candidates.steps(), *self.search.steps())

    def run(self, probe: Probe, trial: int = 0) -> Assigned:
        """Records assigned to k centres that were selected in a projection."""
        draw = probe.draw(f"selection-{trial}")
        rows = random_projection(Encoded.of(self.domain), self.settings.dimension, draw)
        points = self.candidates.run(probe, rows, draw).candidates(self.settings.candidates, draw)
        source = CandidateDistances(rows, points, self.objective)
        start = crowded_choice(points.astype(np.float64), self.k, draw)
        return Assigned(rows, points[self.search.run(probe, source, start)])


@dataclass(frozen=True)
class BestTrial(Block):
    """The noisy means of several selections, of which the one that loses least is picked privately."""

    selection: Selection
    means: GroupMeans
    #: The fraction of the budget that the pick spends where there are several trials.
    pick_fraction: float

    @property
    def clip(self) -> int:
        return UNITS

    def steps(self) -> tuple[Step, ...]:
        steps = (*self.selection.steps(), *self.means.steps())
        if self.selection.settings.trials == 1:
            return steps
        choice = Choice(self.selection.shares.choice(self.pick_fraction))
        return (*steps, self.step("trial", choice, SetLosses, 1, "the trial that loses least"))

    def run(self, probe: Probe) -> Clusters:
        """The trial that loses least in all columns; centres are clipped before they are scored."""
        chosen, trials = self.selection, self.selection.settings.trials
        found = [self.means.run(probe, chosen.run(probe, trial)) for trial in range(trials)]
        if trials == 1:
            return found[0]
        points = inside_ball(np.rint(np.concatenate([each.centres for each in found])).astype(np.int64))
        source = CandidateDistances(Encoded.of(chosen.domain), points, chosen.objective)
        sets = np.arange(len(points)).reshape(trials, chosen.k)
        return found[int(self.measure(probe, "trial", SetLosses(source, sets))[0])]
