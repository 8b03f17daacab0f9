"""Every mechanism alone, on the pair of neighbouring totals that tells most: many draws, scored at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from assurance.audit.audits import forget
from assurance.audit.bounds import STEP_DELTA, Claim, Scores
from assurance.audit.covers import log_cover_ratio
from assurance.audit.probes import SCORES, WHOLE, Neighbours
from assurance.audit.scores import additive_ratios, log_named, log_ratio
from core.coverage.families import SiteBalls
from core.coverage.loop import CoverageLoop
from core.data import UNITS, ArraySource, Ids, Sites
from core.kernels.sparse_counts import SparseCounts
from core.mechanisms.base import Mechanism
from core.mechanisms.choice import Choice, TopChoice
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.mechanisms.threshold import Threshold
from core.plan import Plan, Step
from core.privacy import Budget
from core.privacy.sensitivity import Sensitivity
from core.probe import Probe
from core.views import SiteDistances

__all__ = ["MECHANISMS", "MechanismCase", "loop"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A mechanism, how many draws, and which neighbour: their scores.
Draws = Callable[[Any, int, bool], Floats]


@dataclass(frozen=True)
class MechanismCase:
    """A mechanism on a pair of totals; `declared` is scored and judged, another may be drawn from."""

    name: str
    declared: Mechanism
    draws: Draws
    #: How many draws one score is made of, and how many a campaign asks for.
    draws_each: int = 1
    asked: int = 1_000_000

    @property
    def claims(self) -> dict[str, Claim]:
        return {WHOLE: Claim.of([(self.declared.loss, 1)], STEP_DELTA)}

    def sample(
        self, runs: int, draw: np.random.Generator, twin: Mechanism | None = None
    ) -> dict[str, dict[str, Scores]]:
        """Scores of so many runs on each neighbour; `twin` is a broken one that is drawn from instead."""
        drawn = twin or self.declared
        sides = (self.draws(drawn, runs, larger) for larger in (False, True))
        return {WHOLE: {SCORES[0]: Scores(*(np.round(side, 9) for side in sides))}}


def _additive(mechanism: Any, width: int, scale: float) -> Draws:
    """A record that moves one row of this width from zero by its whole scale, along one axis."""
    sensitivity = Sensitivity(np.array([scale]), l1=1.0)

    def draws(drawn: Any, count: int, larger: bool) -> Floats:
        without = np.zeros((count, width), dtype=np.int64)
        with_it = without.copy()
        with_it[:, 0] = round(scale)
        released = drawn.release(with_it if larger else without, sensitivity)
        ratios = additive_ratios(mechanism, released, with_it, without, sensitivity)
        scores: Floats = ratios.reshape(count, -1).sum(axis=1)
        return scores

    return draws


def _choice(mechanism: Choice | TopChoice, without: list[int], with_it: list[int], monotone: bool) -> Draws:
    sensitivity = Sensitivity(monotone=monotone)
    totals = [np.array([scores]) for scores in (without, with_it)]
    known: dict[tuple[int, ...], float] = {}

    def ratio(picks: Integers) -> float:
        name = tuple(picks.reshape(-1).tolist())
        if name not in known:
            known[name] = log_ratio(mechanism, picks, totals[1], totals[0], sensitivity)
        return known[name]

    def draws(drawn: Any, count: int, larger: bool) -> Floats:
        return np.array([ratio(drawn.release(totals[larger], sensitivity)) for _ in range(count)])

    return draws


#: Cells of one release of a threshold: every second holds many records, the others none or one.
_CELLS = 40_000


def _threshold(mechanism: Threshold) -> Draws:
    scores = {
        named: log_named(mechanism, 1, named) - log_named(mechanism, 0, named) for named in (False, True)
    }

    def draws(drawn: Any, count: int, larger: bool) -> Floats:
        found = []
        for start in range(0, count, _CELLS):
            cells = min(_CELLS, count - start)
            many, one = 2 * np.arange(cells) + 1, 2 * np.arange(cells)
            listed = np.sort(np.concatenate([many, one])) if larger else many
            total = SparseCounts(2 * cells, listed, np.where(listed % 2, 9, 1))
            named = np.isin(one, drawn.release(total, Sensitivity(monotone=True)))
            found.append(np.where(named, scores[True], scores[False]))
        return np.concatenate(found)

    return draws


def _coverage(mechanism: CoverageChoice, rounds: int, site: int, count: int) -> Draws:
    """No record at all, or one at this site of so many; all rounds of a loop make one score.

    Site 0 lies apart: a record there is in one set, a record elsewhere in every set but that one.
    """
    places = Ids(count=count, size=10)
    matrix = 1.0 - np.eye(count)
    matrix[0, 1:] = matrix[1:, 0] = 2.0
    sites = SiteDistances.of(places, Sites("matrix", matrix))
    cover = CoverageLoop(SiteBalls(sites, (UNITS // 2 + 1,)), (rounds,))
    neighbours = Neighbours(
        ArraySource(places, np.zeros(0, dtype=np.int64)), ArraySource(places, np.array([site]))
    )
    known: dict[tuple[int, ...], float] = {}

    def ratio(picks: Integers) -> float:
        name = tuple(picks.tolist())
        if name not in known:
            known[name] = log_cover_ratio(mechanism, cover, picks, neighbours.kinds)
        return known[name]

    def draws(drawn: Any, count: int, larger: bool) -> Floats:
        step = Step("cover", drawn, CoverageLoop.kind, rounds)
        plan = Plan("audit", "medians", 1, places, Budget.of(100, "0.5"), (step,))
        source, found = neighbours[larger], []
        for run in range(count):
            found.append(ratio(Probe(plan, source).measure("cover", cover)))
            if run % 100 == 99:
                forget()
        return np.array(found)

    return draws


def _noise(name: str, mechanism: Any, width: int, scale: float) -> MechanismCase:
    return MechanismCase(name, mechanism, _additive(mechanism, width, scale))


def _less(case: MechanismCase) -> MechanismCase:
    """A second way to account for a mechanism that is asked for in full already."""
    return replace(case, asked=case.asked // 5)


def _picks(
    name: str, mechanism: Choice | TopChoice, without: list[int], with_it: list[int], monotone: bool
) -> MechanismCase:
    return MechanismCase(name, mechanism, _choice(mechanism, without, with_it, monotone))


def _cells(name: str, mechanism: Threshold) -> MechanismCase:
    return MechanismCase(name, mechanism, _threshold(mechanism))


def loop(name: str, mechanism: CoverageChoice, rounds: int, site: int, count: int = 3) -> MechanismCase:
    """A coverage loop over so many sites, with or without a record at one of them."""
    return MechanismCase(name, mechanism, _coverage(mechanism, rounds, site, count), rounds)


_EDGE = float(UNITS)

MECHANISMS = {
    case.name: case
    for case in (
        _noise("GaussianNoise, a count", GaussianNoise(1.0), 1, 1.0),
        _noise("GaussianNoise, a sum", GaussianNoise(1.0), 1, _EDGE),
        _noise("LaplaceNoise, a count", LaplaceNoise(1.0), 1, 1.0),
        _noise("LaplaceNoise, a sum", LaplaceNoise(1.0), 1, _EDGE),
        _noise("L2Noise, one column", L2Noise(1.0), 1, _EDGE),
        _noise("L2Noise, three columns", L2Noise(2.0), 3, _EDGE),
        _picks("Choice, all scores but one rise", Choice(2.0), [0] * 10, [0] + [1] * 9, True),
        _picks("Choice, one rises and others fall", Choice(2.0), [0] + [1] * 9, [1] + [0] * 9, False),
        _picks("TopChoice, pure", TopChoice(4.0, 2), [0, 0] + [1] * 11, [1, 1] + [0] * 11, False),
        _less(
            _picks("TopChoice, zCDP", TopChoice(1.0, 2, True), [0, 0] + [1] * 11, [1, 1] + [0] * 11, False)
        ),
        _cells("Threshold, Laplace", Threshold("laplace", 1.0, 1)),
        _cells("Threshold, Gaussian", Threshold("gaussian", 1.0, 1)),
        loop("Coverage, pure", CoverageChoice(2.0), 3, site=1),
        _less(loop("Coverage, approximate", CoverageChoice(1.0, 1e-3, "approximate"), 8, site=0)),
    )
}
