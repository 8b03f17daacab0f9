"""Deliberately broken twins: mechanisms, plans and probes that do not keep their word, to be caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from core.coverage.coins import Coins
from core.coverage.loop import CoverageLoop, LoopRound
from core.kernels.sparse_counts import SparseCounts
from core.mechanisms import sampler
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.mechanisms.threshold import Threshold
from core.plan import Plan
from core.privacy import Budget
from core.privacy.sensitivity import Sensitivity

__all__ = [
    "SkipsEmptyCells",
    "broken_plan",
    "exactly",
    "fresh_coins",
    "growing",
    "half_the_noise",
    "skipping_empty",
    "unscaled",
]

#: Whatever a broken plan composes to, it may run.
_PLENTY = Budget.of(1000, "0.9")

Twin = Callable[[Any], Any]


def broken_plan(plan: Plan, step: str, twin: Twin) -> Plan:
    """The plan with another mechanism in one of its steps."""
    steps = tuple(
        replace(own, mechanism=twin(own.mechanism)) if own.name == step else own for own in plan.steps
    )
    return replace(plan, steps=steps, budget=_PLENTY)


def half_the_noise(mechanism: Any) -> Any:
    """A deviation that is half of what was declared."""
    match mechanism:
        case GaussianNoise(mu):
            return GaussianNoise(2 * mu)
        case LaplaceNoise(epsilon) | L2Noise(epsilon):
            return type(mechanism)(2 * epsilon)
        case Threshold():
            return replace(mechanism, amount=2 * mechanism.amount)
        case CoverageChoice():
            return replace(mechanism, epsilon=2 * mechanism.epsilon)
    return replace(mechanism, **{_amount(mechanism): 2 * getattr(mechanism, _amount(mechanism))})


def _amount(mechanism: Any) -> str:
    return "epsilon" if hasattr(mechanism, "epsilon") else "amount"


def _overriding(mechanism: Any, release: Callable[[Any, Any, Sensitivity], Any]) -> Any:
    """The same mechanism but for what it releases; blocks still recognise its kind and its deviation."""
    own = type(mechanism)
    broken = type(f"Broken{own.__name__}", (own,), {"release": lambda self, t, s: release(self, t, s)})
    return broken(**asdict(mechanism))


def exactly(mechanism: Any) -> Any:
    """Releases the total itself."""
    return _overriding(mechanism, lambda self, total, sensitivity: total)


def skipping_empty(mechanism: Any) -> Any:
    """Adds noise only where there are records: an empty cell shows itself as an exact zero."""
    honest = type(mechanism).release

    def release(self: Any, total: Any, sensitivity: Sensitivity) -> Any:
        return np.where(total == 0, 0, honest(self, total, sensitivity))

    return _overriding(mechanism, release)


def growing(mechanism: Any) -> Any:
    """Noise that is scaled by the exact number of records."""
    honest = type(mechanism).release

    def release(self: Any, total: Any, sensitivity: Sensitivity) -> Any:
        return honest(self, total, replace(sensitivity, scales=sensitivity.scales * (1 + total.sum())))

    return _overriding(mechanism, release)


def unscaled(mechanism: Any) -> Any:
    """Noise for a record that moves one entry by one, whatever the statistic declares."""
    honest = type(mechanism).release

    def release(self: Any, total: Any, sensitivity: Sensitivity) -> Any:
        return honest(self, total, replace(sensitivity, scales=sensitivity.scales / 3, grid=1))

    return _overriding(mechanism, release)


@dataclass(frozen=True)
class SkipsEmptyCells(Threshold):
    """Tries the occupied cells only."""

    def _empty_ones(self, total: SparseCounts, scale: float) -> Any:
        return np.zeros(0, dtype=np.int64)


def fresh_coins(probe: Any, step_name: str, mechanism: CoverageChoice, cover: CoverageLoop) -> Any:
    """A coverage loop in which a record that a coin left out may be back in the next round."""
    picks: list[int] = []
    for level in cover.schedule:
        coins = Coins(sampler.random_bytes(32), mechanism.keep)
        state = LoopRound(cover, coins, tuple(picks))
        counts_of_sets = cover.family.set_counts(level)
        for loader in probe._source.loaders():
            chunk = loader()
            before = state._state(chunk)
            parts = cover.family.parts(cover.family.positions(chunk, before.everyone), level, before.in_play)
            counts_of_sets.change(parts, 1)
        picks.append(mechanism.pick(*counts_of_sets.listed(), cover.family.size(level)))
    return np.array(picks, dtype=np.int64)
