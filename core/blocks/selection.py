"""The first half of Balcan et al. (2017): project, grow candidates, select k of them by local swaps.

What comes out is an assignment of records to k released centres in the projection. The settings are
functions of public numbers; what follows (recovery in all columns, refinement) is the algorithm's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core.blocks.local_search import crowded_choice, local_swaps
from core.blocks.partition_trees import active_limit, candidate_points, grow_partition
from core.blocks.projection import dimension_for, random_projection
from core.data import Domain
from core.errors import WorkLimitExceeded
from core.mechanisms import Choice, threshold
from core.plan import Step, Work
from core.privacy import Split
from core.probe import Probe
from core.statistics import CubeCounts, SetLosses, SwapLosses
from core.views import Assigned, CandidateDistances, Cubes, Encoded

#: Children of a cube are numbered by 62 bits, with room for a million cubes.
LARGEST_DIMENSION = 40
#: What a run may take: minutes on one core, and the memory of a small machine.
LIMIT = Work(operations=2e12, memory_bytes=8e9)
#: The failure probability in the printed constants.
_PRINTED_FAILURE = 0.01


@dataclass(frozen=True)
class Settings:
    """How candidates are found and selected; public numbers all of them."""

    dimension: int
    trees: int
    depth: int
    candidates: int
    swaps: int
    trials: int
    #: The count a cube's noisy count must exceed; None: what noise alone rarely exceeds.
    limit: int | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        return cls(**{name: data[name] for name in cls.__dataclass_fields__})

    def work(self, domain: Domain, k: int) -> Work:
        """Multiply-adds and bytes, for `trials` runs of everything here."""
        size = float(domain.size)
        project = size * domain.dimension * self.dimension
        trees = size * self.trees * self.depth * (self.dimension + 40.0)
        swaps = size * (self.swaps + 1.0) * self.candidates * (self.dimension + 8.0)
        memory = 16.0 * size * self.dimension + 16.0 * k * self.candidates + 1e8
        return Work(self.trials * (project + trees + swaps), memory)


def settings_for(domain: Domain, k: int, chosen: Mapping[str, Any]) -> Settings:
    """Settings from the options given, the paper's experiments (the default) or its printed constants.

    Refuses, naming the option, what could not run.
    """
    logarithm = math.log(domain.size / _PRINTED_FAILURE)
    if chosen["constants"] == "printed":
        derived = {
            "dimension": math.ceil(8 * math.log(domain.size)),
            "trees": math.ceil(27 * k * logarithm),
            "depth": max(1, math.ceil(math.log2(domain.size))),
            "swaps": math.ceil(100 * k * logarithm),
            "trials": math.ceil(2 * math.log(1 / _PRINTED_FAILURE)),
            "candidates": 100_000,
        }
    else:
        derived = {
            "dimension": dimension_for(domain.size),
            "trees": k,
            "depth": max(3, math.ceil(math.log(domain.size) / 2)),
            "swaps": min(k, 6),
            "trials": 1,
            "candidates": max(500, 8 * k),
        }
    whole = {name: chosen[name] if chosen[name] is not None else value for name, value in derived.items()}
    settings = Settings(
        dimension=min(whole["dimension"], domain.dimension),
        trees=whole["trees"],
        depth=min(whole["depth"], Cubes.DEPTH),
        candidates=max(whole["candidates"], k),
        swaps=whole["swaps"],
        trials=whole["trials"],
        limit=chosen["threshold"],
    )
    if settings.dimension > LARGEST_DIMENSION:
        raise WorkLimitExceeded(
            f"{settings.dimension} projected dimensions give every cube 2^{settings.dimension} children; "
            f"at most {LARGEST_DIMENSION} dimensions can be searched: lower the option dimension",
            parameter="options.dimension",
        )
    settings.work(domain, k).require_within(LIMIT)
    return settings


def selection_steps(settings: Settings, split: Split, trees: float, swaps: float) -> tuple[Step, ...]:
    """The planned measurements of `trials` selections; `trees` and `swaps` are fractions of the budget."""
    levels = settings.trials * settings.trees * settings.depth
    loss = split.noise(trees, levels)
    limit = settings.limit if settings.limit is not None else active_limit(loss, settings.dimension)
    choices = settings.trials * (settings.swaps + 1)
    epsilon = split.choice(swaps, choices)
    steps = [
        Step("partition", threshold(loss, limit), CubeCounts.kind, levels, "cubes in which records crowd"),
        Step("pick", Choice(epsilon), SetLosses.kind, settings.trials, "the best set of centres on the way"),
    ]
    if settings.swaps:
        repeats = settings.trials * settings.swaps
        steps.insert(
            1, Step("swap", Choice(epsilon), SwapLosses.kind, repeats, "which centre to swap for which")
        )
    return tuple(steps)


def select_centres(probe: Probe, settings: Settings, trial: int) -> Assigned:
    """Records assigned to k centres that were selected in a projection."""
    plan = probe.plan
    draw = probe.draw(f"selection-{trial}")
    rows = random_projection(Encoded.of(plan.domain), settings.dimension, draw)
    found = [
        grow_partition(probe, "partition", rows, settings.depth, draw, settings.candidates)
        for _ in range(settings.trees)
    ]
    points = candidate_points(np.concatenate(found), plan.k, settings.candidates, draw)
    source = CandidateDistances(rows, points, plan.objective)
    start = crowded_choice(points.astype(np.float64), plan.k, draw)
    chosen = local_swaps(probe, "swap", "pick", source, start, settings.swaps)
    return Assigned(rows, points[chosen])
