"""Buckets of a locality-sensitive hash: the same ones for all data, and sums that one record moves little."""

import numpy as np
import numpy.typing as npt
import pytest

from core.data import UNITS, ArraySource, Chunk, Dense
from core.kernels.clipping import WEIGHT_ONE
from core.statistics.counts import BucketCounts
from core.statistics.sums import BucketSums, bucket_means
from core.views import Buckets, Encoded, Projected, RowView

DOMAIN = Dense.ball(1.0, dimension=3, size=500)


def turned() -> RowView:
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    return Projected(Encoded.of(DOMAIN), np.rint(rotation * WEIGHT_ONE).astype(np.int64), UNITS)


def buckets(width: int = 9000) -> Buckets:
    return Buckets(turned(), np.array([17, width // 3, width - 1]), width)


def chunk(rows: npt.ArrayLike, chunk_rows: int | None = None) -> list[Chunk]:
    return [loader() for loader in ArraySource(DOMAIN, rows, chunk_rows=chunk_rows).loaders()]


def everywhere(count: int = 400) -> npt.NDArray[np.float64]:
    draw = np.random.default_rng(2)
    rows: npt.NDArray[np.float64] = draw.normal(size=(count, 3))
    rows *= draw.uniform(0, 1.2, size=(count, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def test_every_record_has_a_bucket_of_the_public_family() -> None:
    view = buckets()
    corners = np.vstack([np.eye(3), -np.eye(3), everywhere()])
    numbers = view.numbers(chunk(corners)[0])
    assert numbers.min() >= 0
    assert numbers.max() < view.family


def test_no_record_lies_farther_from_the_middle_of_its_bucket_than_declared() -> None:
    for width in (3001, 9000, 32767):
        view = buckets(width)
        (data,) = chunk(everywhere())
        away = np.asarray(view.base.rows(data)) - view.middles(view.numbers(data))
        assert (np.abs(away) <= view.width // 2 + 1).all()
        assert np.linalg.norm(away, axis=1).max() <= view.radius


def test_counts_and_sums_are_the_same_under_any_chunking() -> None:
    view = buckets()
    whole = BucketCounts(view).of(chunk(everywhere())[0])
    parts = [BucketCounts(view).of(part) for part in chunk(everywhere(), 13)]
    summed = sum(parts[1:], start=parts[0])
    assert np.array_equal(whole.cells, summed.cells)
    assert np.array_equal(whole.counts, summed.counts)
    sums = BucketSums(view, whole.cells)
    assert np.array_equal(
        sums.of(chunk(everywhere())[0]), sum(sums.of(part) for part in chunk(everywhere(), 13))
    )


def test_one_record_moves_one_row_of_sums_by_at_most_the_declared_scale() -> None:
    view = buckets()
    rows = everywhere()
    listed = BucketCounts(view).of(chunk(rows)[0]).cells[::2]
    statistic = BucketSums(view, listed)
    scale = float(statistic.sensitivity.scales[0])
    unlisted = 0
    for row in rows[:200]:
        added = statistic.of(chunk(row[None, :])[0])
        touched = np.flatnonzero(np.abs(added).sum(axis=1))
        unlisted += len(touched) == 0
        assert len(touched) <= 1
        assert np.linalg.norm(added.astype(float)) <= scale
        assert np.abs(added).sum() <= scale * statistic.sensitivity.l1
    assert 0 < unlisted < 200


def test_sums_about_the_origin_would_break_the_declared_scale() -> None:
    view = buckets(3000)
    (data,) = chunk(np.array([[0.9, 0.0, 0.0]]))
    statistic = BucketSums(view, view.numbers(data))
    about_origin = np.asarray(view.base.rows(data)).astype(float) * WEIGHT_ONE
    assert np.linalg.norm(about_origin) > float(statistic.sensitivity.scales[0])
    assert np.linalg.norm(statistic.of(data).astype(float)) <= float(statistic.sensitivity.scales[0])


def test_without_noise_the_means_are_those_of_the_records() -> None:
    view = buckets(20_000)
    (data,) = chunk(everywhere(50))
    numbers, rows = view.numbers(data), np.asarray(view.base.rows(data))
    statistic = BucketSums(view, np.unique(numbers))
    means = bucket_means(statistic, statistic.of(data))
    truth = np.array([rows[numbers == bucket].mean(axis=0) for bucket in statistic.listed])
    assert np.abs(means - truth).max() < 1.0


@pytest.mark.parametrize(
    ("shift", "width"), [([0, 0], 100), ([0, 0, 100], 100), ([0, 0, -1], 100), ([0, 0, 0], 0)]
)
def test_buckets_that_are_not_cells_of_a_grid_are_refused(shift: list[int], width: int) -> None:
    with pytest.raises(ValueError, match="bucket"):
        Buckets(turned(), np.array(shift), width)


def test_a_family_too_large_to_number_is_refused() -> None:
    domain = Dense.ball(1.0, dimension=8, size=500)
    with pytest.raises(ValueError, match="too many buckets"):
        Buckets(Encoded.of(domain), np.zeros(8, dtype=np.int64), 300)
