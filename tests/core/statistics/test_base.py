"""One record never moves a statistic by more than it declares, through any view, to the last bit."""

import itertools
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from core.data import UNITS, ArraySource, SparseSource, TableSource
from core.kernels.geometry import integer_sqrt
from core.probe import evaluate
from core.statistics.counts import NormHistogram
from core.statistics.sums import ResidualSums, SecondMoments
from core.views import (
    Assigned,
    Encoded,
    PathCodes,
    Projected,
    clear_cache,
)
from tests.support.rows import DENSE, SPARSE, TABLE, chunk_of
from tests.support.statistics import STATISTICS, known_kinds


def test_every_statistic_is_among_those_that_are_tested() -> None:
    assert known_kinds() <= {statistic.kind for statistic in STATISTICS}


# Rows on the edge of the ball, on the axes, near the centre, zero, with extreme integers.
edge = st.sampled_from([UNITS, -UNITS, UNITS - 1, 1, -1, 0, 18918, -18918, 18917, 23169, -23170])

coordinate = st.one_of(edge, st.integers(-UNITS, UNITS))


def inside(row: list[int]) -> np.ndarray:
    domain_row: np.ndarray = DENSE.encode(np.array([row], dtype=np.float64))[0]
    return domain_row


records = st.lists(coordinate, min_size=3, max_size=3).map(inside)

datasets = st.lists(records, max_size=4)


# Each example goes through every statistic: fewer of them, then, than of other tests.
@settings(max_examples=settings().max_examples // 4)
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
        assert isinstance(before, np.ndarray)
        assert isinstance(after, np.ndarray)
        assert before.shape == after.shape == statistic.shape
        before, after = statistic.finish(before), statistic.finish(after)
        assert isinstance(before, np.ndarray)
        assert isinstance(after, np.ndarray)
        assert after.dtype == np.int64
        declared = statistic.sensitivity
        change = (after - before) / declared.scales
        assert np.abs(change).sum() <= declared.l1 * (1 + 1e-12), statistic
        assert np.sqrt((change**2).sum()) <= declared.l2 * (1 + 1e-12), statistic
        assert np.abs(change).max() <= declared.linf * (1 + 1e-12), statistic
        if declared.touched is not None:
            assert np.count_nonzero(change) <= declared.touched
        if declared.monotone:
            assert (change >= 0).all() or (change <= 0).all()
        if declared.one_block and change.ndim == 2:
            assert (np.abs(change).sum(axis=1) > 0).sum() <= 1


@given(st.integers(0, 2**52 - 1))
def test_integer_square_roots_are_exact(square: int) -> None:
    root = int(integer_sqrt(np.array([square]))[0])
    assert root**2 <= square < (root + 1) ** 2


def sources(chunk_rows: int, order: np.ndarray | None = None) -> dict[str, Any]:
    draw = np.random.default_rng(4)
    rows = draw.normal(scale=UNITS / 2, size=(63, 3))
    rows = rows if order is None else rows[order]
    sparse = np.where(np.abs(rows) > 6000, rows, 0)
    return {
        DENSE.fingerprint: ArraySource(DENSE, rows, chunk_rows=chunk_rows),
        SPARSE.fingerprint: SparseSource(SPARSE, sp.csr_array(sparse), chunk_rows=chunk_rows),
        TABLE.fingerprint: TableSource(TABLE, _columns(rows), chunk_rows=chunk_rows),
    }


def _columns(rows: np.ndarray) -> dict[str, np.ndarray]:
    """A number, a level, and a count that is missing here and there."""
    age, sex, visits = rows.T / UNITS
    return {
        "age": 60 + 60 * age,
        "sex": np.where(sex > 0, "f", "m"),
        "visits": np.where(visits > 0, np.rint(9 * visits), np.nan),
    }


def totals(chunk_rows: int, order: np.ndarray | None = None) -> list[np.ndarray]:
    clear_cache()
    by_domain = sources(chunk_rows, order)
    return [
        sum(
            (np.asarray(evaluate(s, loader)) for loader in by_domain[s.domain].loaders()),
            np.zeros(s.shape, np.int64),
        )
        for s in STATISTICS
    ]


@pytest.fixture(scope="module")
def reference() -> list[np.ndarray]:
    return totals(60)


@pytest.mark.parametrize("chunk_rows", [1, 7])
def test_rechunking_changes_no_bit(chunk_rows: int, reference: list[np.ndarray]) -> None:
    assert all(np.array_equal(a, b) for a, b in zip(totals(chunk_rows), reference, strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_changes_no_bit(threads: int, reference: list[np.ndarray]) -> None:
    with threadpool_limits(threads):
        assert all(np.array_equal(a, b) for a, b in zip(totals(60), reference, strict=True))


def test_the_order_of_records_changes_no_bit(reference: list[np.ndarray]) -> None:
    order = np.random.default_rng(8).permutation(63)
    assert all(np.array_equal(a, b) for a, b in zip(totals(40, order), reference, strict=True))


@pytest.mark.parametrize(
    "pool",
    [lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn"))],
    ids=["threads", "processes"],
)
def test_a_pool_changes_no_bit(pool: Callable[[], Any], reference: list[np.ndarray]) -> None:
    by_domain = sources(40)
    with pool() as executor:
        for statistic, expected in zip(STATISTICS, reference, strict=True):
            parts = executor.map(evaluate, itertools.repeat(statistic), by_domain[statistic.domain].loaders())
            assert np.array_equal(sum(parts, np.zeros(statistic.shape, np.int64)), expected)


def test_a_full_cache_changes_no_bit(monkeypatch: pytest.MonkeyPatch, reference: list[np.ndarray]) -> None:
    monkeypatch.setattr("core.kernels.cache.CACHE.most_bytes", 6_000)
    assert all(np.array_equal(a, b) for a, b in zip(totals(30), reference, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(totals(30), reference, strict=True))


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
        lambda: PathCodes.even(Encoded.of(DENSE), np.zeros(3, np.int64), np.array([3, 4, 4]), (0, 1)),
    ],
)
def test_parameters_that_would_break_an_argument_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        make()
