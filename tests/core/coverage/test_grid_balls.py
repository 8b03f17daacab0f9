"""Balls about the points of a grid: the same indices for all data."""

import numpy as np
import pytest
from scipy.stats import chisquare

from core.coverage.grid_balls import GridBalls
from core.data import ArraySource
from core.mechanisms.coverage_choice import CoverageChoice
from core.views import Encoded
from tests.support.bits import inject_bytes
from tests.support.coverage import DOMAIN, grid, rows


def test_grid_picks_have_the_law_of_the_whole_grid_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    family = GridBalls(Encoded.of(DOMAIN), (13_000,), 2)
    chunk = ArraySource(DOMAIN, rows(12)).loaders()[0]()
    everyone = np.arange(12)
    counts_of_sets = family.set_counts(0)
    counts_of_sets.change(family.parts(family.positions(chunk, everyone), 0), 1)
    mechanism, draws = CoverageChoice(0.2), 15_000
    size = family.size(0)
    assert size == 49
    truth = np.array(
        [int(family.holds(family.positions(chunk, everyone), 0, index).sum()) for index in range(size)]
    )
    weights = np.exp(mechanism.eta * truth)
    inject_bytes(monkeypatch, 8)
    picked = [mechanism.pick(*counts_of_sets.listed(), size) for _ in range(draws)]
    found = np.bincount(picked, minlength=size)
    assert (truth == 0).any()
    assert (truth > 2).any()
    # Chi-square with 48 degrees of freedom; false-alarm rate 1e-7 for fresh bits, none for these.
    assert chisquare(found, weights / weights.sum() * draws).pvalue > 1e-7


def test_grid_indices_and_grid_points_name_each_other() -> None:
    family = grid()
    for level in range(family.levels):
        indices = np.arange(family.size(level))
        assert np.array_equal(family.indices(level, family.coordinates(level, indices)), indices)


def test_every_record_lies_inside_the_grid() -> None:
    corner = np.array([[1, 1], [-1, -1], [1, -1], [0, 1]])
    chunk = ArraySource(DOMAIN, corner).loaders()[0]()
    for level in range(3):
        cells = grid()._cells(grid().positions(chunk, np.arange(4)), level)
        assert np.abs(cells).max() <= grid().half(level)


@pytest.mark.parametrize(
    ("spacings", "reach", "reason"),
    [((1,), 2, "too many points"), ((0,), 2, "at least one"), ((9000,), 900_000, "reach covers too many")],
)
def test_a_grid_that_cannot_be_walked_is_refused(spacings: tuple[int, ...], reach: int, reason: str) -> None:
    wide = Encoded(DOMAIN.fingerprint, 6)
    with pytest.raises(ValueError, match=reason):
        GridBalls(wide, spacings, reach)
