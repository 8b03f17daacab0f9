"""The whole law of coverage loops on 150 random set systems, enumerated: it is what `loop.md` proves."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from core.coverage.families import Family, Mask, Positions
from core.coverage.loop import CoverageLoop, LoopRound
from core.data import ArraySource, Chunk, Ids
from core.mechanisms.coverage_choice import CoverageChoice

RECORDS = 4
ROUNDS = 3
SYSTEMS = 150
SHAPES = ((3,), (1, 2), (2, 1), (1, 1, 1))
UNIVERSE = frozenset(range(RECORDS))
DOMAIN = Ids(count=RECORDS, size=10)

Picks = tuple[int, ...]
Law = dict[Picks, float]
Records = frozenset[int]


@dataclass(frozen=True)
class System:
    """sets[level][index]: which of the records a set holds; rounds[level]: how often one is picked."""

    sets: tuple[tuple[Records, ...], ...]
    rounds: tuple[int, ...]

    @property
    def schedule(self) -> tuple[int, ...]:
        return tuple(level for level, rounds in enumerate(self.rounds) for _ in range(rounds))


@cache
def systems() -> tuple[System, ...]:
    draw = np.random.default_rng(20210521)
    found = []
    for number in range(SYSTEMS):
        rounds = SHAPES[number % len(SHAPES)]
        # Some systems are sparse and some dense; equal sets are common in either.
        density = draw.uniform(0.1, 0.9)
        found.append(
            System(
                tuple(
                    tuple(
                        frozenset(np.flatnonzero(draw.uniform(size=RECORDS) < density).tolist())
                        for _ in range(draw.integers(2, 5))
                    )
                    for _ in rounds
                ),
                rounds,
            )
        )
    return tuple(found)


# --- the built loop ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table(Family):
    """A family of explicit sets of record numbers."""

    system: System
    domain: str = DOMAIN.fingerprint

    @property
    def sets(self) -> tuple[tuple[Records, ...], ...]:
        return self.system.sets

    @property
    def levels(self) -> int:
        return len(self.sets)

    @cached_property
    def members(self) -> list[np.ndarray]:
        return [np.array([[r in s for r in range(RECORDS)] for s in level]) for level in self.sets]

    def size(self, level: int) -> int:
        return len(self.sets[level])

    def positions(self, chunk: Chunk, among: npt.NDArray[np.int64]) -> Positions:
        return np.asarray(chunk.rows)[among]

    def holds(self, positions: Positions, level: int, index: int) -> Mask:
        inside: Mask = self.members[level][index][positions]
        return inside

    def parts(self, positions: Positions, level: int, counted: Mask | None = None) -> npt.NDArray[np.int64]:
        some = positions if counted is None else positions[counted]
        counts: npt.NDArray[np.int64] = self.members[level][:, some].sum(axis=1)
        return counts


class Tossed:
    """Coins that fell one known way."""

    def __init__(self, kept: Records) -> None:
        self.faces = np.array([record in kept for record in range(RECORDS)])
        self.name = repr(sorted(kept))

    def kept(self, first: int, count: int) -> npt.NDArray[np.bool_]:
        return self.faces[first : first + count]


CHUNKS = [loader() for loader in ArraySource(DOMAIN, np.arange(RECORDS), chunk_rows=3).loaders()]


def built_law(system: System, kept: Records, eta: float) -> Law:
    """Every sequence of picks of the built loop with its probability, when the coins keep these records."""
    cover = CoverageLoop(Table(system), system.rounds)

    def follow(
        picks: Picks, before: npt.NDArray[np.int64] | None, probability: float
    ) -> Iterator[tuple[Picks, float]]:
        if len(picks) == len(cover.schedule):
            yield picks, probability
            return
        step = LoopRound(cover, Tossed(kept), picks)  # type: ignore[arg-type]  # coins of a test
        change = np.sum([np.asarray(step.of(chunk)) for chunk in CHUNKS], axis=0)
        counts = change if before is None or step.opens_level else before - change
        weights = np.exp(eta * (counts - counts.max()))
        for index, weight in enumerate(weights / weights.sum()):
            yield from follow((*picks, index), counts, probability * float(weight))

    return dict(follow((), None, 1.0))


# --- plain loops, right and wrong -------------------------------------------------------------------------


def plain_law(
    system: System,
    kept: Records,
    eta: float,
    *,
    resets: bool = False,
    merges_equal_sets: bool = False,
    stops_early: bool = False,
) -> Law:
    """The same law in a few lines of sets; each flag is a mistake somebody made or might make."""
    law: Law = {}

    def follow(picks: Picks, left: Records, probability: float) -> None:
        if len(picks) == ROUNDS or (stops_early and not left):
            law[picks] = law.get(picks, 0.0) + probability
            return
        level = system.schedule[len(picks)]
        if resets and picks and system.schedule[len(picks) - 1] != level:
            left = kept
        offered: dict[Records, int] | None = None
        sets = [s & left for s in system.sets[level]]
        if merges_equal_sets:
            offered = {}
            for index, records in enumerate(sets):
                offered.setdefault(records, index)
        indices = list(range(len(sets))) if offered is None else list(offered.values())
        weights = [math.exp(eta * len(sets[i])) for i in indices]
        for i, weight in zip(indices, weights, strict=True):
            follow((*picks, i), left - sets[i], probability * weight / sum(weights))

    follow((), kept, 1.0)
    return law


def fresh_law(system: System, dataset: Records, mechanism: CoverageChoice) -> Law:
    """Coins tossed anew in every round."""
    law: Law = {}
    q = mechanism.keep / 2**64

    def follow(picks: Picks, left: Records, probability: float) -> None:
        if len(picks) == ROUNDS:
            law[picks] = probability
            return
        sets = system.sets[system.schedule[len(picks)]]
        chance = [0.0] * len(sets)
        for sample in subsets(left):
            weights = [math.exp(mechanism.eta * len(s & sample)) for s in sets]
            share = q ** len(sample) * (1 - q) ** (len(left) - len(sample))
            chance = [c + share * w / sum(weights) for c, w in zip(chance, weights, strict=True)]
        for i, c in enumerate(chance):
            follow((*picks, i), left - sets[i], probability * c)

    follow((), dataset, 1.0)
    return law


def subsets(records: Records) -> Iterator[Records]:
    for count in range(len(records) + 1):
        yield from map(frozenset, combinations(sorted(records), count))


def sampled(law_of: Callable[[Records], Law], dataset: Records, mechanism: CoverageChoice) -> Law:
    """The law when every record is kept by a coin of its own: a mixture over what the coins keep."""
    q = mechanism.keep / 2**64
    law: Law = {}
    for sample in subsets(dataset):
        share = q ** len(sample) * (1 - q) ** (len(dataset) - len(sample))
        for picks, probability in law_of(sample).items():
            law[picks] = law.get(picks, 0.0) + share * probability
    return law


def excess(first: Law, second: Law, epsilon: float) -> float:
    """The least delta for which `first` is within (epsilon, delta) of `second`."""
    return math.fsum(max(0.0, p - math.exp(epsilon) * second.get(picks, 0.0)) for picks, p in first.items())


def worst_delta(law_of: Callable[[Records], Law], epsilon: float) -> float:
    """The least delta that holds for every dataset of these records and every neighbour, both ways."""
    laws = {dataset: law_of(dataset) for dataset in subsets(UNIVERSE)}
    worst = 0.0
    for dataset, law in laws.items():
        for record in dataset:
            smaller = laws[dataset - {record}]
            worst = max(worst, excess(law, smaller, epsilon), excess(smaller, law, epsilon))
    return worst


def pure_excess(make: Callable[[System, Records], Law], mechanism: CoverageChoice) -> Iterator[float]:
    """For each system the least delta at the declared epsilon, coins included; zero for what is pure."""
    return (
        worst_delta(lambda d, s=s: sampled(cache(lambda k: make(s, k)), d, mechanism), mechanism.epsilon)  # type: ignore[misc]  # a lambda's default
        for s in systems()
    )


ROUNDING = 1e-13
PURE = [CoverageChoice(epsilon) for epsilon in (0.3, 1.0, 2.5)]
APPROXIMATE = [
    CoverageChoice(epsilon, delta, "approximate")
    for epsilon, delta in ((0.5, 0.2), (1.0, 0.1), (1.0, 0.01), (2.0, 0.001))
]


def test_the_built_loop_has_the_law_of_a_plain_one() -> None:
    eta = 1.3
    for system in systems():
        for kept in subsets(UNIVERSE):
            built, plain = built_law(system, kept, eta), plain_law(system, kept, eta)
            assert built.keys() == plain.keys()
            assert max(abs(built[picks] - plain[picks]) for picks in built) < 1e-12


@pytest.mark.parametrize("mechanism", PURE, ids=str)
def test_pure_coverage_costs_no_more_than_its_epsilon(mechanism: CoverageChoice) -> None:
    found = pure_excess(lambda s, kept: plain_law(s, kept, mechanism.eta), mechanism)
    assert max(found) < ROUNDING


@pytest.mark.parametrize("mechanism", APPROXIMATE, ids=str)
def test_approximate_coverage_costs_no_more_than_its_epsilon_and_delta(mechanism: CoverageChoice) -> None:
    worst = max(worst_delta(partial(plain_law, s, eta=mechanism.eta), mechanism.epsilon) for s in systems())
    assert worst <= mechanism.delta


MISTAKES = ("resets", "merges_equal_sets", "stops_early")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_loop_with_a_mistake_fails_what_the_right_one_passes(mistake: str) -> None:
    mechanism = CoverageChoice(1.0)
    found = pure_excess(lambda s, kept: plain_law(s, kept, mechanism.eta, **{mistake: True}), mechanism)
    assert any(delta > 0.01 for delta in found)


def test_fresh_coins_in_every_round_fail_what_one_toss_passes() -> None:
    mechanism = CoverageChoice(1.0)
    found = (worst_delta(lambda d, s=s: fresh_law(s, d, mechanism), 1.0) for s in systems())  # type: ignore[misc]  # a lambda's default
    assert any(delta > 0.01 for delta in found)


@pytest.mark.parametrize("mistake", ["merges_equal_sets", "stops_early"])
def test_a_support_that_depends_on_records_fails_the_approximate_test_too(mistake: str) -> None:
    mechanism = CoverageChoice(1.0, 0.01, "approximate")
    worst = max(
        worst_delta(lambda d, s=s: plain_law(s, d, mechanism.eta, **{mistake: True}), mechanism.epsilon)  # type: ignore[misc]  # a lambda's default
        for s in systems()
    )
    assert worst > mechanism.delta
