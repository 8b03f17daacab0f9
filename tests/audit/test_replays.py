"""Runs recorded on a dataset and replayed on a neighbour: the same control flow, no more loss than charged.

Each broken twin below is a mistake of a kind that was made in public code bases, and the replay notices it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assurance.audit import twins
from assurance.audit.audits import light
from assurance.audit.losses import Unfaithful
from assurance.audit.neighbours import KINDS_OF_JOBS, replayed
from assurance.audit.probes import Neighbours
from assurance.audit.replays import replay
from assurance.audit.twins import broken_plan, fresh_coins, growing, half_the_noise, skipping_empty
from core import probe
from core.algorithms import registry
from core.algorithms.papers.sulq import Sulq
from core.algorithms.summit import Summit
from core.blocks.base import Clusters
from core.blocks.scaling import ColumnRanges
from core.columns.axes import Levels, Line
from core.coverage.loop import LoopRound
from core.data import ArraySource, Category, Dense, NarrowedSource, Number, Table, TableSource, narrowed
from core.kernels.fourier import AMPLITUDE
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.probe import Probe
from core.statistics.counts import ClusterCounts, ColumnHistograms
from core.statistics.fourier import FourierSums
from core.statistics.scores import SwapLosses
from core.statistics.sums import AbsoluteSums, ResidualSums, SecondMoments
from core.views import clear_cache

#: Pairs of every kind of job in `make test`; `make audit` replays thousands.
SAMPLE = 2


@pytest.mark.parametrize("kind", range(len(KINDS_OF_JOBS)), ids=lambda kind: " ".join(KINDS_OF_JOBS[kind]))
def test_a_run_is_the_same_on_a_neighbour_but_for_what_it_declares(kind: int) -> None:
    # Answers for every k take seconds on hundreds of columns, which other jobs here have.
    width = 12 if "open k" in KINDS_OF_JOBS[kind][2] else None
    for turn in range(SAMPLE):
        replayed(kind + turn * len(KINDS_OF_JOBS), width)


@pytest.mark.parametrize("name", ["summit", "sulq", "balcan", "chaturvedi"])
def test_rows_of_three_hundred_columns_are_replayed(name: str) -> None:
    kinds = [place for place, kind in enumerate(KINDS_OF_JOBS) if kind[0] == name]
    found = replayed(kinds[-1], width=300)
    assert found is not None
    assert found[0].plan.domain.dimension == 300


# --- broken twins -------------------------------------------------------------------------------------------

DOMAIN = Dense.box(0, 1, dimension=2, size=100)
ROWS = np.tile([[0.2, 0.2], [0.8, 0.3], [0.7, 0.9]], (5, 1))
OUTLIER = np.array([[1.0, 1.0]])


def neighbours(extra: Any = OUTLIER, domain: Dense = DOMAIN) -> Neighbours:
    return Neighbours(ArraySource(domain, ROWS), ArraySource(domain, np.concatenate([ROWS, extra])))


def plan_of(algorithm: str = "sulq", objective: str = "means", pure: bool = False, **options: Any) -> Plan:
    budget = Budget.of(2) if pure else Budget.of(2, "0.00001")
    return registry.plan(DOMAIN, Request(2, budget, objective, algorithm, options))


def caught(
    words: str,
    plan: Plan | None = None,
    extra: Any = OUTLIER,
    charged: Plan | None = None,
    pair: Neighbours | None = None,
) -> None:
    """A replay in either direction refuses the run, in these words."""
    plan = plan or plan_of(rounds=2)
    for larger in (False, True):
        with pytest.raises(Unfaithful, match=words):
            replay(plan, pair or neighbours(extra), larger, seed=5, charged=charged)


def peek(probe: Probe) -> np.ndarray:
    """Rows that an algorithm has no business with."""
    return np.concatenate([np.asarray(loader().rows) for loader in probe._source.loaders()])


def test_the_honest_algorithm_passes_what_its_twins_fail() -> None:
    assert replay(plan_of(rounds=2), neighbours(), larger=True, seed=5).differing > 0


@pytest.fixture
def sulq_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Puts another `cluster` in place of the shipped one, which it may call."""
    shipped = Sulq.cluster

    def put(twin: Callable[..., Clusters]) -> None:
        monkeypatch.setattr(Sulq, "cluster", lambda self, plan, probe: twin(self, plan, probe, shipped))

    return put


def test_centres_that_start_at_rows_are_noticed(sulq_as: Any) -> None:
    def twin(self: Sulq, plan: Plan, probe: Probe, shipped: Any) -> Any:
        return self.blocks(plan)[0].run(probe, peek(probe)[-2:].astype(np.float64))

    sulq_as(twin)
    caught("and on the neighbour another")


def test_records_that_working_bounds_do_not_clip_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Dense.box(-3, 4, dimension=2, size=100)
    narrow: Any = narrowed(wide, dict.fromkeys(wide.columns, (0, 1)))
    records = ROWS, np.concatenate([ROWS, 4 * OUTLIER])
    pair = Neighbours(*(NarrowedSource(ArraySource(wide, rows), narrow) for rows in records))
    plan = registry.plan(narrow, Request(2, Budget.of(2, "0.00001"), algorithm="summit"))
    assert replay(plan, pair, larger=True, seed=5).differing > 0

    def twin(rows: Any, stored: Dense, domain: Dense) -> Any:
        found = (stored.decode(rows) - domain.decode(np.zeros((1, 2)))) / domain.unit_lengths()
        return np.trunc(found).astype(np.int32)

    monkeypatch.setattr("core.data.narrowing.recoded", twin)
    clear_cache()
    with np.errstate(invalid="ignore"):  # squared distances of such records do not fit their type
        caught("'centre' moved by .* beyond what it declares", plan, pair=pair)


def test_a_number_of_rounds_that_follows_the_number_of_records_is_noticed(sulq_as: Any) -> None:
    def twin(self: Sulq, plan: Plan, probe: Probe, shipped: Any) -> Any:
        rounds = 1 + len(peek(probe)) % 2
        fewer = replace(plan, parameters={**plan.parameters, "rounds": rounds}, steps=())
        return shipped(self, fewer, probe)

    sulq_as(twin)
    caught("less often|once more")


def test_bounds_that_are_read_off_the_rows_are_noticed(sulq_as: Any) -> None:
    def twin(self: Sulq, plan: Plan, probe: Probe, shipped: Any) -> Any:
        radius = int(np.abs(peek(probe)).max())
        return shipped(self, replace(plan, parameters={**plan.parameters, "radius": radius}, steps=()), probe)

    sulq_as(twin)
    caught("and on the neighbour another")


def test_an_exact_number_beside_the_centres_is_noticed(sulq_as: Any) -> None:
    def twin(self: Sulq, plan: Plan, probe: Probe, shipped: Any) -> Any:
        return replace(shipped(self, plan, probe), details={"records": len(peek(probe))})

    sulq_as(twin)
    caught("more than what was released")


def test_labels_of_rows_beside_the_centres_are_noticed(sulq_as: Any) -> None:
    def twin(self: Sulq, plan: Plan, probe: Probe, shipped: Any) -> Any:
        found = shipped(self, plan, probe)
        away = np.linalg.norm(peek(probe)[:, None] - found.centres[None], axis=2)
        return replace(found, details={"labels": away.argmin(axis=1).tolist()})

    sulq_as(twin)
    caught("more than what was released")


def test_half_the_declared_sensitivity_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ResidualSums.sensitivity

    def half(self: ResidualSums) -> Any:
        own = honest.fget(self)  # type: ignore[attr-defined]
        return replace(own, scales=own.scales / 2)

    monkeypatch.setattr(ResidualSums, "sensitivity", property(half))
    caught("beyond what it declares")


def test_residuals_that_are_not_clipped_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ResidualSums.of

    def unclipped(self: ResidualSums, chunk: Any) -> Any:
        return honest(ResidualSums(self.view, np.full_like(self.radii, 2 * 32767)), chunk)

    monkeypatch.setattr(ResidualSums, "of", unclipped)
    caught("beyond what it declares", plan_of(rounds=2, clip=0.1))


def test_second_moments_that_are_not_clipped_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SecondMoments.of

    def unclipped(self: SecondMoments, chunk: Any) -> Any:
        return honest(replace(self, radius=2 * 32767), chunk)

    monkeypatch.setattr(SecondMoments, "of", unclipped)
    caught("beyond what it declares", plan_of("summit"))


def test_absolute_residuals_that_are_not_clipped_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = AbsoluteSums.of

    def unclipped(self: AbsoluteSums, chunk: Any) -> Any:
        return honest(replace(self, radius=2 * 32767), chunk)

    domain = Dense.box(0, 1, dimension=130, size=100)
    rows, outlier = np.tile(ROWS, (1, 65)), np.tile(OUTLIER, (1, 65))
    pair = Neighbours(ArraySource(domain, rows), ArraySource(domain, np.concatenate([rows, outlier])))
    plan = registry.plan(domain, Request(2, Budget.of(2, "0.00001"), algorithm="summit"))
    assert replay(plan, pair, larger=True, seed=5).differing > 0
    monkeypatch.setattr(AbsoluteSums, "of", unclipped)
    caught("beyond what it declares", plan, pair=pair)


def test_features_that_are_longer_than_declared_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plausible mistake: a scale of one frequency, though a record adds to all of them."""
    domain = Dense.box(0, 1, dimension=4, size=100)
    rows, outlier = np.tile(ROWS, (1, 2)), np.tile(OUTLIER, (1, 2))
    pair = Neighbours(ArraySource(domain, rows), ArraySource(domain, np.concatenate([rows, outlier])))
    plan = registry.plan(domain, Request(2, Budget.of(2, "0.00001"), algorithm="summit"))
    assert plan.step("sketch").statistic == FourierSums.kind
    assert replay(plan, pair, larger=True, seed=5).differing > 0
    monkeypatch.setattr(FourierSums, "length", AMPLITUDE)
    caught("beyond what it declares", plan, pair=pair)


def test_a_record_that_counts_in_two_clusters_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ClusterCounts.of
    monkeypatch.setattr(ClusterCounts, "of", lambda self, chunk: honest(self, chunk).sum() + self.zero)
    caught("beyond what it declares")


def test_losses_of_candidates_outside_the_ball_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed in a paper: the candidates lie anywhere, the scores are scaled to the ball."""
    honest = SwapLosses.of
    monkeypatch.setattr(SwapLosses, "of", lambda self, chunk: 9 * honest(self, chunk))
    caught("beyond what it declares", plan_of("balcan", pure=True, trees=1, depth=2, candidates=8, swaps=2))


def test_noise_of_half_the_declared_size_is_noticed() -> None:
    plan = plan_of(rounds=2)
    caught("loses", broken_plan(plan, "sums", half_the_noise), charged=plan)


def test_noise_that_skips_empty_clusters_is_noticed() -> None:
    plan = plan_of(rounds=2)
    broken = broken_plan(plan, "counts", skipping_empty)
    alone = Neighbours(ArraySource(DOMAIN, ROWS[:0]), ArraySource(DOMAIN, OUTLIER))
    for larger in (False, True):
        with pytest.raises(Unfaithful, match="the noise of 'counts'"):
            replay(broken, alone, larger, seed=5, charged=plan)


def test_noise_that_grows_with_the_number_of_records_is_noticed() -> None:
    plan = plan_of(rounds=2)
    caught("the noise of 'counts'", broken_plan(plan, "counts", growing), charged=plan)


def test_two_rows_of_a_person_under_a_plan_for_one_are_noticed() -> None:
    caught("beyond what it declares", extra=np.repeat(OUTLIER, 2, axis=0))


TABLE = Table(
    declared=(Number(name="age", low=0, high=99, whole=True), Category(name="ward", levels=("a", "b", "c"))),
    size=100,
)


def tables(person: tuple[int, int]) -> Neighbours:
    """Codes of fifteen records in two heaps, and those of one person more."""
    both = np.tile([[20, 0], [30, 1], [20, 0]], (5, 1))
    with_it = np.concatenate([both, [person]])
    return Neighbours(TableSource.of_codes(TABLE, both), TableSource.of_codes(TABLE, with_it))


def table_plan(algorithm: str = "summit", scaling: str = "declared") -> Plan:
    return registry.plan(
        TABLE, Request(2, Budget.of(2, "0.00001"), algorithm=algorithm, scaling=scaling, options={})
    )


def test_levels_that_lie_further_apart_than_declared_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Levels.coordinates
    monkeypatch.setattr(Levels, "coordinates", lambda self, codes: (2 * honest(self, codes)).astype(np.int16))
    caught("beyond what it declares", table_plan(), pair=tables((99, 2)))


def test_stored_codes_beyond_their_column_are_noticed_where_nobody_clips_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = Line.coordinates

    def unclipped(self: Line, codes: Any) -> Any:
        wide = replace(self, first=0, last=65_535, half=32_000)
        return honest(wide, codes)

    monkeypatch.setattr(Line, "coordinates", unclipped)
    caught("beyond what it declares", table_plan(), pair=tables((65_535, 0)))


def test_ranges_that_are_read_off_the_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ColumnRanges.run

    def read_off(self: ColumnRanges, probe: Probe) -> Any:
        honest(self, probe)
        ages = peek(probe)[:, 0]
        return self.geometry.clipped({"age": (int(ages.min()), int(ages.max()))})

    monkeypatch.setattr(ColumnRanges, "run", read_off)
    caught("and on the neighbour another", table_plan("sulq", "private"), pair=tables((99, 2)))


def test_histograms_of_columns_at_half_their_sensitivity_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ColumnHistograms.sensitivity

    def half(self: ColumnHistograms) -> Any:
        own = honest.fget(self)  # type: ignore[attr-defined]
        return replace(own, scales=own.scales / 2)

    monkeypatch.setattr(ColumnHistograms, "sensitivity", property(half))
    caught("beyond what it declares", table_plan("sulq", "private"), pair=tables((99, 2)))


def test_an_exact_size_of_a_fine_cluster_is_noticed_where_k_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Summit.cluster

    def exact(self: Summit, plan: Plan, probe: Probe) -> Any:
        found = honest(self, plan, probe)
        assert found.cells is not None
        sizes = np.full_like(found.cells.sizes, float(len(peek(probe))))
        return replace(found, cells=replace(found.cells, sizes=sizes))

    monkeypatch.setattr(Summit, "cluster", exact)
    plan = registry.plan(DOMAIN, Request(KRange(1, 2), Budget.of(2, "0.00001"), algorithm="summit"))
    with light():
        caught("more than what was released", plan)


SITES = {"kind": "coordinates", "points": [[0.0, 0.0], [0.25, 0.25], [0.75, 0.75], [1.0, 1.0]]}


def test_coins_that_are_tossed_again_in_every_round_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probe, "_cover", fresh_coins)
    monkeypatch.setattr(twins, "Coins", lambda *given: vars(probe)["Coins"](*given))
    caught("tosses its coins once", plan_of("jones", "medians", pure=True, rounds=2, sites=SITES))


def test_covered_records_that_come_back_at_the_next_radius_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = LoopRound._state

    def reset(self: LoopRound, chunk: Any) -> Any:
        state = honest(self, chunk)
        return replace(state, in_play=np.ones_like(state.in_play)) if self.opens_level else state

    monkeypatch.setattr(LoopRound, "_state", reset)
    plan = plan_of("jones", "medians", rounds=1, sites=SITES, accounting="approximate")
    caught("other records than those that are still in play", plan)
