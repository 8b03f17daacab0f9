"""What post-processing believes of noisy histograms and of released points."""

import numpy as np
import pytest

from core.postprocessing.spread import CountNoise, DistanceShape, geometric_edges, trimmed_shares

GAUSSIAN, LAPLACE = CountNoise(10.0, long_tails=False), CountNoise(10.0, long_tails=True)


def histogram(**counts: float) -> np.ndarray:
    """Forty bins with a crowd in bins 20 to 24 and whatever is asked for, by place: `at_30=50`."""
    bins = np.zeros(40)
    bins[20:25] = 400.0
    for place, count in counts.items():
        bins[int(place.removeprefix("at_"))] = count
    return bins


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_a_histogram_ends_with_its_records_and_not_with_the_noise(noise: CountNoise) -> None:
    shares = trimmed_shares(histogram(at_3=25, at_38=30), noise)
    assert np.flatnonzero(shares).tolist() == [20, 21, 22, 23, 24]


def test_what_noise_hardly_makes_up_belongs_to_a_histogram() -> None:
    assert trimmed_shares(histogram(at_38=50), GAUSSIAN)[38] > 0
    # Laplace noise reaches further out: the same count tells less.
    assert trimmed_shares(histogram(at_38=50), LAPLACE)[38] == 0
    assert trimmed_shares(histogram(at_38=80), LAPLACE)[38] > 0


def test_weak_bins_in_a_row_tell_what_none_tells_alone() -> None:
    assert trimmed_shares(histogram(at_33=30), GAUSSIAN)[33] == 0
    assert trimmed_shares(histogram(at_33=30, at_34=30, at_35=30), GAUSSIAN)[33:36].min() > 0


def test_nothing_but_noise_is_taken_as_spread_everywhere() -> None:
    assert np.allclose(trimmed_shares(np.full(40, -1.0), GAUSSIAN), 1 / 40)


@pytest.mark.parametrize("chance", [1e-2, 1e-4])
def test_laplace_noise_passes_its_limit_as_often_as_said(chance: float) -> None:
    """The law of one Laplace variable of deviation 10, in closed form: no draw, no false alarm."""
    limit = LAPLACE.beyond(chance)
    assert 0.5 * np.exp(-limit * np.sqrt(2) / 10.0) == pytest.approx(chance)


def shape_of(*bins: slice, sizes: tuple[float, ...], noise: float) -> DistanceShape:
    """Clusters of these sizes, each spread evenly over its bins, in counts that noise happens to spare."""
    counts = np.zeros((len(bins), 31))
    for cluster, taken, size in zip(counts, bins, sizes, strict=True):
        cluster[taken] = size / len(cluster[taken])
    law = CountNoise(noise, long_tails=False)
    return DistanceShape.of(counts, geometric_edges(30_000, 1.2, 31), np.array(sizes), law, own_scales=True)


def test_few_records_far_apart_are_not_taken_for_a_crowd_that_is_tight() -> None:
    """Each bin of the last cluster is below its noise; were bins weighed one by one, it would be 12."""
    crowd = [slice(10, 15)] * 20
    shape = shape_of(*crowd, slice(18, 28), sizes=(2000.0,) * 20 + (330.0,), noise=42.0)
    assert shape.quantiles(0.5)[-1] >= 18
    assert (shape.quantiles(0.5)[:-1] == 12).all()


def test_a_cluster_that_noise_hides_is_as_wide_as_all_others() -> None:
    crowd = [slice(10, 15)] * 20
    shape = shape_of(*crowd, slice(18, 28), sizes=(2000.0,) * 20 + (30.0,), noise=42.0)
    assert shape.quantiles(0.5)[-1] == 12
