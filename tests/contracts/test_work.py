"""The work done depends on how many records there are and on released values, never on the records.

Run times could otherwise tell what was not paid for. Instead of timing them, the tests compare the lines that
run and the sizes and types of all arrays, on datasets as different as the bounds allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp

from assurance.audit.audits import light
from core.algorithms import registry
from core.algorithms.summit import public_rows
from core.algorithms.summit.axes import MOST_AXES
from core.coverage.loop import CoverageLoop
from core.data import (
    UNITS,
    ArraySource,
    Chunk,
    DataSource,
    Dense,
    Geometry,
    Ids,
    NarrowedSource,
    Partition,
    Sparse,
    SparseSource,
    Stored,
    Table,
    TableSource,
    narrowed,
    read_public_rows,
)
from core.jobs import kinds
from core.mechanisms.coverage_choice import CoverageChoice
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.probe import Probe
from core.questions import registry as questions
from core.questions.base import Question
from core.statistics.sums import AbsoluteSums, SecondMoments
from core.views import Encoded, clear_cache
from tests.contracts.test_algorithms import EVERY, domain_for, make_request
from tests.support.bits import inject_bytes
from tests.support.rows import SPARSE, chunk_of
from tests.support.statistics import STATISTICS
from tests.support.work import Event, assert_same_work, recorded_work

COUNT = 40

#: What cannot be listed follows the records that are there: the occupied cells of families that are too large
#: to list, the records that a pick of a coverage loop took out, and how many sets hold equally many records.
#: See `docs/threat-model.md`.
FOLLOWS_RECORDS = (
    "kernels/sparse_counts:SparseCounts.of",
    "kernels/sparse_counts:SparseCounts.__add__",
    "mechanisms/threshold:Threshold.release",
    "coverage/loop:LoopRound._left",
    "coverage/grid_balls:_Implicit.change",
    "coverage/grid_balls:_Implicit.listed",
    "mechanisms/coverage_choice:CoverageChoice.pick",
)


def datasets() -> Iterator[np.ndarray]:
    """Equally many encoded rows with two entries each: spread, close together, on the edge, mixed."""
    draw = np.random.default_rng(2)
    spread = np.zeros((COUNT, 3), dtype=np.int64)
    spread[:, :2] = draw.integers(1, 23_000, size=(COUNT, 2)) * draw.choice([-1, 1], size=(COUNT, 2))
    close, edge = np.ones_like(spread), np.full_like(spread, 23_169)
    close[:, 2] = edge[:, 2] = 0
    yield from (spread, close, edge, -edge)
    yield np.concatenate([close[1:], edge[:1]])


def work_on(statistic: Any, chunk: Chunk) -> list[Event]:
    statistic.of(chunk)  # digests of views and the number of threads are looked up once
    clear_cache()
    with recorded_work() as work:
        statistic.of(chunk)
    return work


@pytest.mark.parametrize("place", range(len(STATISTICS)), ids=lambda place: STATISTICS[place].kind)
def test_a_statistic_does_the_same_work_on_any_rows(place: int) -> None:
    statistic = STATISTICS[place]
    chunks = [chunk_of(rows, statistic.domain == SPARSE.fingerprint) for rows in datasets()]
    assert_same_work(*(work_on(statistic, chunk) for chunk in chunks))


@pytest.mark.parametrize("shift", [8, 5, 0])
def test_one_outlier_more_along_an_axis_is_multiplied_like_any_row(shift: int) -> None:
    """A check of the product's diagonal would fail with one more: products must be exact on any rows."""
    width, radius = 160, 30_000
    domain = Dense.ball(float(UNITS), dimension=width, size=2000)
    statistic = SecondMoments(Encoded.of(domain), np.zeros(width, dtype=np.int64), radius, shift)
    fits = (1 << 24) // (radius >> shift) ** 2  # so many squares along one axis stay exact in singles
    works = []
    for outliers in (0, min(fits, 1999), min(fits + 1, 2000), 2000):
        rows = np.zeros((2000, width), dtype=np.int16)
        rows[:outliers, 3] = radius
        chunk = Chunk(rows, 0, outliers)
        works.append(work_on(statistic, chunk))
        steps = round(radius / (1 << shift))
        assert statistic.of(chunk).sum() == outliers * min(steps, statistic.steps) ** 2
    assert_same_work(*works)


class ForcedProbe(Probe):
    """Measures its own rows, then releases what was released before."""

    def __init__(self, plan: Plan, source: DataSource, before: Probe, patch: pytest.MonkeyPatch) -> None:
        super().__init__(plan, source)
        self._patch = patch
        self._released = iter(before.transcript)
        self._seeds = before.draws

    def measure(self, step_name: str, statistic: Any) -> Any:
        if isinstance(statistic, CoverageLoop):
            return super().measure(step_name, statistic)
        values = next(self._released).values
        kind = type(self.plan.step(step_name).mechanism)
        release = kind.release

        def release_as_before(*arguments: Any) -> Any:
            release(*arguments)
            return values

        # Inside the mechanism, so that the probe never sees a release of another size.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, "release", release_as_before)
            return super().measure(step_name, statistic)

    def _cover(self, step_name: str, mechanism: CoverageChoice, cover: CoverageLoop) -> Any:
        picks = [int(next(self._released).values[0]) for _ in cover.schedule]
        inject_bytes(self._patch, 5)  # the same coins, however many bits were drawn before
        return super()._cover(step_name, cast(CoverageChoice, ForcedPicks(mechanism, iter(picks))), cover)

    def draw(self, name: str) -> np.random.Generator:
        return np.random.default_rng(int.from_bytes(bytes.fromhex(self._seeds[name]), "big"))


@dataclass
class ForcedPicks:
    """A coverage mechanism whose picks are known beforehand."""

    mechanism: CoverageChoice
    picks: Iterator[int]

    @property
    def keep(self) -> int:
        return self.mechanism.keep

    def pick(self, indices: Any, counts: Any, size: int) -> int:
        self.mechanism.pick(indices, counts, size)
        return next(self.picks)


def sources(domain: Stored) -> Iterator[DataSource]:
    """Equally many records of a domain: spread, and all alike but for one."""
    draw = np.random.default_rng(6)
    if isinstance(domain, Ids):
        yield ArraySource(domain, draw.integers(domain.count, size=COUNT))
        yield ArraySource(domain, np.array([0] * (COUNT - 1) + [domain.count - 1]))
        return
    if isinstance(domain, Table):
        born = np.full(COUNT, "1970-01-01", dtype="datetime64[D]")
        ward, smoker = draw.integers(3, size=(2, COUNT))
        levels, words = np.array(["a", "b", ""]), np.array(["yes", "no", ""])
        spread_out = {"age": draw.integers(111, size=COUNT), "ward": levels[ward], "smoker": words[smoker]}
        yield TableSource(domain, {**spread_out, "born": born})
        last = np.array([0] * (COUNT - 1) + [2])
        all_alike = {"age": 50 - 25 * last, "ward": levels[last], "smoker": words[last]}
        yield TableSource(domain, {**all_alike, "born": born})
        return
    spread = draw.uniform(0.1, 1.0, size=(COUNT, domain.dimension))
    alike = np.full_like(spread, 0.5)
    alike[-1] = [1.0, *[0.01] * (domain.dimension - 1)]
    for shares in (spread, alike):
        if isinstance(domain, Sparse):
            yield SparseSource(domain, sp.csr_array(shares * domain.radius))
        else:
            low, high = np.array(domain.low), np.array(domain.high)
            yield ArraySource(domain, low + shares * (high - low))


@EVERY
def test_an_algorithm_does_the_same_work_on_any_records(
    name: str, objective: str, kind: str, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = domain_for(kind)
    plan = registry.plan(domain, make_request(registry.get(name), domain, 3, objective, budget))
    assert_same_work(*works_of(plan, monkeypatch))


@pytest.mark.parametrize(("k", "along_axes"), [(3, False), (30, True)])
def test_wide_rows_are_the_same_work_whatever_they_are(
    k: int, along_axes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = Dense.box(0, 1, dimension=200, size=1000)
    plan = registry.plan(domain, Request(k, Budget.of(1, "0.000001"), algorithm="summit"))
    assert plan.step("columns").statistic == AbsoluteSums.kind
    assert plan.parameters.get("along_axes", False) == along_axes
    assert_same_work(*works_of(plan, monkeypatch))


def test_a_plan_for_few_records_is_the_same_work_whatever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Dense.box(0, 1, dimension=4, size=1000)
    plan = registry.plan(domain, Request(10, Budget.of(1, "0.000001"), algorithm="summit"))
    assert plan.parameters["few_records"]
    assert_same_work(*works_of(plan, monkeypatch))


APPROXIMATE = Budget.of(1, "0.000001")


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "refused"])
def test_public_rows_are_the_same_work_on_any_records(taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are taken follows from released values, and work follows from that decision alone."""
    monkeypatch.setattr(public_rows, "PUBLIC_EXPLAINS", -np.inf if taken else np.inf)
    monkeypatch.setattr(public_rows, "_explained", lambda rows, middles: 1.0)
    domain = Dense.box(0, 1, dimension=MOST_AXES + 1, size=COUNT)
    offered = np.repeat([[0.2], [0.8]], 20, axis=0) + np.linspace(0, 0.1, domain.dimension)
    plan = registry.plan(domain, Request(2, APPROXIMATE, public_rows=read_public_rows(domain, offered)))
    works = list(works_of(plan, monkeypatch))
    assert any("SecondMoments.of" in function for function, _ in works[0]) == (not taken)
    assert_same_work(*works)


@pytest.mark.parametrize("kind", ["dense", "table"])
@pytest.mark.parametrize("name", questions.names())
def test_a_question_is_the_same_work_on_any_records(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = kinds.plan(domain_for(kind), question(name, domain_for(kind)))
    assert_same_work(*works_of(plan, monkeypatch))


def question(name: str, domain: Stored) -> Question:
    inside = Geometry.of(domain) if isinstance(domain, Table) else domain
    centres = np.repeat([[0.25], [0.75]], inside.dimension, axis=1)
    partitions = (Partition.of(domain, centres),) * questions.get(name).clusterings
    columns = tuple(domain.columns[:1]) if name == "table" else None
    return Question(name, APPROXIMATE, columns, partitions, {"picks": 1} if name == "explain" else {})


@pytest.mark.parametrize("kind", ["dense", "table"])
def test_k_left_open_is_the_same_work_on_any_records(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = registry.plan(domain_for(kind), Request(KRange(1, 4), APPROXIMATE))
    assert_same_work(*works_of(plan, monkeypatch))


def test_measured_ranges_are_the_same_work_on_any_records(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = registry.plan(domain_for("table"), Request(3, APPROXIMATE, algorithm="sulq", scaling="private"))
    assert_same_work(*works_of(plan, monkeypatch))


@pytest.mark.parametrize(
    ("kind", "bounds"), [("dense", {"a": (0.2, 0.6), "c": (11, 29)}), ("table", {"age": (20, 60)})]
)
@pytest.mark.parametrize("name", ["summit", "sulq", "profile", "quantiles"])
def test_working_bounds_are_the_same_work_on_any_records(
    name: str, kind: str, bounds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are looked up and rows clipped, whether or not they lie inside."""
    stored = domain_for(kind)
    narrow = narrowed(stored, bounds)
    asked = question(name, narrow) if name in questions.names() else Request(3, APPROXIMATE, algorithm=name)
    works = list(works_of(kinds.plan(narrow, asked), monkeypatch, stored))
    assert any("narrowing:recoded" in function for function, _ in works[0])
    assert_same_work(*works)


def works_of(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, stored: Stored | None = None
) -> Iterator[list[Event]]:
    """The work of one run on each source, with the same bits and with what the first one released.

    What is computed on released values is not watched: a quick solver stands in for it. Records `stored` in
    wider bounds than those of the plan are read in the plan's.
    """
    before: Probe | None = None
    for wide in sources(stored or plan.stored):
        source = wide if stored is None else NarrowedSource(wide, cast(Any, plan.stored))
        with light():
            if before is None:
                before = Probe(plan, source)
                kinds.get(plan).run(plan, before)
            clear_cache()
            inject_bytes(monkeypatch, 3)
            with recorded_work(FOLLOWS_RECORDS) as work:
                kinds.get(plan).run(plan, ForcedProbe(plan, source, before, monkeypatch))
        yield work
