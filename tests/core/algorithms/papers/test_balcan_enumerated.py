"""Every output of small instances, enumerated: no log-ratio exceeds the declared epsilon, some reach it."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import chi2

from core.data import UNITS, Chunk, Dense
from core.mechanisms import sampler
from core.mechanisms.choice import Choice, TopChoice
from core.mechanisms.threshold import Threshold
from core.privacy.sensitivity import Sensitivity
from core.statistics.counts import CubeCounts
from core.statistics.scores import NetLosses, SetLosses, SwapLosses
from core.views import Assigned, CandidateDistances, Cubes, Encoded
from tests.support.bits import inject_bytes

LINE = Dense.ball(1.0, dimension=1, size=100)
ROWS = Encoded.of(LINE)


def chunk_of(values: list[int]) -> Chunk:
    rows = np.array(values, dtype=np.int16).reshape(-1, 1)
    return Chunk(rows, 0, ("line", *values))


# --- a partition tree of dimension one and depth three ----------------------------------------------------


def tree_law(
    part: Chunk, mechanism: Threshold, cubes: Cubes, depth: int
) -> Iterator[tuple[tuple[tuple[int, ...], ...], float]]:
    """Every possible release of the levels from here on, with its log-probability."""
    total = CubeCounts(cubes).of(part)
    counts = np.zeros(total.family, dtype=np.int64)
    counts[total.cells] = total.counts
    for picked in itertools.product([0, 1], repeat=total.family):
        chance = sum(log_active(mechanism, int(c), bool(on)) for c, on in zip(counts, picked, strict=True))
        active = tuple(int(i) for i in np.flatnonzero(picked))
        if depth == 1 or not active:
            yield (active,), chance
            continue
        below = Cubes(cubes.base, cubes.shift, cubes, np.array(active))
        for rest, further in tree_law(part, mechanism, below, depth - 1):
            yield (active, *rest), chance + further


def log_active(mechanism: Threshold, count: int, active: bool) -> float:
    """log P[count + rounded noise > limit], or of its complement; tested against draws in test_threshold."""
    beyond = (mechanism.limit - count + 0.5) * mechanism.amount
    tail = math.exp(-abs(beyond)) / 2
    likely = tail if beyond > 0 else 1 - tail
    return math.log(likely if active else 1 - likely)


def test_a_partition_tree_spends_what_it_declares_and_needs_it() -> None:
    mechanism, depth = Threshold("laplace", 0.3, 4), 3
    root = Cubes(ROWS, np.array([1234]))
    smaller = [-30000, -29000, 5, 6, 7, 8, 9, 20000]
    declared = depth * mechanism.amount
    largest = 0.0
    for record in (-30000, 6, 20001, 32767):
        one = dict(tree_law(chunk_of(smaller), mechanism, root, depth))
        other = dict(tree_law(chunk_of([*smaller, record]), mechanism, root, depth))
        assert len(one) == 676
        assert math.fsum(map(math.exp, one.values())) == pytest.approx(1)
        largest = max(largest, max(abs(one[release] - other[release]) for release in one))
    assert largest <= declared + 1e-9
    assert largest > 0.9 * declared


# --- local swaps over four candidates ---------------------------------------------------------------------


def log_choice(scores: np.ndarray, eta: float) -> np.ndarray:
    weights = eta * (scores - scores.max()).reshape(-1).astype(np.float64)
    logs: np.ndarray = weights - math.log(np.exp(weights).sum())
    return logs


def swap_law(
    part: Chunk, source: CandidateDistances, start: list[int], swaps: int, epsilon: float
) -> dict[tuple[int, ...], float]:
    """Every sequence of choices, swaps and then the pick among all sets, with its log-probability."""
    eta = epsilon / source.reach
    law: dict[tuple[int, ...], float] = {}
    paths: list[tuple[tuple[int, ...], list[list[int]], float]] = [((), [start], 0.0)]
    for _ in range(swaps):
        longer = []
        for choices, visited, chance in paths:
            scores = SwapLosses(source, np.array(visited[-1])).of(part)
            for choice, likely in enumerate(log_choice(scores, eta)):
                leaves, comes = divmod(choice, source.count)
                after = [*visited[-1][:leaves], comes, *visited[-1][leaves + 1 :]]
                longer.append(((*choices, choice), [*visited, after], chance + likely))
        paths = longer
    for choices, visited, chance in paths:
        for pick, likely in enumerate(log_choice(SetLosses(source, np.array(visited)).of(part), eta)):
            law[(*choices, pick)] = chance + likely
    return law


@pytest.mark.parametrize("objective", ["means", "medians"])
def test_local_swaps_spend_what_they_declare_and_need_it(objective: str) -> None:
    """The bound is met where nearly all choices serve the new record well and the release serves it badly."""
    candidates = np.array([[-UNITS], [-UNITS + 1], [-UNITS + 2], [UNITS]])
    source = CandidateDistances(ROWS, candidates, objective)
    swaps, epsilon = 2, 0.5
    declared = (swaps + 1) * epsilon
    largest = 0.0
    for crowd, record in itertools.product(([UNITS] * 40, [-UNITS] * 9, [0, 5]), (UNITS, -UNITS, 17)):
        one = swap_law(chunk_of(crowd), source, [3, 0], swaps, epsilon)
        other = swap_law(chunk_of([*crowd, record]), source, [3, 0], swaps, epsilon)
        assert len(one) == 8 * 8 * 3
        largest = max(largest, max(abs(one[release] - other[release]) for release in one))
    assert largest <= declared + 1e-9
    assert largest > 0.9 * declared


def test_the_choice_that_is_enumerated_is_the_one_that_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    source = CandidateDistances(ROWS, np.array([[-UNITS], [0], [UNITS]]), "means")
    statistic = SwapLosses(source, np.array([0, 1]))
    seen: list[float] = []

    def watch(scores: np.ndarray, eta: float) -> np.ndarray:
        seen.append(eta)
        return np.zeros(1, dtype=np.int64)

    monkeypatch.setattr("core.mechanisms.sampler.choices", watch)
    Choice(0.5).release(statistic.of(chunk_of([5, 6])), statistic.sensitivity)
    assert seen == [pytest.approx(0.5 / (4 * UNITS**2), rel=1e-12)]


def test_choices_from_nets_in_all_clusters_together_cost_one_epsilon() -> None:
    """A record pays in its own cluster only: enumerated over the pairs of choices of two clusters."""
    centres = np.array([[-20000], [20000]])
    nets = np.array([[[-UNITS], [-20000], [0]], [[0], [20000], [UNITS]]])
    statistic = NetLosses(Assigned(ROWS, centres), nets)
    epsilon = 0.7
    eta = epsilon / statistic.sensitivity.linf
    for crowd, record in itertools.product(([-25000] * 9, [30000, 100]), (-UNITS, UNITS, 1)):
        one, other = (
            [log_choice(row, eta) for row in statistic.of(chunk_of(values))]
            for values in (crowd, [*crowd, record])
        )
        ratios = [
            abs(one[0][i] + one[1][j] - other[0][i] - other[1][j])
            for i, j in itertools.product(range(3), repeat=2)
        ]
        assert max(ratios) <= epsilon + 1e-9


# --- columns of sparse means ------------------------------------------------------------------------------


def top_law(sums: list[int], eta: float, picks: int) -> dict[tuple[int, ...], float]:
    """Every ordered choice of different columns, with its log-probability."""
    law = {}
    for order in itertools.permutations(range(len(sums)), picks):
        left, chance = list(range(len(sums))), 0.0
        for column in order:
            weights = [eta * abs(sums[j]) for j in left]
            chance += eta * abs(sums[column]) - math.log(sum(map(math.exp, weights)))
            left.remove(column)
        law[order] = chance
    return law


def rate_of(mechanism: TopChoice, declared: Sensitivity, monkeypatch: pytest.MonkeyPatch) -> float:
    seen: list[float] = []

    def watch(scores: np.ndarray, eta: float, picks: int) -> np.ndarray:
        seen.append(eta)
        return np.arange(picks)

    with monkeypatch.context() as patch:
        patch.setattr("core.mechanisms.sampler.choices", watch)
        mechanism.release(np.zeros((1, 4), dtype=np.int64), declared)
    return seen[0]


def test_choosing_columns_spends_what_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record changes two of four sums by at most ten each, up or down."""
    epsilon, picks = 0.8, 2
    declared = Sensitivity(np.array([10.0]), l1=2, l2=math.sqrt(2), touched=2)
    eta = rate_of(TopChoice(epsilon, picks), declared, monkeypatch)
    largest = 0.0
    for sums in ([0, 0, 0, 0], [3, -8, 40, 0], [-200, 5, 5, 5], [60, 60, 0, 0]):
        one = top_law(sums, eta, picks)
        for (a, b), (up, down) in itertools.product(
            itertools.combinations(range(4), 2), itertools.product((-10, 10), repeat=2)
        ):
            neighbour = list(sums)
            neighbour[a] += up
            neighbour[b] += down
            other = top_law(neighbour, eta, picks)
            largest = max(largest, max(abs(one[order] - other[order]) for order in one))
    assert largest <= epsilon + 1e-9
    assert largest > 0.7 * epsilon


def test_choosing_columns_under_zcdp_keeps_its_renyi_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    rho, picks = 0.05, 2
    declared = Sensitivity(np.array([10.0]), l1=2, l2=math.sqrt(2), touched=2)
    eta = rate_of(TopChoice(rho, picks, concentrated=True), declared, monkeypatch)
    for sums, neighbour in (([0, 0, 0, 0], [10, -10, 0, 0]), ([50, 50, 3, 0], [40, 60, 3, 0])):
        one, other = top_law(sums, eta, picks), top_law(neighbour, eta, picks)
        for order in (1.5, 2.0, 8.0, 40.0):
            for p, q in ((one, other), (other, one)):
                moment = math.fsum(math.exp(order * p[c] - (order - 1) * q[c]) for c in p)
                assert math.log(moment) / (order - 1) <= order * rho


def test_columns_are_chosen_by_that_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square over all ordered pairs; false alarm 1e-7, and the same bits in every run."""
    inject_bytes(monkeypatch, 21)
    sums, eta, draws = [3, -8, 0, 5], 0.2, 4000
    law = top_law(sums, eta, 2)
    seen = dict.fromkeys(law, 0)
    for _ in range(draws):
        seen[tuple(sampler.choices(np.abs(np.array(sums)), eta, 2).tolist())] += 1
    statistic = sum((seen[c] - draws * math.exp(p)) ** 2 / (draws * math.exp(p)) for c, p in law.items())
    assert statistic < chi2.isf(1e-7, len(law) - 1)
