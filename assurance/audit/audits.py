"""Many runs of a case on both neighbours, and what they prove about each step and about the whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from assurance.audit.bounds import ALPHA, Claim, Event, Scores, choose_events
from assurance.audit.cases import Case
from assurance.audit.probes import SCORES, WHOLE, ScoringProbe
from core.algorithms import base
from core.coverage.loop import _states
from core.jobs import kinds
from core.plan import Plan
from core.postprocessing import kmeans
from core.postprocessing.mixture import Mixture, MixtureFit
from core.views import clear_cache

__all__ = ["Audit", "forget", "light", "sample"]

#: Scores of runs on the smaller and on the larger neighbour.
Sides = tuple[list[float], list[float]]


def sample(
    case: Case, runs: int, draw: np.random.Generator, twin: Plan | None = None
) -> dict[str, dict[str, Scores]]:
    """Scores, by step (or whole) and by score, of so many runs on each neighbour.

    `twin` is a broken plan that runs in place of the declared one.
    """
    algorithm, plan = kinds.get(case.plan), twin or case.plan
    names = [step.name for step in case.plan.steps]
    alone: dict[str, dict[str, Sides]] = {name: {score: ([], []) for score in SCORES} for name in names}
    whole: dict[str, Sides] = {score: ([], []) for score in SCORES}
    with light(roughly=True):
        for run in range(2 * runs):
            larger = run % 2 == 1
            probe = ScoringProbe(plan, case.plan, case.neighbours, larger, draw)
            algorithm.run(plan, probe)
            forget()
            for score in SCORES:
                whole[score][larger].append(probe.whole[score])
                for name in names:
                    for side in (0, 1):
                        alone[name][score][side].append(probe.alone[name][side][score])
    return {
        name: {score: Scores(*map(_rounded, sides)) for score, sides in by_score.items()}
        for name, by_score in (alone | {WHOLE: whole}).items()
    }


def _rounded(values: list[float]) -> np.ndarray:
    """Scores that differ by rounding alone are the same score: Laplace noise has many such ties."""
    return np.round(np.array(values, dtype=np.float64), 9)


@contextlib.contextmanager
def light(*, roughly: bool = False) -> Iterator[None]:
    """Small runs by the thousand, with a quick solver for weighted k-means on released values.

    What is solved there never sees rows, as `test_without_rows.py` shows: any solver will do. `roughly`, for
    audits, clusters are not fitted to a sketch either but guessed, and answers for every k are not made.
    """
    stand_ins = _QUICK | _ROUGH if roughly else _QUICK
    shipped = [(module, name, getattr(module, name)) for module, name in stand_ins]
    for (module, name), quick in stand_ins.items():
        setattr(module, name, quick)
    try:
        yield
    finally:
        for module, name, own in shipped:
            setattr(module, name, own)


class QuickMeans:
    """Stands in for scikit-learn's KMeans: three rounds from random points, none from given ones."""

    def __init__(
        self, k: int, n_init: int, init: Any = None, random_state: int = 0, max_iter: int = 300
    ) -> None:
        self._k = k
        self._init = None if callable(init) else init
        self._draw = np.random.default_rng(random_state)
        self.inertia_ = 0.0 if self._init is None else 1.0  # the first of several solvers is taken

    def fit(self, points: np.ndarray, sample_weight: np.ndarray | None = None) -> QuickMeans:
        if self._init is not None:
            self.cluster_centers_ = self._init
            return self
        assert sample_weight is not None
        chance = sample_weight / sample_weight.sum()
        chance = 0.99 * chance + 0.01 / len(points)
        centres = points[self._draw.choice(len(points), self._k, replace=False, p=chance)]
        for _ in range(3):
            owner = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
            weights = np.zeros((self._k, len(points)))
            weights[owner, np.arange(len(points))] = sample_weight
            total = weights.sum(axis=1, keepdims=True)
            centres = np.where(total > 0, weights @ points / np.maximum(total, 1e-300), centres)
        self.cluster_centers_ = centres
        return self


def _no_synopsis(*_: Any) -> Any:
    """Stands in for the answers for every k: centres and sizes of none."""
    return SimpleNamespace(suggested=1, at=lambda k: SimpleNamespace(centres=np.zeros((0, 0)), sizes=None))


def _guessed_mixture(fit: MixtureFit, k: int, draw: np.random.Generator) -> Mixture:
    """Stands in for the fit of a mixture to a sketch: the best k of fifty places."""
    places = draw.normal(size=(50, len(fit.deviations))) * fit.deviations
    phases = places @ fit.frequencies.T
    density = np.cos(phases) @ fit.cosines + np.sin(phases) @ fit.sines
    found, spread = places[np.argsort(density)[-k:]], 0.4 * fit.length
    return Mixture(found, np.full(k, fit.total / k), np.full(k, spread), spread)


_QUICK: dict[tuple[Any, str], Any] = {
    (kmeans, "KMeans"): QuickMeans,
    (kmeans, "agglomerated"): lambda points, weights, k: points[:k],
}
_ROUGH: dict[tuple[Any, str], Any] = {
    (base, "summarise"): _no_synopsis,
    (MixtureFit, "mixture"): _guessed_mixture,
}


def forget() -> None:
    clear_cache()
    _states._states.clear()
    _states._bytes = 0


@dataclass
class Audit:
    """Events of a case, chosen on a pilot and counted on other runs."""

    claims: dict[str, Claim]
    events: dict[str, list[Event]]

    @classmethod
    def begin(cls, claims: dict[str, Claim], pilot: dict[str, dict[str, Scores]], runs: int) -> Audit:
        """Thresholds that should prove most in `runs` runs on each neighbour."""
        return cls(
            claims, {name: choose_events(scores, claims[name], runs) for name, scores in pilot.items()}
        )

    def count(self, scores: dict[str, dict[str, Scores]]) -> None:
        for name, events in self.events.items():
            self.events[name] = [event.counted(scores[name][event.score]) for event in events]

    def bounds(self, alpha: float = ALPHA) -> dict[str, float]:
        """For each step and the whole a lower bound on its loss, wrong with probability alpha at most."""
        return {
            name: max(event.bound(self.claims[name], alpha / len(events)) for event in events)
            for name, events in self.events.items()
        }

    def estimates(self) -> dict[str, float]:
        """What the bounds come to with more and more runs, if the frequencies stay as they are."""
        return {
            name: max(event.estimate(self.claims[name]) for event in events)
            for name, events in self.events.items()
        }

    def violations(self, alpha: float = ALPHA) -> dict[str, tuple[float, float]]:
        """Steps whose bound exceeds what they declare: bound and limit."""
        limits = {name: claim.limit for name, claim in self.claims.items()}
        return {
            name: (bound, limits[name]) for name, bound in self.bounds(alpha).items() if bound > limits[name]
        }
