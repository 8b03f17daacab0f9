"""Coverage through the probe: one step, fixed rounds, covered records out for good, coins that stay."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from core.coverage.coins import Coins
from core.coverage.families import Family
from core.coverage.loop import CoverageLoop, LoopRound
from core.data import ArraySource, Chunk
from core.errors import PlanViolation
from core.mechanisms.choice import Choice
from core.mechanisms.coverage_choice import CoverageChoice
from core.plan import Step
from core.probe import Probe
from core.statistics.counts import Count
from tests.support.bits import inject_bytes
from tests.support.coverage import (
    DOMAIN,
    balls,
    grid,
    ids_source,
    matrix,
    on_the_map,
    plan_for,
    source,
)

FAMILIES = {
    "balls": (balls(), source),
    "grid": (grid(), source),
    "matrix": (matrix(), ids_source),
    "plane": (on_the_map("euclidean"), source),
    "sphere": (on_the_map("great-circle"), source),
}

EACH = pytest.mark.parametrize(("family", "rows_of"), FAMILIES.values(), ids=FAMILIES)


def test_all_rounds_of_a_coverage_step_cost_once() -> None:
    assert plan_for(DOMAIN, 500).composition.pure == 1


def test_a_coverage_step_is_opened_once() -> None:
    probe = Probe(plan_for(DOMAIN, 6), source())
    probe.measure("cover", CoverageLoop(balls(), (2, 2, 2)))
    with pytest.raises(PlanViolation, match="used up"):
        probe.measure("cover", CoverageLoop(balls(), (2, 2, 2)))


@pytest.mark.parametrize("rounds", [(1, 2, 2), (3, 2, 2)])
def test_a_cover_of_other_than_the_planned_rounds_is_refused(rounds: tuple[int, ...]) -> None:
    probe = Probe(plan_for(DOMAIN, 6), source())
    with pytest.raises(PlanViolation, match="6 rounds"):
        probe.measure("cover", CoverageLoop(balls(), rounds))
    assert probe.transcript == []


def test_coverage_goes_with_its_own_mechanism_only() -> None:
    with pytest.raises(PlanViolation, match="its own mechanism"):
        Step("cover", Choice(1.0), CoverageLoop.kind)
    with pytest.raises(PlanViolation, match="its own mechanism"):
        Step("count", CoverageChoice(1.0), Count.kind)


def test_every_round_is_in_the_transcript_and_told_to_the_listener() -> None:
    told: list[tuple[str, int, int]] = []
    probe = Probe(plan_for(DOMAIN, 6), source(), listener=lambda *news: told.append(news))
    picks = probe.measure("cover", CoverageLoop(balls(), (1, 2, 3)))
    assert [int(release.values[0]) for release in probe.transcript] == picks.tolist()
    assert told == [("cover", done, 6) for done in range(1, 7)]


def test_rounds_go_on_when_nothing_is_left_to_cover() -> None:
    probe = Probe(plan_for(DOMAIN, 30), ArraySource(DOMAIN, np.zeros((0, 2))))
    assert len(probe.measure("cover", CoverageLoop(balls(), (10, 10, 10)))) == 30


@EACH
def test_picks_are_the_same_under_any_chunking_and_executor(
    family: Family, rows_of: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    picks = []
    with ThreadPoolExecutor(2) as threads:
        for chunk_rows, executor in ((None, None), (7, None), (64, threads)):
            inject_bytes(monkeypatch, 11)
            data = rows_of(chunk_rows)
            probe = Probe(plan_for(data.domain, 12), data, executor)
            picks.append(probe.measure("cover", CoverageLoop(family, (4, 4, 4))).tolist())
    assert picks[0] == picks[1] == picks[2]


def counted(family: Family, chunk: Chunk, level: int, alive: list[int]) -> dict[int, int]:
    """How many of these records each set holds, one set and one record at a time."""
    found = {}
    for index in range(family.size(level)):
        held = family.holds(family.positions(chunk, np.array(alive, dtype=np.int64)), level, index)
        if held.any():
            found[index] = int(held.sum())
    return found


@EACH
def test_set_counts_hold_exactly_the_records_no_pick_has_covered(family: Family, rows_of: type) -> None:
    chunk = rows_of().loaders()[0]()
    cover = CoverageLoop(family, (2, 3, 2))
    coins = Coins(bytes(range(32)), 3 << 62)
    alive = np.flatnonzero(coins.kept(0, len(chunk))).tolist()
    picks: tuple[int, ...] = ()
    draw = np.random.default_rng(6)
    for level in cover.schedule:
        step = LoopRound(cover, coins, picks)
        if step.opens_level:
            counts_of_sets = family.set_counts(level)
        for part in (loader() for loader in rows_of(33).loaders()):
            counts_of_sets.change(step.of(part), 1 if step.opens_level else -1)
        truth = counted(family, chunk, level, alive)
        assert {int(i): int(c) for i, c in zip(*counts_of_sets.listed(), strict=True) if c} == truth
        pick = int(draw.choice(sorted(truth))) if truth else 0
        gone = family.holds(family.positions(chunk, np.array(alive, dtype=np.int64)), level, pick)
        alive = [record for record, out in zip(alive, gone, strict=True) if not out]
        picks = (*picks, pick)


def test_a_repeated_task_gives_the_same_answer_with_and_without_its_cached_state() -> None:
    cover, coins = CoverageLoop(balls(), (3, 3, 3)), Coins(b"k" * 32, 1 << 63)
    chunk = source().loaders()[0]()
    step = LoopRound(cover, coins, (4, 9, 2, 7))
    first, second = step.of(chunk), step.of(chunk)
    LoopRound(cover, coins, (4, 1)).of(chunk)  # leaves another state behind
    elsewhere = pickle.loads(pickle.dumps(step)).of(source().loaders()[0]())
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    assert np.array_equal(first, second)
    assert np.array_equal(first, elsewhere)


def test_a_cover_needs_rounds_for_every_level() -> None:
    for rounds in ((1, 1), (1, 0, 1), ()):
        with pytest.raises(ValueError, match="at least one round"):
            CoverageLoop(balls(), rounds)
