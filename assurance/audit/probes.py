"""A probe that watches a run: it scores what is released."""

from __future__ import annotations

import dataclasses
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from assurance.audit.covers import Kinds, log_cover_ratio
from assurance.audit.scores import exact_match, log_ratio
from core.coverage.loop import CoverageLoop
from core.data import Chunk, DataSource
from core.mechanisms.coverage_choice import CoverageChoice
from core.plan import Plan
from core.probe import Probe

__all__ = ["SCORES", "WHOLE", "Neighbours", "ScoringProbe"]

Integers = npt.NDArray[np.int64]

#: The log-likelihood ratio, and entries that show an exact value.
SCORES = ("likelihood", "exactness")
#: The name of the whole transcript among the names of steps.
WHOLE = "(all)"


@dataclasses.dataclass(frozen=True, eq=False)
class Neighbours:
    """Two sources of one domain, the second with the records of one person more."""

    without: DataSource
    with_it: DataSource

    def __getitem__(self, larger: bool) -> DataSource:
        return self.with_it if larger else self.without

    @cached_property
    def kinds(self) -> Kinds:
        """Their different rows, for the law of coverage loops."""
        rows = [_rows(source) for source in (self.without, self.with_it)]
        found = np.unique(np.concatenate(rows), axis=0)
        often = [[sum(bool(np.all(row == other)) for other in side) for row in found] for side in rows]
        chunks = [
            Chunk(row[None] if row.ndim else row.reshape(1), 0, ("kind", id(self), place))
            for place, row in enumerate(found)
        ]
        return Kinds(chunks, with_it=often[1], without=often[0])


def _rows(source: DataSource) -> npt.NDArray[Any]:
    parts = [np.asarray(loader().rows) for loader in source.loaders()]
    width = (0,) if source.domain.kind == "ids" else (0, source.domain.dimension)
    return np.concatenate([np.zeros(width, dtype=np.int64), *parts])


class ScoringProbe(Probe):
    """A shipped probe on one of two neighbours; every release is scored afterwards.

    `plan` is what runs, `declared` what was promised: the same, unless the plan is a broken twin. For each
    step one of its uses, drawn at random, is released a second time from the other neighbour. What came
    before is then alike on both sides, so `alone[step]` audits that use alone; `whole` audits the transcript.
    """

    def __init__(
        self, plan: Plan, declared: Plan, neighbours: Neighbours, larger: bool, draw: np.random.Generator
    ) -> None:
        super().__init__(plan, neighbours[larger])
        self._declared = declared
        self._neighbours = neighbours
        self._larger = larger
        self._totals: Any = None
        self._uses = {
            step.name: 0 if isinstance(step.mechanism, CoverageChoice) else int(draw.integers(step.repeats))
            for step in plan.steps
        }
        self.whole = dict.fromkeys(SCORES, 0.0)
        #: By step: the scores of a release from the smaller and of one from the larger dataset.
        self.alone = {step.name: (self.nothing(), self.nothing()) for step in plan.steps}

    @staticmethod
    def nothing() -> dict[str, float]:
        return dict.fromkeys(SCORES, 0.0)

    def _total(self, statistic: Any) -> Any:
        self._seen = self._sum(statistic)
        return self._seen

    def _sum(self, statistic: Any) -> Any:
        """The shipped sum over chunks, less its slow look at what kind of statistic this is."""
        parts = list(self._evaluate(statistic))
        return statistic.finish(reduce(add, parts)) if parts else super()._total(statistic)

    def measure(self, step_name: str, statistic: Any) -> Integers:
        use = self.plan.step(step_name).repeats - self._left[step_name]
        released = super().measure(step_name, statistic)
        if isinstance(statistic, CoverageLoop):
            score = self._cover_scorer(step_name, statistic)
        else:
            score = self._scorer(step_name, statistic)
        own = score(released)
        for name, value in own.items():
            self.whole[name] += value
        if use == self._uses[step_name]:
            other = score(self._again(step_name, statistic))
            self.alone[step_name] = (other, own) if self._larger else (own, other)
        return released

    def _scorer(self, step_name: str, statistic: Any) -> Any:
        own, other = self._seen, self._on_the_other(lambda: self._sum(statistic))
        self._other = other
        with_it, without = (own, other) if self._larger else (other, own)
        mechanism, sensitivity = self._declared.step(step_name).mechanism, statistic.sensitivity

        def score(released: Any) -> dict[str, float]:
            ratio = log_ratio(mechanism, released, with_it, without, sensitivity)
            return {SCORES[0]: ratio, SCORES[1]: exact_match(released, with_it, without)}

        return score

    def _cover_scorer(self, step_name: str, cover: CoverageLoop) -> Any:
        mechanism = self._declared.step(step_name).mechanism
        assert isinstance(mechanism, CoverageChoice)

        def score(picks: Any) -> dict[str, float]:
            return {
                SCORES[0]: log_cover_ratio(mechanism, cover, picks, self._neighbours.kinds),
                SCORES[1]: 0.0,
            }

        return score

    def _again(self, step_name: str, statistic: Any) -> Integers:
        """The same step released from the other neighbour; it joins no transcript."""
        mechanism = self.plan.step(step_name).mechanism
        if isinstance(mechanism, CoverageChoice):
            picks: Integers = self._on_the_other(lambda: self._cover(step_name, mechanism, statistic))
            return picks
        return mechanism.release(self._other, statistic.sensitivity)

    def _on_the_other(self, work: Any) -> Any:
        self._source = self._neighbours[not self._larger]
        try:
            return work()
        finally:
            self._source = self._neighbours[self._larger]
