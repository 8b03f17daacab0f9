"""Blocks of rows are shared among threads without changing a single integer."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from core.data import Dense, Sparse
from core.kernels.accumulate import second_moments, weighted_sums
from core.kernels.geometry import nearest, project
from core.kernels.threads import share_blocks

BLOCKS = [slice(start, start + 10) for start in range(0, 500, 10)]


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 3])
def test_every_block_goes_to_one_thread(threads: int) -> None:
    with threadpool_limits(threads, user_api="blas"):
        taken = share_blocks(list, BLOCKS)
    assert len(taken) == threads
    assert sorted(part.start for parts in taken for part in parts) == [part.start for part in BLOCKS]


def test_threads_have_single_threaded_blas_and_give_its_threads_back() -> None:
    def work(parts: Iterator[slice]) -> list[int]:
        return [count for _ in parts for count in blas_threads()]

    with threadpool_limits(3, user_api="blas"):
        seen = share_blocks(work, BLOCKS)
        assert {count for counts in seen for count in counts} == {1}
        assert blas_threads() == {3}


def test_a_thread_of_several_starts_no_further_ones() -> None:
    def inner(parts: Iterator[slice]) -> str:
        assert list(parts)
        return threading.current_thread().name

    def outer(parts: Iterator[slice]) -> list[tuple[str, list[str]]]:
        return [(threading.current_thread().name, share_blocks(inner, BLOCKS)) for _ in parts]

    with threadpool_limits(3, user_api="blas"):
        for found in share_blocks(outer, BLOCKS[:6]):
            assert all(names == [own] for own, names in found)


def test_an_error_in_one_thread_reaches_the_caller_and_gives_threads_back() -> None:
    def work(parts: Iterator[slice]) -> None:
        for part in parts:
            if part.start == 40:
                raise ArithmeticError("in a thread")

    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ArithmeticError, match="in a thread"):
            share_blocks(work, BLOCKS)
        assert blas_threads() == {2}
        assert len(share_blocks(list, BLOCKS)) == 2


@pytest.mark.parametrize("width", [1, 3, 70])
def test_kernels_give_the_same_integers_on_any_number_of_threads(width: int) -> None:
    draw = np.random.default_rng(width)
    rows = draw.normal(size=(600_000 // width, width)) * draw.choice([0.1, 1, 9], size=(600_000 // width, 1))
    centres = draw.integers(-3000, 3000, size=(7, width))
    matrix = draw.integers(-32768, 32768, size=(width, 2))
    results = []
    for threads in (1, 3):
        with threadpool_limits(threads, user_api="blas"):
            dense = Dense.ball(8.0, 0.5, dimension=width, size=1000).encode(rows)
            sparse = Sparse(dimension=width, radius=8.0, size=1000).encode(sp.csr_array(np.trunc(rows)))
            for encoded in (dense, sparse):
                labels, squared = nearest(encoded, centres, 32767)
                results.append(
                    [
                        encoded.toarray() if isinstance(encoded, sp.csr_array) else encoded,
                        labels,
                        squared,
                        project(encoded, matrix, centres[0], 9000, 32767),
                        weighted_sums(encoded, labels, squared.astype(np.int64) % 32769, 7),
                        second_moments(encoded, centres[0], 9000),
                    ]
                )
    one, several = results[:2], results[2:]
    for kind in range(2):
        for first, second in zip(one[kind], several[kind], strict=True):
            assert np.array_equal(first, second)


def test_rows_of_zeros_encode_and_decode_without_a_warning() -> None:
    sparse = Sparse(dimension=3, radius=1e9, size=10)
    assert sparse.encode(sp.csr_array((4, 3))).nnz == 0
    assert not sparse.decode(np.zeros((2, 3))).any()
    assert not Dense.ball(1e9, dimension=3, size=10).decode(np.zeros((2, 3))).any()
