"""What is wrong in print: each printed version has an event that gives a record away; the built one has none.

The events are those of Balcan et al. (2017). `e` stands for the epsilon that the printed step claims.
"""

import itertools
import math

import numpy as np
import pytest

from core.algorithms import registry
from core.algorithms.papers.stages.candidates import Regions
from core.algorithms.papers.stages.projection import random_projection
from core.data import UNITS, ArraySource, Chunk, Dense, Sparse
from core.mechanisms.noise import LaplaceNoise
from core.plan import Request
from core.postprocessing.bounds import inside_ball, spread_centres
from core.privacy import Budget
from core.privacy.losses import Pure
from core.probe import Probe
from core.statistics.counts import CubeCounts
from core.statistics.sums import PickedSums
from core.views import Assigned, CandidateDistances, Cubes, Encoded, TopEntries
from tests.support.bits import inject_bytes

SPACE = Dense.ball(1.0, dimension=50, size=1000)
ROWS = Encoded.of(SPACE)


def log_sum(values: np.ndarray) -> float:
    return float(values.max() + math.log(np.exp(values - values.max()).sum()))


# --- projection (Algorithm 4) -------------------------------------------------------------------------------


def test_a_projection_lengthens_rows_and_only_a_clip_restores_the_radius() -> None:
    draw = np.random.default_rng(8)
    row = np.zeros(50)
    row[0] = 1.0
    lengths = [np.linalg.norm(row @ draw.normal(size=(50, 2)) / math.sqrt(2)) for _ in range(200)]
    assert max(lengths) > 2.0  # in print: beyond the radius that later steps divide by
    chunk = Chunk(SPACE.encode(row[None]), 0, "long")
    for number in range(200):
        view = random_projection(ROWS, 2, np.random.default_rng(number))
        projected = np.asarray(view.rows(chunk)).astype(np.int64)
        assert (projected**2).sum() <= view.radius**2


def test_dimension_depth_and_threshold_follow_the_public_size_alone() -> None:
    """In print they follow n: with n + 1 records the release has another shape, so the ratio is infinite."""

    def shape_in_print(n: int) -> tuple[int, int]:
        return math.ceil(8 * math.log(n)), math.floor(math.log(n))

    assert any(shape_in_print(n) != shape_in_print(n + 1) for n in range(100, 120))
    domain = Dense.ball(1.0, dimension=3, size=1000)
    plan = registry.plan(domain, Request(2, Budget.of(1), "means", "balcan"))
    names = []
    for count in (100, 101, 102, 103):
        probe = Probe(plan, ArraySource(domain, np.zeros((count, 3))))
        registry.get("balcan").run(plan, probe)
        names.append({release.step for release in probe.transcript})
    assert all(steps == names[0] for steps in names)


# --- partition (Algorithm 1) --------------------------------------------------------------------------------


def test_the_printed_root_misses_rows_that_the_built_one_holds() -> None:
    line = Dense.ball(1.0, dimension=1, size=10)
    shift, row = np.array([20000]), -30000
    assert not shift[0] - UNITS <= row <= shift[0] + UNITS  # in print: [-R, R] + v
    counts = CubeCounts(Cubes(Encoded.of(line), shift)).of(Chunk(np.array([[row]], dtype=np.int16), 0, "row"))
    assert counts.counts.tolist() == [1]


# --- local swap (Algorithm 3) -------------------------------------------------------------------------------


def pick_in_print(losses: np.ndarray, radius: float, epsilon: float, swaps: int) -> np.ndarray:
    """Log-probabilities of the printed choice among sets, by their losses."""
    weights = -epsilon * losses / (8 * radius**2 * (swaps + 1))
    return weights - log_sum(weights)


def test_unclipped_candidates_overspend_and_clipped_ones_do_not() -> None:
    """Candidates of the printed root lie up to 2 R sqrt(p) out: for p = 5 a claimed 1 is more than 3."""
    dimension, epsilon = 5, 1.0
    near = np.full(dimension, 1 / math.sqrt(dimension))
    far = -2 * np.ones(dimension)
    crowd, record = np.tile(near, (400, 1)), near

    def losses(rows: np.ndarray) -> np.ndarray:
        return np.array([((rows - point) ** 2).sum() for point in (near, far)])

    # Every round of swaps (here each replaces the only centre) and the final pick choose by these weights.
    rounds = 3
    one = pick_in_print(losses(crowd), 1.0, epsilon, rounds - 1) * rounds
    other = pick_in_print(losses(np.concatenate([crowd, record[None]])), 1.0, epsilon, rounds - 1) * rounds
    assert np.abs(one - other).max() > 3.0 * epsilon

    points = inside_ball(np.rint(np.array([near, far]) * UNITS).astype(np.int64))
    view = Encoded.of(Dense.ball(1.0, dimension=dimension, size=10))
    source = CandidateDistances(view, points, "means")
    chunk = Chunk(np.trunc(near * UNITS)[None].astype(np.int16), 0, "near")
    paid, _ = source.payments(chunk, slice(None))
    assert paid.max() <= source.reach
    with pytest.raises(ValueError, match="clip"):
        CandidateDistances(view, np.rint(far * UNITS)[None].astype(np.int64), "means")


def test_as_many_candidates_are_listed_as_planned_however_many_regions_were_found() -> None:
    draw = np.random.default_rng(1)
    corners = np.array(list(itertools.product([-70000, 70000], repeat=3)))
    for found in (1, 5, 8):
        regions = Regions(corners[:found], np.full(found, 4000))
        for count in (1, 4, 50):
            points = regions.candidates(count, draw)
            assert len(points) == count
            assert ((points**2).sum(axis=1) <= UNITS**2).all()


def test_candidates_beyond_those_found_lie_in_the_smaller_regions() -> None:
    regions = Regions(np.array([[-20000, 0], [10000, 5000]]), np.array([16000, 100]))
    points = regions.candidates(1000, np.random.default_rng(2))
    small = np.abs(points - [10000, 5000]).max(axis=1) <= 100
    assert 900 < small.sum() < 1000
    assert (np.abs(points[~small] - [-20000, 0]).max(axis=1) <= 16000).all()


# --- recovery and final pick (Algorithm 4) ------------------------------------------------------------------


def test_laplace_noise_by_coordinate_ignores_the_l1_norm_of_a_row() -> None:
    """Printed scale 24 T R / e in each of d coordinates: beyond d = 576 a record spends more than e."""
    dimension, epsilon, trials = 1000, 1.0, 1
    row = np.full(dimension, 1 / math.sqrt(dimension))
    output = 10 * row  # farther out than both sums in every coordinate
    scale = 24 * trials / epsilon
    printed = (np.abs(output) - np.abs(output - row)).sum() / scale
    assert printed > epsilon
    # The built noise has density exp(-e |x| / R): the triangle inequality bounds every output's ratio.
    built = (np.linalg.norm(output) - np.linalg.norm(output - row)) * epsilon
    assert built <= epsilon + 1e-12


def test_scoring_unclipped_centres_has_no_bound() -> None:
    epsilon, far = 1.0, 100.0  # a noisy mean of a small cluster, as printed, lies anywhere
    losses = np.array([0.0, 0.0])
    with_record = losses + np.array([0.0, far**2])
    one, other = (-epsilon * v / 24 - log_sum(-epsilon * v / 24) for v in (losses, with_record))
    assert np.abs(one - other).max() > 100 * epsilon
    clipped = inside_ball(np.array([[3_000_000, 0], [5, -9]]))
    assert ((clipped**2).sum(axis=1) <= UNITS**2).all()


# --- k-median recovery (section 6.2) ------------------------------------------------------------------------


def test_a_chain_that_has_not_converged_gives_a_record_away_and_a_net_does_not() -> None:
    """One Metropolis step between two points: staying is impossible for one neighbour, not for the other."""

    def stays(losses: tuple[float, float]) -> float:
        return 1 - min(1.0, math.exp(losses[0] - losses[1]))

    assert stays((1.0, 1.0)) == 0.0
    assert stays((1.0, 1.5)) > 0.0  # a record nearer to the first point was added

    def net(losses: tuple[float, float], epsilon: float) -> np.ndarray:
        weights = -epsilon * np.array(losses) / 2
        return weights - log_sum(weights)

    for extra in itertools.product((0.0, 0.5, 2.0), repeat=2):  # distances within a ball of radius one
        one, other = net((1.0, 1.0), 1.0), net((1.0 + extra[0], 1.0 + extra[1]), 1.0)
        assert np.abs(one - other).max() <= 1.0 + 1e-12


# --- sparse recovery (Algorithm 5) --------------------------------------------------------------------------


def test_noise_that_shrinks_with_the_private_size_has_unbounded_ratios() -> None:
    epsilon, radius, entries, eta = 1.0, 1.0, 1, 0.5

    def log_density(output: float, mean: float, records: int) -> float:
        scale = 4 * radius * entries / (epsilon * eta * records)
        return -abs(output - mean) / scale - math.log(2 * scale)

    ratios = [abs(log_density(x, 1.0, 1) - log_density(x, 1.0, 2)) for x in (10.0, 100.0, 1000.0)]
    assert ratios[-1] > 100 * epsilon
    text = Sparse(dimension=9, radius=1.0, size=10)
    rows = Encoded.of(text)
    view = Assigned(rows, np.zeros((1, 9), dtype=np.int64))
    declared = PickedSums(view, TopEntries(rows, 2, UNITS), np.array([[0, 3, 4]])).sensitivity
    # Noise of scale l1 * largest / epsilon on sums of which a record changes two, by at most `largest` each.
    assert declared.l1 * declared.scales[0] == 2 * UNITS
    assert LaplaceNoise(0.5).loss.epsilon == 0.5


# --- refinement (section 7) ---------------------------------------------------------------------------------


def test_rounds_of_refinement_are_paid_for() -> None:
    """In print they "do not affect the privacy guarantee"; every round is a measurement like any other."""
    domain = Dense.ball(1.0, dimension=3, size=1000)
    plan = registry.plan(domain, Request(2, Budget.of(1), "means", "balcan"))
    refining = [step for step in plan.steps if step.name.startswith("refine-")]
    assert {step.repeats for step in refining} == {8}
    assert plan.composition.pure <= 1
    losses = [(step.mechanism.loss, step.repeats) for step in refining]
    assert sum(loss.epsilon * repeats for loss, repeats in losses if isinstance(loss, Pure)) > 0.5


def test_starting_points_owe_nothing_to_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """In print they come from the data's bounding box: a start beyond all records but one betrays it."""
    domain = Dense.box([0, 0], [1, 1], size=1000)
    rows = np.full((50, 2), 0.1)
    outlier = np.concatenate([rows, [[0.9, 0.9]]])

    def chance_in_print(data: np.ndarray) -> float:
        """P[first coordinate of a start beyond 1/2], uniform in the bounding box of the data."""
        low, high = data[:, 0].min(), data[:, 0].max()
        return 0.0 if high <= 0.5 else (high - 0.5) / (high - low)

    assert chance_in_print(rows) == 0.0
    assert chance_in_print(outlier) > 0.0
    plan = registry.plan(domain, Request(3, Budget.of(1), "means", "sulq"))
    starts = []
    for data in (rows, outlier):
        inject_bytes(monkeypatch, 3)
        probe = Probe(plan, ArraySource(domain, data))
        starts.append(spread_centres(domain, 3, probe.draw("starts")))
    assert np.array_equal(starts[0], starts[1])
