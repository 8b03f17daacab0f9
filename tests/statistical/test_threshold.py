"""Which cells of a huge family exceed a noisy threshold: the skipping sampler has the brute-force law."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from core.kernels.sparse_counts import LARGEST_FAMILY, SparseCounts
from core.mechanisms.threshold import Threshold, threshold
from core.privacy.losses import Gaussian, Pure
from core.privacy.sensitivity import Sensitivity
from tests.support.bits import inject_bytes

ONE = Sensitivity(monotone=True)
FALSE_ALARM = 1e-7  # of each test here; they also repeat the same bits in every run


def exceeding(mechanism: Threshold, count: int) -> float:
    """P[count + rounded noise > limit]: the noise must exceed limit - count + 1/2."""
    beyond = (mechanism.limit - count + 0.5) * mechanism.amount
    if mechanism.noise == "gaussian":
        return float(ndtr(-beyond))
    return math.exp(-beyond) / 2 if beyond > 0 else 1 - math.exp(beyond) / 2


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("loss", [Pure(0.5), Gaussian(0.7)], ids=["laplace", "gaussian"])
def test_active_children_follow_the_law_of_trying_every_cube(
    dimension: int, loss: Pure | Gaussian, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chi-square over all subsets of the 2^p children; the brute force tries each child on its own."""
    inject_bytes(monkeypatch, 41)
    mechanism = threshold(loss, 2)
    cells = 2**dimension
    occupied = SparseCounts(cells, np.array([1, cells - 1]), np.array([1, 3]))
    chances = np.array([exceeding(mechanism, {1: 1, cells - 1: 3}.get(i, 0)) for i in range(cells)])
    rounds = 2_500
    seen = np.zeros(2**cells, dtype=np.int64)
    for _ in range(rounds):
        seen[int((1 << mechanism.release(occupied, ONE)).sum())] += 1
    bits = (np.arange(2**cells)[:, None] >> np.arange(cells)) & 1
    expected = rounds * np.prod(np.where(bits == 1, chances, 1 - chances), axis=1)
    # Rare subsets are pooled, so that every expected number is at least ten.
    rare = expected < 10
    observed, wanted = seen[~rare], expected[~rare]
    if rare.any():
        observed, wanted = np.append(observed, seen[rare].sum()), np.append(wanted, expected[rare].sum())
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    assert statistic < chi2.isf(FALSE_ALARM, len(wanted) - 1)


def test_a_version_that_skips_empty_cubes_gives_itself_away() -> None:
    """The authors' code looks at occupied children only: an event that is impossible for one neighbour."""
    mechanism = threshold(Pure(0.5), 2)
    built = exceeding(mechanism, 1) / exceeding(mechanism, 0)
    assert math.log(built) <= 0.5 + 1e-12
    printed_with_the_record, printed_without = exceeding(mechanism, 1), 0.0
    assert printed_with_the_record > math.exp(0.5) * printed_without


def test_empty_cells_of_a_family_too_large_to_list_turn_up_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 7)
    limit = 41  # 2^62 cells, each with a chance of exp(-41.5)/2: two of them a time
    mechanism = threshold(Pure(1.0), limit)
    expected = LARGEST_FAMILY * math.exp(-(limit + 0.5)) / 2
    nothing = SparseCounts.none(LARGEST_FAMILY)
    rounds = 400
    found = np.concatenate([mechanism.release(nothing, ONE) for _ in range(rounds)])
    mean = rounds * expected
    # Bernstein: beyond six standard deviations and six more has a chance below 1e-7.
    assert abs(len(found) - mean) < 6 * math.sqrt(mean) + 6
    assert found.min() < LARGEST_FAMILY / 2 < found.max() < LARGEST_FAMILY


def test_an_empty_cell_is_never_confused_with_an_occupied_one(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 8)
    cells = np.array([0, 1, 4, 9])
    certain = SparseCounts(10, cells, np.full(4, 10**6))
    for _ in range(300):
        released = threshold(Pure(0.3), 1).release(certain, ONE)
        assert np.isin(cells, released).all()
        assert len(np.unique(released)) == len(released)
        assert released.max() < 10


def test_a_limit_out_of_the_reach_of_its_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="out of reach of its noise"):
        Threshold("laplace", 1.0, 10**6)
    with pytest.raises(ValueError, match="at least zero"):
        Threshold("gaussian", 1.0, -1)
