"""Record a run on a dataset and replay it on a neighbour, with the same random bits and released values.

Three things must hold for any pair of neighbours. The second run asks for the same measurements as the first,
with the same parameters, and ends with the same result: control flow depends on released values alone. Every
total that differs does so within the sensitivity that its statistic declares. And the loss that follows from
those differences, exactly and along the path that was visited, is within what the plan charges.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from assurance.audit.losses import (
    ROUNDING,
    LoopRun,
    Pick,
    Unfaithful,
    change_of,
    loss_of,
    loss_of_loop,
    require_no_more,
    require_within,
    share_of,
)
from assurance.audit.probes import Neighbours
from core.coverage.coins import Coins
from core.coverage.loop import CoverageLoop
from core.data import DataSource
from core.jobs import kinds
from core.mechanisms import sampler
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.noise import GaussianNoise, LaplaceNoise
from core.plan import Plan, Step
from core.privacy.losses import Loss
from core.privacy.sensitivity import Sensitivity
from core.probe import Probe
from core.statistics.base import Statistic
from core.views import View
from tests.support.bits import RepeatableBytes

__all__ = ["Report", "Unfaithful", "replay"]


@dataclasses.dataclass
class Report:
    """What a replay compared."""

    measurements: int = 0
    differing: int = 0
    #: The composed exact loss over what is charged, both as the plan's own composition sees them.
    share: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class _Seen:
    """One measurement of the recorded run."""

    step: str
    statistic: str
    total: Any
    released: Any


def replay(
    plan: Plan, neighbours: Neighbours, larger: bool, seed: int, charged: Plan | None = None
) -> Report:
    """Record a run on one neighbour, replay it on the other, and compare; raises Unfaithful.

    `charged` is the plan that was declared, where a broken twin runs in its place.
    """
    recorder = _Recorder(plan, neighbours[larger], seed)
    with _same_bits(recorder):
        first = _run(plan, recorder)
    follower = _Follower(plan, neighbours[not larger], seed, recorder)
    with _same_bits(follower):
        second = _run(plan, follower)
    if len(follower.seen) != len(recorder.seen):
        raise Unfaithful("the neighbour was measured less often")
    if _fingerprint(first) != _fingerprint(second):
        raise Unfaithful("the result depends on more than what was released")
    return _judge(charged or plan, neighbours, recorder, follower, larger)


def _run(plan: Plan, probe: Probe) -> kinds.Released:
    return kinds.get(plan).run(plan, probe)


class _Watched(Probe):
    """A probe that keeps every exact total, and gives each measurement random bits of its own."""

    def __init__(self, plan: Plan, source: DataSource, seed: int) -> None:
        super().__init__(plan, source)
        self.seed = seed
        self.bits: Callable[[int], bytes] = RepeatableBytes(seed)
        self.seen: list[_Seen] = []
        self.picks: list[Pick] = []
        self.coins: list[Coins] = []

    def measure(self, step_name: str, statistic: Any) -> Any:
        place = len(self.seen)
        self.bits = RepeatableBytes(self.seed * 100_003 + place)
        self.expect(step_name, _fingerprint(statistic))
        return super().measure(step_name, statistic)

    def expect(self, step_name: str, statistic: str) -> None:
        """Called before a row is read."""

    def settle(self, statistic: str, step: Step, total: Any, released: Any) -> Any:
        """What the algorithm is told; the recorded value, in a replay."""
        self.seen.append(_Seen(step.name, statistic, total, released))
        return released

    def _release(self, step: Step, statistic: Statistic) -> Any:
        total = self._total(statistic)
        released = step.mechanism.release(total, statistic.sensitivity)
        _require_declared_form(step, statistic)
        self.sensitivity = statistic.sensitivity
        return self.settle(_fingerprint(statistic), step, total, released)

    def _cover(self, step_name: str, mechanism: CoverageChoice, cover: CoverageLoop) -> Any:
        self.coins, self.picks = [], []
        picks = super()._cover(step_name, _Picking(mechanism, self), cover)  # type: ignore[arg-type]
        if len(self.coins) != 1:
            raise Unfaithful("a coverage loop tosses its coins once")
        loop = LoopRun(cover, self.coins[0], tuple(self.picks))
        return self.settle(_fingerprint(cover), self.plan.step(step_name), loop, picks)

    def forced(self, chosen: int) -> int:
        return chosen

    def _seed(self, name: str) -> bytes:
        return hashlib.sha256(f"{self.seed} {name}".encode()).digest()[:16]


class _Picking:
    """A coverage mechanism that is watched, and follows the recorded picks in a replay."""

    def __init__(self, mechanism: CoverageChoice, probe: _Watched) -> None:
        self._mechanism = mechanism
        self._probe = probe
        self.keep = mechanism.keep

    def pick(self, indices: Any, counts: Any, size: int) -> int:
        index = self._probe.forced(self._mechanism.pick(indices, counts, size))
        held = {int(i): int(c) for i, c in zip(indices, counts, strict=True) if c}
        self._probe.picks.append(Pick(index, held))
        return index


class _Recorder(_Watched):
    """The first run: releases what its bits say."""

    def __init__(self, plan: Plan, source: DataSource, seed: int) -> None:
        super().__init__(plan, source, seed)
        self.sensitivities: list[Sensitivity | None] = []

    def settle(self, statistic: str, step: Step, total: Any, released: Any) -> Any:
        covers = isinstance(step.mechanism, CoverageChoice)
        self.sensitivities.append(None if covers else self.sensitivity)
        return super().settle(statistic, step, total, released)


class _Follower(_Watched):
    """The second run: measures its own rows, and is told what was released in the first."""

    def __init__(self, plan: Plan, source: DataSource, seed: int, recorder: _Recorder) -> None:
        super().__init__(plan, source, seed)
        self._before = recorder

    def expect(self, step_name: str, statistic: str) -> None:
        place = len(self.seen)
        if place >= len(self._before.seen):
            raise Unfaithful(f"the neighbour was measured once more, by {step_name!r}")
        before = self._before.seen[place]
        if (before.step, before.statistic) != (step_name, statistic):
            raise Unfaithful(f"measurement {place} was {before.step!r}, and on the neighbour another")

    def settle(self, statistic: str, step: Step, total: Any, released: Any) -> Any:
        before = self._before.seen[len(self.seen)]
        _require_same_noise(step, before, total, released)
        super().settle(statistic, step, total, released)
        return before.released

    def forced(self, chosen: int) -> int:
        before = self._before.seen[len(self.seen)].total
        return int(before.picks[len(self.picks)].index)


def _judge(
    charged: Plan, neighbours: Neighbours, recorder: _Recorder, follower: _Follower, larger: bool
) -> Report:
    """Compare all totals with what was declared, and their losses with what is charged."""
    rows = charged.domain.rows_per_person
    report, losses = Report(len(recorder.seen)), []
    declared = dict(zip((step.name for step in charged.steps), charged.losses, strict=True))
    for one, other, sensitivity in zip(recorder.seen, follower.seen, recorder.sensitivities, strict=True):
        mechanism = recorder.plan.step(one.step).mechanism
        totals = (other.total, one.total) if larger else (one.total, other.total)
        if sensitivity is None:
            assert isinstance(mechanism, CoverageChoice)
            exact: Loss | None = loss_of_loop(mechanism, *totals, neighbours)
            report.differing += 1
        else:
            change = change_of(*totals)
            if not change.any():
                continue
            report.differing += 1
            require_within(one.step, change, sensitivity, rows)
            exact = loss_of(mechanism, *totals, change, sensitivity, rows)
        if exact is not None:
            require_no_more(one.step, exact, declared[one.step][0])
            losses.append((exact, 1))
    if losses:
        report.share = share_of(losses, charged)
    if report.share > 1 + ROUNDING:
        raise Unfaithful(f"the losses along the path compose to {report.share:.3f} of what is charged")
    return report


def _require_same_noise(step: Step, before: _Seen, total: Any, released: Any) -> None:
    """The same bits make the same noise, whatever the total."""
    if not isinstance(step.mechanism, GaussianNoise | LaplaceNoise):
        return
    if not np.array_equal(released - total, before.released - before.total):
        raise Unfaithful(f"the noise of {step.name!r} depends on what it is added to")


def _require_declared_form(step: Step, statistic: Statistic) -> None:
    if statistic.kind not in step.statistics:
        raise Unfaithful(f"{step.name!r} measured {statistic.kind}")


def _fingerprint(value: Any) -> str:
    """Names a statistic, a cover or a result by all that it is made of."""
    hasher = hashlib.sha256()
    for part in _parts(value):
        hasher.update(part + b";")
    return hasher.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    match value:
        case View():
            yield value.digest.encode()
        case Plan():
            yield value.digest.encode()
        case np.ndarray():
            yield f"{value.dtype}{value.shape}".encode() + value.tobytes()
        case list() | tuple():
            for each in value:
                yield from _parts(each)
        case dict():
            for name, each in value.items():
                yield str(name).encode()
                yield from _parts(each)
        case _ if dataclasses.is_dataclass(value):
            yield type(value).__name__.encode()
            for field in dataclasses.fields(value):
                yield from _parts(getattr(value, field.name))
        case _:
            yield repr(value).encode()


@contextmanager
def _same_bits(probe: _Watched) -> Iterator[None]:
    """Random bytes come from the probe's stream, which each measurement starts anew; coins are watched."""

    def toss(key: bytes, keep: int) -> Coins:
        probe.coins.append(Coins(key, keep))
        return probe.coins[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "random_bytes", lambda count: probe.bits(count))
        patch.setattr("core.probe.random_bytes", lambda count: probe.bits(count))
        patch.setattr("core.probe.Coins", toss)
        yield
