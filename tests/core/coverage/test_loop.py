"""Coverage through the probe: one step, fixed rounds, covered records out for good, coins that stay."""

import copy
import hashlib
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, chisquare

from core.coverage import Balls, Coins, CoverageLoop, Family, GridBalls, LoopRound, SiteBalls
from core.data import UNITS, ArraySource, Chunk, Dense, Ids, read_sites
from core.errors import PlanViolation
from core.mechanisms import Choice, CoverageChoice, mechanism_from_json, mechanism_to_json, sampler
from core.plan import Plan, Step
from core.privacy import Approximate, Budget, Pure
from core.probe import Probe
from core.statistics import Count
from core.views import Encoded, SiteDistances
from tests.support.bits import inject_bytes

DOMAIN = Dense.box([-1, -1], [1, 1], size=500)
IDS = Ids(count=9, size=500)


def rows(count: int = 400) -> npt.NDArray[np.float64]:
    return np.random.default_rng(3).uniform(-1, 1, size=(count, 2))


def source(chunk_rows: int | None = None) -> ArraySource:
    return ArraySource(DOMAIN, rows(), chunk_rows=chunk_rows)


def balls() -> Balls:
    points = np.random.default_rng(4).integers(-23000, 23000, size=(30, 2))
    return Balls(Encoded.of(DOMAIN), points, (3000, 6000, 12000))


def grid() -> GridBalls:
    return GridBalls(Encoded.of(DOMAIN), (3000, 6000, 12000), 2)


def matrix() -> SiteBalls:
    between = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    sites = SiteDistances.of(IDS, read_sites(IDS, {"kind": "distances", "matrix": between.tolist()}, 1))
    return SiteBalls(sites, (0, UNITS // 8, 3 * UNITS // 8))


def on_the_map(metric: str) -> SiteBalls:
    points = np.random.default_rng(9).uniform(-0.9, 0.9, size=(30, 2))
    given = {"kind": "coordinates", "metric": metric, "points": points.tolist()}
    sites = SiteDistances.of(DOMAIN, read_sites(DOMAIN, given, 1))
    return SiteBalls(sites, (60, 120, 400) if metric == "great-circle" else (2000, 4000, 50000))


def ids_source(chunk_rows: int | None = None) -> ArraySource:
    return ArraySource(IDS, np.random.default_rng(5).integers(0, 9, 300), chunk_rows=chunk_rows)


FAMILIES = {
    "balls": (balls(), source),
    "grid": (grid(), source),
    "matrix": (matrix(), ids_source),
    "plane": (on_the_map("euclidean"), source),
    "sphere": (on_the_map("great-circle"), source),
}
EACH = pytest.mark.parametrize(("family", "rows_of"), FAMILIES.values(), ids=FAMILIES)


def plan_for(domain: Dense | Ids, rounds: int, mechanism: CoverageChoice | None = None) -> Plan:
    step = Step("cover", mechanism or CoverageChoice(1.0), CoverageLoop.kind, rounds)
    return Plan("x", "medians", 2, domain, Budget.of(1, "0.01"), (step,))


# --- the probe --------------------------------------------------------------------------------------------


def test_all_rounds_of_a_coverage_step_cost_once() -> None:
    assert plan_for(DOMAIN, 500).composition.pure_epsilon == 1


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


def test_the_mechanism_releases_nothing_outside_the_loop() -> None:
    with pytest.raises(ValueError, match="measuring a Cover"):
        CoverageChoice(1.0).release(np.array([3]), Count(DOMAIN.fingerprint).sensitivity)


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


# --- covered records leave for good -----------------------------------------------------------------------


def counted(family: Family, chunk: Chunk, level: int, alive: list[int]) -> dict[int, int]:
    """How many of these records each set holds, one set and one record at a time."""
    found = {}
    for index in range(family.size(level)):
        held = family.holds(chunk, level, index, np.array(alive, dtype=np.int64))
        if held.any():
            found[index] = int(held.sum())
    return found


@EACH
def test_the_tally_counts_exactly_the_records_no_pick_has_covered(family: Family, rows_of: type) -> None:
    chunk = rows_of().loaders()[0]()
    cover = CoverageLoop(family, (2, 3, 2))
    coins = Coins(bytes(range(32)), 3 << 62)
    alive = np.flatnonzero(coins.kept(0, len(chunk))).tolist()
    picks: tuple[int, ...] = ()
    draw = np.random.default_rng(6)
    for level in cover.schedule:
        step = LoopRound(cover, coins, picks)
        if step.opens_level:
            tally = family.tally(level)
        for part in (loader() for loader in rows_of(33).loaders()):
            tally.change(step.of(part), 1 if step.opens_level else -1)
        truth = counted(family, chunk, level, alive)
        assert {int(i): int(c) for i, c in zip(*tally.held(), strict=True) if c} == truth
        pick = int(draw.choice(sorted(truth))) if truth else 0
        gone = family.holds(chunk, level, pick, np.array(alive, dtype=np.int64))
        alive = [record for record, out in zip(alive, gone, strict=True) if not out]
        picks = (*picks, pick)


def test_a_repeated_task_gives_the_same_answer_with_and_without_its_cached_state() -> None:
    cover, coins = CoverageLoop(balls(), (3, 3, 3)), Coins(b"k" * 32, 1 << 63)
    chunk = source().loaders()[0]()
    step = LoopRound(cover, coins, (4, 9, 2, 7))
    first, second = step.of(chunk), step.of(chunk)
    LoopRound(cover, coins, (4, 1)).of(chunk)  # leaves another state behind
    elsewhere = pickle.loads(pickle.dumps(step)).of(source().loaders()[0]())
    assert np.array_equal(first, second)
    assert np.array_equal(first, elsewhere)


# --- coins ------------------------------------------------------------------------------------------------


def test_a_record_has_the_same_coin_in_every_chunking() -> None:
    coins = Coins(b"s" * 32, 1 << 63)
    whole = coins.kept(0, 10_000)
    for first, count in ((0, 1), (4095, 2), (4096, 4096), (5000, 5000), (9999, 1)):
        assert np.array_equal(coins.kept(first, count), whole[first : first + count])
    assert coins.kept(17, 0).shape == (0,)


def test_coins_are_words_of_shake_256_and_keep_the_declared_share() -> None:
    keep = CoverageChoice(1.0).keep
    coins = Coins(b"q" * 32, keep)
    word = 4 * 4096 + 5
    block = hashlib.shake_256(b"q" * 32 + (4).to_bytes(8, "little")).digest(8 * 4096)
    assert coins.kept(word, 1)[0] == (int.from_bytes(block[40:48], "little") < keep)
    kept = int(coins.kept(0, 200_000).sum())
    # False alarm: none, the key is fixed; it would be below 1e-6 for a random one.
    low, high = binom.ppf([5e-7, 1 - 5e-7], 200_000, keep / 2**64)
    assert low <= kept <= high


def test_without_coins_every_record_takes_part() -> None:
    assert Coins(b"a" * 32, CoverageChoice(1.0, 0.01, "approximate").keep).kept(5, 9000).all()


def test_every_loop_draws_a_key_of_its_own_and_shows_it_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []
    genuine = sampler.random_bytes

    def watched(count: int) -> bytes:
        found = genuine(count)
        if count == 32:
            drawn.append(found)
        return found

    monkeypatch.setattr("core.probe.random_bytes", watched)
    for _ in range(2):
        probe = Probe(plan_for(DOMAIN, 6), source())
        probe.measure("cover", CoverageLoop(balls(), (2, 2, 2)))
        shown = pickle.dumps([probe.transcript, probe.draws, probe.plan.to_json()])
        shown += repr([vars(probe), probe.transcript, probe.plan, probe.plan.to_json()]).encode()
        assert drawn[-1] not in shown
        assert drawn[-1].hex().encode() not in shown
        assert repr(drawn[-1]).encode() not in shown
    assert len(set(drawn)) == 2


def test_what_a_chunk_task_carries_prints_without_its_key() -> None:
    key = bytes(range(65, 97))
    step = LoopRound(CoverageLoop(matrix(), (1, 1, 1)), Coins(key, 1 << 63), ())
    assert repr(key)[2:-1] not in repr([step, step.coins])
    assert key not in repr(vars(copy.copy(step))).encode()


# --- the mechanism ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 1.0, 3.0, 40.0, 900.0])
def test_the_pure_rate_and_chance_satisfy_the_proof(epsilon: float) -> None:
    mechanism = CoverageChoice(epsilon)
    with mpmath.workprec(4000):
        q = mpmath.mpf(mechanism.keep) / 2**64
        limit = mpmath.exp(mpmath.mpf(epsilon))
        assert 1 - q >= 1 / limit
        assert 1 + q * mpmath.expm1(mpmath.mpf(mechanism.eta)) <= limit
    assert mechanism.loss == Pure(epsilon)


def test_the_effective_rate_at_epsilon_one_is_far_above_the_papers() -> None:
    mechanism = CoverageChoice(1.0)
    assert mechanism.keep / 2**64 * mechanism.eta == pytest.approx(0.83, abs=0.005)
    assert CoverageChoice(1.0, 1e-6, "jones").eta == pytest.approx(0.034, abs=0.0005)
    assert CoverageChoice(1.0, 1e-6, "chaturvedi").eta == pytest.approx(0.027, abs=0.0005)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 0.1), (10.0, 0.5), (700.0, 0.2)]
)
def test_the_approximate_rate_satisfies_the_proof_and_beats_its_closed_form(
    epsilon: float, delta: float
) -> None:
    mechanism = CoverageChoice(epsilon, delta, "approximate")
    with mpmath.workprec(2000):
        eta = mpmath.mpf(mechanism.eta)
        bound = -mpmath.expm1(-eta) * mpmath.exp(-(epsilon + eta) / mpmath.expm1(eta))
        assert bound <= delta
    assert mechanism.eta <= epsilon
    assert mechanism.eta >= min(math.log1p(epsilon / math.log(1 / delta)), epsilon, 499) * (1 - 1e-8)
    assert mechanism.loss == Approximate(epsilon, delta)


@pytest.mark.parametrize("accounting", ["jones", "chaturvedi"])
def test_a_papers_constant_is_never_used_where_it_is_wrong(accounting: str) -> None:
    for epsilon in (0.5, 2.0, 20.0, 200.0):
        assert (
            CoverageChoice(epsilon, 0.01, accounting).eta <= CoverageChoice(epsilon, 0.01, "approximate").eta
        )


@pytest.mark.parametrize("mechanism", [CoverageChoice(0.7), CoverageChoice(0.7, 1e-6, "jones")], ids=str)
def test_a_coverage_step_survives_its_receipt(mechanism: CoverageChoice) -> None:
    assert mechanism_from_json(json.loads(json.dumps(mechanism_to_json(mechanism)))) == mechanism


@pytest.mark.parametrize(("delta", "accounting"), [(0.1, "pure"), (0.0, "approximate"), (0.1, "other")])
def test_an_accounting_that_does_not_fit_its_delta_is_refused(delta: float, accounting: str) -> None:
    with pytest.raises(ValueError, match="delta"):
        CoverageChoice(1.0, delta, accounting)


def pick_law(
    mechanism: CoverageChoice, counts: list[int], size: int, monkeypatch: pytest.MonkeyPatch
) -> list[mpmath.mpf]:
    """The exact law of a pick: the weights the sampler is given, spread over the branches that follow."""
    weights: list[mpmath.mpf] = []

    def note(log_weights: npt.NDArray[np.float64], exact: object) -> int:
        weights.extend(mpmath.exp(exact(i)) for i in range(len(log_weights)))  # type: ignore[operator]  # mpmath
        close = [
            abs(float(w) - math.exp(x)) <= 1e-11 * math.exp(x) + 1e-300
            for w, x in zip(weights, log_weights, strict=True)
        ]
        assert all(close)
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(sampler, "categorical", note)
        mechanism.pick(np.arange(len(counts)), np.array(counts, dtype=np.int64), size)
    groups = sorted({c for c in counts if c > 0})
    law = [weights[0] / size] * size
    for index, count in enumerate(counts):
        if count:
            law[index] += weights[1 + groups.index(count)] / counts.count(count)
    total = mpmath.fsum(weights)
    return [weight / total for weight in law]


@pytest.mark.parametrize("counts", [[0, 3, 1, 3, 0, 7], [5], [0, 1], [2, 2, 2, 2], [10_000, 9_999, 0, 1]])
def test_a_pick_has_the_law_of_the_exponential_mechanism(
    counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, size = CoverageChoice(1.0), len(counts) + 3
    with mpmath.workprec(200):
        law = pick_law(mechanism, counts, size, monkeypatch)
        weights = [mpmath.exp(mpmath.mpf(mechanism.eta) * c) for c in [*counts, 0, 0, 0]]
        truth = [w / mpmath.fsum(weights) for w in weights]
        assert all(abs(a - b) <= b * mpmath.mpf(2) ** -150 for a, b in zip(law, truth, strict=True))


def test_weights_do_not_overflow_at_an_exponent_of_ten_thousand() -> None:
    mechanism = CoverageChoice(1.0)
    counts = np.array([math.ceil(10_000 / mechanism.eta), 3, 1])
    assert mechanism.eta * counts[0] >= 10_000
    with np.errstate(all="raise", under="ignore"):
        assert mechanism.pick(np.array([70, 8, 9]), counts, 10**18) == 70
        assert 0 <= mechanism.pick(np.array([70]), np.array([1]), 10**18) < 10**18
        assert 0 <= mechanism.pick(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 5) < 5


def test_grid_picks_have_the_law_of_the_whole_grid_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    family = GridBalls(Encoded.of(DOMAIN), (13_000,), 2)
    chunk = ArraySource(DOMAIN, rows(12)).loaders()[0]()
    everyone = np.arange(12)
    tally = family.tally(0)
    tally.change(family.parts(chunk, 0, everyone), 1)
    mechanism, draws = CoverageChoice(0.2), 15_000
    size = family.size(0)
    assert size == 49
    truth = np.array([int(family.holds(chunk, 0, index, everyone).sum()) for index in range(size)])
    weights = np.exp(mechanism.eta * truth)
    inject_bytes(monkeypatch, 8)
    picked = [mechanism.pick(*tally.held(), size) for _ in range(draws)]
    found = np.bincount(picked, minlength=size)
    assert (truth == 0).any()
    assert (truth > 2).any()
    # Chi-square with 48 degrees of freedom; false-alarm rate 1e-7 for fresh bits, none for these.
    assert chisquare(found, weights / weights.sum() * draws).pvalue > 1e-7


@pytest.mark.parametrize(
    "family",
    [matrix(), on_the_map("euclidean"), on_the_map("great-circle")],
    ids=["matrix", "plane", "sphere"],
)
def test_site_balls_agree_with_the_distances_to_sites(family: SiteBalls) -> None:
    chunk = (ids_source() if family.sites.metric == "matrix" else source()).loaders()[0]()
    everyone = np.arange(len(chunk))
    distances = family.sites.distances(np.asarray(chunk.rows))
    for level, radius in enumerate(family.radii):
        for index in range(family.size(level)):
            assert np.array_equal(family.holds(chunk, level, index, everyone), distances[:, index] <= radius)


# --- families ---------------------------------------------------------------------------------------------


def test_grid_indices_and_grid_points_name_each_other() -> None:
    family = grid()
    for level in range(family.levels):
        indices = np.arange(family.size(level))
        assert np.array_equal(family.indices(level, family.coordinates(level, indices)), indices)


def test_every_record_lies_inside_the_grid() -> None:
    corner = np.array([[1, 1], [-1, -1], [1, -1], [0, 1]])
    chunk = ArraySource(DOMAIN, corner).loaders()[0]()
    for level in range(3):
        cells = grid()._cells(chunk, level, np.arange(4))
        assert np.abs(cells).max() <= grid().half(level)


@pytest.mark.parametrize(
    ("spacings", "reach", "reason"),
    [((1,), 2, "too many points"), ((0,), 2, "at least one"), ((9000,), 900_000, "reach covers too many")],
)
def test_a_grid_that_cannot_be_walked_is_refused(spacings: tuple[int, ...], reach: int, reason: str) -> None:
    wide = Encoded(DOMAIN.fingerprint, 6)
    with pytest.raises(ValueError, match=reason):
        GridBalls(wide, spacings, reach)


def test_points_and_radii_that_leave_exact_arithmetic_are_refused() -> None:
    view = Encoded.of(DOMAIN)
    for points, radii in (
        (np.zeros((1, 3), int), (1,)),
        (np.full((1, 2), 1 << 20), (1,)),
        (np.zeros((1, 2), int), (-1,)),
    ):
        with pytest.raises(ValueError):
            Balls(view, points, radii)


def test_a_cover_needs_rounds_for_every_level() -> None:
    for rounds in ((1, 1), (1, 0, 1), ()):
        with pytest.raises(ValueError, match="at least one round"):
            CoverageLoop(balls(), rounds)
