"""The only access to rows: measures what was planned, as often as planned, and nothing else."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from core.arrays import Integers
from core.coverage.coins import Coins
from core.coverage.loop import CoverageLoop, LoopRound
from core.data import ChunkLoader, DataSource, Geometry
from core.errors import PlanViolation
from core.kernels.sparse_counts import Total
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.sampler import random_bytes
from core.plan import Plan, Step
from core.statistics.base import Statistic

#: Called after every measurement, and between the rounds of a coverage loop, with the step's name, how many
#: measurements are done, how many were planned.
Listener = Callable[[str, int, int], None]

#: Chunk tasks under way at once on an executor; bounds what waits in memory.
_IN_FLIGHT = 64


@dataclass(frozen=True, eq=False)
class Release:
    """One released value and the step that released it."""

    step: str
    values: Integers


class Journal(Protocol):
    """Keeps what a run releases before anything uses it, and returns it to a run that starts over.

    A value that it keeps is never measured again. A coverage loop is one measurement.
    """

    def release(
        self, step: Step, statistic: Statistic | CoverageLoop, measure: Callable[[], Integers]
    ) -> Integers:
        """The values kept for the next measurement, or those of `measure`, once they are kept."""

    def seed(self, name: str, draw: Callable[[], bytes]) -> bytes:
        """The seed kept under a name, or that of `draw`, once it is kept."""


class _NoJournal:
    """For a run that is never started over."""

    def release(
        self, step: Step, statistic: Statistic | CoverageLoop, measure: Callable[[], Integers]
    ) -> Integers:
        return measure()

    def seed(self, name: str, draw: Callable[[], bytes]) -> bytes:
        return draw()


def evaluate(statistic: Statistic | LoopRound, loader: ChunkLoader) -> Total:
    """A chunk task: pure, and safe to repeat."""
    return statistic.of(loader())


class Probe:
    """Holds a source of rows and a plan; `measure` is its only verb on rows.

    Every check and count comes before a row is read: a measurement that fails half-way is spent.
    """

    def __init__(
        self,
        plan: Plan,
        source: DataSource,
        executor: Executor | None = None,
        listener: Listener | None = None,
        journal: Journal | None = None,
    ) -> None:
        if source.domain.fingerprint != plan.domain.fingerprint:
            raise PlanViolation("the plan was made for another domain than the source's")
        self.plan = plan
        self.transcript: list[Release] = []
        self.draws: dict[str, str] = {}
        self._source = source
        self._executor = executor
        self._listener = listener
        self._journal = journal or _NoJournal()
        self._left = {step.name: step.repeats for step in plan.steps}

    def measure(self, step_name: str, statistic: Statistic | CoverageLoop) -> Integers:
        """The statistic's total over all records, released under the step's mechanism.

        A `CoverageLoop` is measured whole: the indices that were picked, one for each planned round.
        """
        step = self.plan.step(step_name)
        if statistic.kind not in step.statistics:
            planned = " or ".join(step.statistics)
            raise PlanViolation(f"step {step_name!r} measures {planned}, not {statistic.kind}")
        if statistic.domain != self.plan.domain.fingerprint:
            raise PlanViolation("the statistic is for another domain than the plan's")
        if self._left[step_name] == 0:
            raise PlanViolation(f"step {step_name!r} was planned {step.repeats} times and is used up")
        if isinstance(step.mechanism, CoverageChoice):
            if not isinstance(statistic, CoverageLoop) or len(statistic.schedule) != step.repeats:
                raise PlanViolation(f"step {step_name!r} needs a cover of {step.repeats} rounds")
            self._left[step_name] = 0  # opened once, and one cost for all rounds
            cover = partial(self._cover, step_name, step.mechanism, statistic)
            picks = self._journal.release(step, statistic, cover)
            self._publish(step_name, picks[:, np.newaxis])
            return picks
        if isinstance(statistic, CoverageLoop):
            raise PlanViolation("a cover is measured by a coverage step only")
        self._left[step_name] -= 1
        released = self._journal.release(step, statistic, partial(self._release, step, statistic))
        self._publish(step_name, [released])
        return released

    def _release(self, step: Step, statistic: Statistic) -> Integers:
        return step.mechanism.release(self._total(statistic), statistic.sensitivity)

    def _cover(self, step_name: str, mechanism: CoverageChoice, cover: CoverageLoop) -> Integers:
        """All rounds of a coverage step; what the proof needs (`core/coverage/loop.md`) is enforced here."""
        coins = Coins(random_bytes(32), mechanism.keep)
        picks: list[int] = []
        for level in cover.schedule:
            if picks:
                self._report(step_name, len(picks))
            before = LoopRound(cover, coins, tuple(picks))
            if before.opens_level:
                set_counts = cover.family.set_counts(level)
            for parts in self._evaluate(before):
                set_counts.change(parts, 1 if before.opens_level else -1)
            picks.append(mechanism.pick(*set_counts.listed(), cover.family.size(level)))
        return np.array(picks, dtype=np.int64)

    def _publish(self, step_name: str, released: Iterable[Integers]) -> None:
        self.transcript += [Release(step_name, values) for values in released]
        self._report(step_name)

    def _report(self, step_name: str, rounds: int = 0) -> None:
        """Tell the listener how far the run is, in a coverage loop with the rounds that are over."""
        if self._listener is not None:
            self._listener(step_name, len(self.transcript) + rounds, self.plan.measurements)

    def rescale(self, geometry: Geometry) -> None:
        """Go on with a geometry of the same table, of which released values decided.

        It changes which statistics blocks ask for; what each of them may cost stays planned.
        """
        if geometry.fingerprint != self.plan.domain.fingerprint:
            raise PlanViolation("the geometry is of another table than the plan's")
        self.plan = replace(self.plan, domain=geometry)

    def draw(self, name: str) -> np.random.Generator:
        """Data-independent randomness under a name; its seed is recorded and published with the release.

        For projections, shifts, hash functions and the seeding of non-private solvers on released values.
        It never decides noise, so a generator expanded from a public seed is enough.
        """
        if name in self.draws:
            raise PlanViolation(f"randomness named {name!r} was drawn already")
        seed = self._journal.seed(name, partial(self._seed, name))
        self.draws[name] = seed.hex()
        return np.random.default_rng(int.from_bytes(seed, "big"))

    def _seed(self, name: str) -> bytes:
        return random_bytes(16)

    def _total(self, statistic: Statistic) -> Total:
        total: Any = statistic.zero  # both kinds of total add up
        for part in self._evaluate(statistic):
            total += part
        return statistic.finish(cast(Total, total))

    def _evaluate(self, statistic: Statistic | LoopRound) -> Iterator[Total]:
        """The statistic of each chunk."""
        if self._executor is None:
            for loader in self._source.loaders():
                yield evaluate(statistic, loader)
            return
        pending: deque[Future[Total]] = deque()
        for loader in self._source.loaders():
            pending.append(self._executor.submit(evaluate, statistic, loader))
            if len(pending) >= _IN_FLIGHT:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
