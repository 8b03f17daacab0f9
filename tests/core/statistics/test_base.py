"""One record never moves a statistic by more than it declares, through any view, to the last bit."""

import itertools
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from threadpoolctl import threadpool_limits

from core.data import UNITS, ArraySource, SparseSource
from core.kernels.accumulate import rows_in_singles, second_moments
from core.kernels.clipping import WEIGHT_ONE, clip_weights, clipped_block
from core.kernels.geometry import integer_sqrt
from core.probe import evaluate
from core.statistics import (
    ClusterCounts,
    NormHistogram,
    PrefixCounts,
    ResidualSums,
    SecondMoments,
)
from core.views import (
    Assigned,
    Encoded,
    PathCodes,
    Projected,
    cache,
)
from tests.support.statistics import DENSE, SPARSE, STATISTICS, chunk_of, known_kinds


def test_every_statistic_is_among_those_that_are_tested() -> None:
    assert known_kinds() <= {statistic.kind for statistic in STATISTICS}


# Rows on the edge of the ball, on the axes, near the centre, zero, with extreme integers.
edge = st.sampled_from([UNITS, -UNITS, UNITS - 1, 1, -1, 0, 18918, -18918, 18917, 23169, -23170])
coordinate = st.one_of(edge, st.integers(-UNITS, UNITS))


def inside(row: list[int]) -> np.ndarray:
    domain_row = DENSE.encode(np.array([row], dtype=np.float64))
    return domain_row[0]


records = st.lists(coordinate, min_size=3, max_size=3).map(inside)
datasets = st.lists(records, max_size=4)


@given(datasets, records, st.booleans())
def test_one_record_changes_a_statistic_by_at_most_what_it_declares(
    others: list[np.ndarray], record: np.ndarray, twice: bool
) -> None:
    without = np.array([*others, *([record] if twice else [])], dtype=np.int64).reshape(-1, 3)
    with_it = np.concatenate([without, record[None, :].astype(np.int64)])
    for statistic in STATISTICS:
        sparse = statistic.domain == SPARSE.fingerprint
        before = statistic.of(chunk_of(without, sparse))
        after = statistic.of(chunk_of(with_it, sparse))
        assert before.shape == after.shape == statistic.shape
        assert after.dtype == np.int64
        declared = statistic.sensitivity
        change = (after - before) / declared.scales
        assert np.abs(change).sum() <= declared.l1 * (1 + 1e-12), statistic
        assert np.sqrt((change**2).sum()) <= declared.l2 * (1 + 1e-12), statistic
        assert np.abs(change).max() <= declared.linf * (1 + 1e-12), statistic
        if declared.monotone:
            assert (change >= 0).all() or (change <= 0).all()
        if declared.one_block and change.ndim == 2:
            assert (np.abs(change).sum(axis=1) > 0).sum() <= 1


def test_a_residual_clipped_by_a_rounded_factor_would_break_its_declaration() -> None:
    """The wrong version: weights rounded to nearest instead of down exceed the radius."""
    squared = np.arange(2, 200_000, dtype=np.int64)
    radius = 9
    nearest = np.minimum(WEIGHT_ONE, np.rint(WEIGHT_ONE * radius / np.sqrt(squared))).astype(np.int64)
    assert (nearest**2 * squared > (WEIGHT_ONE * radius) ** 2).any()
    weights = clip_weights(squared, radius)
    assert (weights**2 * squared <= (WEIGHT_ONE * radius) ** 2).all()
    larger = np.minimum(weights + 1, WEIGHT_ONE)
    assert ((larger**2 * squared > (WEIGHT_ONE * radius) ** 2) | (weights == WEIGHT_ONE)).all()


@given(
    hnp.arrays(np.int64, 20, elements=st.integers(0, 4 * UNITS**2)),
    hnp.arrays(np.int64, 20, elements=st.integers(1, 2 * UNITS)),
)
def test_clipping_weights_never_let_a_norm_exceed_its_radius(squared: np.ndarray, radii: np.ndarray) -> None:
    for weight, square, radius in zip(clip_weights(squared, radii), squared, radii, strict=True):
        assert 0 <= weight <= WEIGHT_ONE
        assert int(weight) ** 2 * int(square) <= WEIGHT_ONE**2 * int(radius) ** 2


@given(hnp.arrays(np.int64, (5, 4), elements=st.integers(-2 * UNITS, 2 * UNITS)), st.integers(1, 2 * UNITS))
def test_clipped_rows_are_integers_inside_the_radius(rows: np.ndarray, radius: int) -> None:
    floats = rows.astype(np.float64)
    clipped = clipped_block(floats, (rows**2).sum(axis=1), radius)
    assert (clipped == np.trunc(clipped)).all()
    assert ((clipped.astype(np.int64) ** 2).sum(axis=1) <= radius**2).all()


@given(st.integers(0, 2**52 - 1))
def test_integer_square_roots_are_exact(square: int) -> None:
    root = int(integer_sqrt(np.array([square]))[0])
    assert root**2 <= square < (root + 1) ** 2


# --- the same integers, however they are computed ---------------------------------------------


def sources(chunk_rows: int, order: np.ndarray | None = None) -> dict[str, Any]:
    draw = np.random.default_rng(4)
    rows = draw.normal(scale=UNITS / 2, size=(1050, 3))
    rows = rows if order is None else rows[order]
    sparse = np.where(np.abs(rows) > 6000, rows, 0)
    return {
        DENSE.fingerprint: ArraySource(DENSE, rows, chunk_rows=chunk_rows),
        SPARSE.fingerprint: SparseSource(SPARSE, sp.csr_array(sparse), chunk_rows=chunk_rows),
    }


def totals(chunk_rows: int, order: np.ndarray | None = None) -> list[np.ndarray]:
    cache.clear_cache()
    by_domain = sources(chunk_rows, order)
    return [
        sum((evaluate(s, loader) for loader in by_domain[s.domain].loaders()), np.zeros(s.shape, np.int64))
        for s in STATISTICS
    ]


@pytest.fixture(scope="module")
def reference() -> list[np.ndarray]:
    return totals(1000)


@pytest.mark.parametrize("chunk_rows", [1, 7])
def test_rechunking_changes_no_bit(chunk_rows: int, reference: list[np.ndarray]) -> None:
    assert all(np.array_equal(a, b) for a, b in zip(totals(chunk_rows), reference, strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_changes_no_bit(threads: int, reference: list[np.ndarray]) -> None:
    with threadpool_limits(threads):
        assert all(np.array_equal(a, b) for a, b in zip(totals(1000), reference, strict=True))


def test_the_order_of_records_changes_no_bit(reference: list[np.ndarray]) -> None:
    order = np.random.default_rng(8).permutation(1050)
    assert all(np.array_equal(a, b) for a, b in zip(totals(700, order), reference, strict=True))


@pytest.mark.parametrize(
    "pool",
    [lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn"))],
    ids=["threads", "processes"],
)
def test_a_pool_changes_no_bit(pool: Callable[[], Any], reference: list[np.ndarray]) -> None:
    by_domain = sources(700)
    with pool() as executor:
        for statistic, expected in zip(STATISTICS, reference, strict=True):
            parts = executor.map(evaluate, itertools.repeat(statistic), by_domain[statistic.domain].loaders())
            assert np.array_equal(sum(parts, np.zeros(statistic.shape, np.int64)), expected)


def test_a_full_cache_changes_no_bit(monkeypatch: pytest.MonkeyPatch, reference: list[np.ndarray]) -> None:
    monkeypatch.setattr(cache.CACHE, "most_bytes", 20_000)
    assert all(np.array_equal(a, b) for a, b in zip(totals(100), reference, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(totals(100), reference, strict=True))


# --- plain meaning, on rows one can check by hand ---------------------------------------------


def test_assignment_breaks_ties_to_the_lowest_index() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.array([[5, 0, 0], [-5, 0, 0], [5, 0, 0]]))
    chunk = chunk_of(np.array([[0, 0, 0], [9, 0, 0], [-9, 0, 0]]), sparse=False)
    assert ClusterCounts(assigned).of(chunk).tolist() == [2, 1, 0]
    assert assigned.assignment(chunk).squared.tolist() == [25, 16, 16]


def test_residual_sums_are_taken_about_the_centre_and_clipped_to_its_radius() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.array([[100, 0, 0]]))
    chunk = chunk_of(np.array([[103, 4, 0], [100, 0, 10]]), sparse=False)
    sums = ResidualSums(assigned, np.array([5])).of(chunk)
    assert (sums / WEIGHT_ONE).tolist() == [[3.0, 4.0, 5.0]]


def test_second_moments_are_the_packed_upper_triangle() -> None:
    chunk = chunk_of(np.array([[1, 2, 3], [4, 5, 6]]), sparse=False)
    moments = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 100).of(chunk)
    assert moments.tolist() == [[17, 22, 27, 29, 36, 45]]


def test_second_moments_of_coarse_rows_count_the_nearest_steps() -> None:
    chunk = chunk_of(np.array([[7, -7, 9], [-9, 15, 16]]), sparse=False)
    moments = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 100, shift=3).of(chunk)
    assert moments.tolist() == [[2, -3, -1, 5, 3, 1 + 4]]


def test_coarse_rows_that_are_not_clipped_again_would_break_their_declaration() -> None:
    """The wrong version: this row is inside its radius, but not any more once it is rounded."""
    row = np.array([[106, 74, 58]])
    declared = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 143, shift=4)
    right = declared.of(chunk_of(row, sparse=False)) / declared.sensitivity.scales
    assert np.sqrt((right**2).sum()) <= 1
    steps = np.rint(row[0] / 16)
    rounded = np.outer(steps, steps)[np.triu_indices(3)] / declared.sensitivity.scales
    assert np.sqrt((rounded**2).sum()) > 1


@pytest.mark.parametrize("radius", [40, 256, 257, 2000])
@pytest.mark.parametrize("column", [0, 30_000], ids=["spread", "one column"])
def test_second_moments_are_exact_on_any_rows(radius: int, column: int) -> None:
    """Radii on both sides of single precision; squares of one column add up to the most they can."""
    draw = np.random.default_rng(3)
    rows = draw.integers(-300, 300, size=(5000, 20)).astype(np.int16)
    if column:
        rows[:] = 0
        rows[:, 7] = column
    exact = rows.astype(np.int64)
    weights = clip_weights((exact**2).sum(axis=1), radius)
    clipped = np.trunc(exact * weights[:, None] / WEIGHT_ONE).astype(np.int64)
    expected = (clipped.T @ clipped)[np.triu_indices(20)]
    assert np.array_equal(second_moments(rows, np.zeros(20, dtype=np.int64), radius), expected)


def test_one_row_more_than_single_precision_holds_would_be_rounded() -> None:
    """The wrong version: a block of one row more than the bound allows."""
    reach = 256
    rows = np.full((rows_in_singles(reach) + 1, 1), reach, dtype=np.float32)
    rows[-1] = 1
    assert rows[:-1].T @ rows[:-1] == 1 << 24
    assert rows.T @ rows != (1 << 24) + 1


def test_a_norm_on_an_edge_belongs_to_the_bin_below() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.zeros((1, 3), dtype=np.int64))
    chunk = chunk_of(np.array([[5, 0, 0], [6, 0, 0], [500, 0, 0], [0, 0, 0]]), sparse=False)
    assert NormHistogram(assigned, np.array([0, 5, 10])).of(chunk).tolist() == [[1, 1, 2]]


def test_paths_name_the_cells_of_a_halving_tree() -> None:
    codes = PathCodes(Encoded.of(DENSE), np.array([-8, -8, -8]), np.array([16, 16, 16]), (0, 1, 0))
    chunk = chunk_of(np.array([[-8, -8, 0], [7, 7, 0], [0, -1, 0], [999, -999, 0], [3, 0, 0]]), sparse=False)
    assert codes.codes(chunk).tolist() == [0b000, 0b111, 0b100, 0b101, 0b110]
    assert PrefixCounts(codes, 1, np.array([0b00, 0b10, 0b11])).of(chunk).tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Assigned(Encoded.of(DENSE), np.array([[0.5, 0, 0]])),
        lambda: Assigned(Encoded.of(DENSE), np.array([[0, 0]])),
        lambda: Assigned(Encoded.of(DENSE), np.array([[10**9, 0, 0]])),
        lambda: Assigned(Encoded.of(DENSE), np.empty((0, 3), dtype=np.int64)),
        lambda: Projected(Encoded.of(DENSE), np.zeros((2, 2), dtype=np.int64), 5),
        lambda: Projected(Encoded.of(DENSE), np.zeros((3, 2), dtype=np.int64), 0),
        lambda: Projected(Encoded.of(DENSE), np.full((3, 2), 2**40), 5),
        lambda: ResidualSums(Assigned(Encoded.of(DENSE), np.array([[0, 0, 0]])), np.array([0])),
        lambda: ResidualSums(Assigned(Encoded.of(DENSE), np.array([[0, 0, 0]])), np.array([5, 5])),
        lambda: SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 10**6),
        lambda: NormHistogram(Assigned(Encoded.of(DENSE), np.array([[0, 0, 0]])), np.array([5, 5])),
        lambda: PathCodes(Encoded.of(DENSE), np.zeros(3, np.int64), np.array([3, 4, 4]), (0, 1)),
    ],
)
def test_parameters_that_would_break_an_argument_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        make()
