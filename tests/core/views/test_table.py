"""Rows of a table in a geometry: how long a record can be, how far apart two are, and wrong versions."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.axes import Axis, Levels
from core.columns.base import StoredColumn
from core.data import UNITS, Boolean, Category, Chunk, Column, Date, Geometry, Number, Table
from core.privacy.sensitivity import Sensitivity
from core.statistics.counts import ColumnHistograms
from core.statistics.sums import Sums
from core.views import ColumnBins, Encoded, TableRows

AGE = Number(name="age", low=0, high=9, whole=True, weight=3.0)
WARD = Category(name="ward", levels=("a", "b", "c"), missing="level", weight=2.0)
SMOKER = Boolean(name="smoker", weight=0.25)


def table(*columns: Column) -> Table:
    return Table(declared=columns, size=100)


def chunk_of(codes: Any) -> Chunk:
    return Chunk(np.array(codes, dtype=np.uint16).reshape(len(codes), -1), 0, object())


def every_record(geometry: Geometry) -> np.ndarray:
    """All rows that a small table can have, and damaged ones."""
    codes = [[*range(column.codes), 65535] for column in geometry.table.stored]
    return np.array(list(itertools.product(*codes)), dtype=np.uint16)


columns = st.one_of(
    st.builds(
        Number,
        name=st.just("n"),
        low=st.just(0),
        high=st.integers(1, 20),
        whole=st.just(True),
        weight=st.sampled_from([0.001, 0.3, 1.0, 1000.0]),
    ),
    st.builds(Boolean, name=st.just("b"), weight=st.sampled_from([0.01, 1.0, 7.0])),
    st.builds(
        Category,
        name=st.just("c"),
        levels=st.integers(2, 9).map(lambda n: tuple(f"l{i}" for i in range(n))),
        weight=st.sampled_from([0.002, 1.0, 999.0]),
    ),
)


@given(st.lists(columns, min_size=1, max_size=3))
def test_no_record_is_longer_than_the_radius_and_some_record_nearly_is(drawn: list[Column]) -> None:
    named = [replace(column, name=f"{column.name}{place}") for place, column in enumerate(drawn)]
    geometry = Geometry.of(table(*named))
    rows = geometry.rows(every_record(geometry)).astype(np.int64)
    longest = int((rows**2).sum(axis=1).max())
    assert longest <= UNITS**2
    # Rounding takes at most a unit of each column, where no column is rounded up to its least step.
    if max(c.weight for c in named) / min(c.weight for c in named) < 1000:
        assert math.isqrt(longest) >= UNITS - 2 * geometry.dimension - 2


def test_one_record_changes_a_sum_by_at_most_the_radius_whoever_it_is() -> None:
    geometry = Geometry.of(table(AGE, WARD, SMOKER))
    statistic = Sums(Encoded.of(geometry))
    for record in every_record(geometry):
        change = statistic.of(chunk_of([record])) / statistic.sensitivity.scales
        assert np.linalg.norm(change) <= 1
        assert np.abs(change).sum() <= statistic.sensitivity.l1


def test_two_levels_are_exactly_the_weight_apart_whichever_they_are() -> None:
    geometry = Geometry.of(table(AGE, WARD))
    rows = geometry.rows(np.array([[4, level] for level in range(4)], dtype=np.uint16)).astype(np.int64)
    squared = {int(((a - b) ** 2).sum()) for a, b in itertools.combinations(rows, 2)}
    assert len(squared) == 1
    ends = geometry.rows(np.array([[0, 0], [9, 0]], dtype=np.uint16)).astype(np.int64)
    across = math.sqrt(((ends[0] - ends[1]) ** 2).sum())
    assert math.sqrt(squared.pop()) / across == pytest.approx(WARD.weight / AGE.weight, rel=1e-3)


def test_a_record_that_changes_level_moves_a_sum_by_the_weight() -> None:
    geometry = Geometry.of(table(AGE, WARD))
    statistic = Sums(Encoded.of(geometry))
    before, after = (statistic.of(chunk_of([[3, 1], [5, level]])) for level in (0, 2))
    (axis,) = (axis for axis in geometry.axes if isinstance(axis, Levels))
    assert ((after - before) ** 2).sum() == 2 * axis.height**2


def test_the_radius_is_less_than_that_of_the_box_around_the_levels() -> None:
    wide = Category(name="code", levels=tuple(f"l{i}" for i in range(200)))
    (axis,) = Geometry.of(table(wide)).axes
    low, high = axis.bounds
    assert math.sqrt(((high - low) ** 2).sum()) / 2 > 7 * UNITS


def test_columns_that_a_job_leaves_out_change_nothing() -> None:
    everything = table(AGE, WARD, SMOKER)
    geometry = Geometry.of(everything, ["age"])
    assert geometry.dimension == 1
    rows = geometry.rows(every_record(Geometry.of(everything)))
    assert np.abs(rows).max() == UNITS, "and the one that is left fills the ball"


def test_codes_outside_a_released_range_are_clipped_to_it() -> None:
    geometry = Geometry.of(table(AGE, SMOKER)).clipped({"age": (3, 5)})
    rows = geometry.rows(np.array([[code, 0] for code in range(10)], dtype=np.uint16))
    assert rows[:4, 0].tolist() == [rows[3, 0]] * 4
    assert rows[5:, 0].tolist() == [rows[5, 0]] * 5
    assert rows[4, 0] == 0


def test_geometries_of_one_table_are_different_views_of_it() -> None:
    one, two = (Geometry.of(table(AGE, SMOKER), weights={"age": weight}) for weight in (1, 2))
    assert TableRows(one).domain == TableRows(two).domain
    assert TableRows(one).digest != TableRows(two).digest


# --- versions that look right -----------------------------------------------------------------------------


def test_a_radius_that_forgets_the_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column as long as its weight says, in a unit that takes all of them for one."""
    honest = Geometry._axis

    def heavier(self: Geometry, number: int, place: int, column: StoredColumn, weight: float) -> Axis:
        return honest(self, number, place, column, weight * self.weights[number])

    monkeypatch.setattr(Geometry, "_axis", heavier)
    monkeypatch.setattr("core.data.tables.geometry.UNITS", 1 << 17)  # else the unit is lowered until rows fit
    geometry = Geometry.of(table(AGE, WARD))
    with pytest.raises(ValueError, match="beyond its radius"):
        TableRows(geometry)


def test_levels_numbered_along_a_line_are_not_equally_far_apart() -> None:
    """One coordinate for all levels: the first and the last would be farther apart than neighbours."""
    codes = np.arange(4)
    apart = {abs(int(a - b)) for a, b in itertools.combinations(codes, 2)}
    assert len(apart) > 1


def test_a_range_taken_from_rows_has_no_bound_on_what_one_record_changes() -> None:
    """Scaled by the rows' own range, all others move when the outermost record leaves."""
    whole = table(Number(name="x", low=0, high=60000, whole=True))
    others, outermost = [[10], [20]], [60000]

    def total(codes: list[list[int]]) -> Any:
        top = max(code[0] for code in codes)
        geometry = Geometry.of(whole).clipped({"x": (0, top)})  # not released: read off the rows
        return Sums(Encoded.of(geometry)).of(chunk_of(codes))

    change = np.abs(total([*others, outermost]) - total(others)).sum()
    assert change > UNITS


def test_noise_for_one_histogram_does_not_cover_several() -> None:
    many = Geometry.of(table(*(Number(name=name, low=0, high=1) for name in "abcd")))
    statistic = ColumnHistograms(ColumnBins(many, 16))
    change = statistic.of(chunk_of([[0, 9000, 65535, 7]]))
    assert np.linalg.norm(change) == statistic.sensitivity.l2 == 2
    assert change.sum() == statistic.sensitivity.l1 == 4
    assert np.linalg.norm(change) > Sensitivity().l2, "as for a histogram of one column"


# --- bins -------------------------------------------------------------------------------------------------


@given(st.integers(2, 65535), st.integers(0, 65535), st.integers(1, 256))
def test_every_code_has_one_bin(codes: int, code: int, bins: int) -> None:
    column = Number(name="x", low=0, high=codes - 1, whole=True)
    view = ColumnBins(Geometry.of(table(column)), bins)
    (found,) = view.of(chunk_of([[code]]))[0]
    assert found == min(code, codes - 1) * bins // codes
    assert 0 <= found < bins


def test_bins_need_a_column_on_a_line() -> None:
    with pytest.raises(ValueError, match="on a line"):
        ColumnBins(Geometry.of(table(WARD, SMOKER)), 8)


def test_dates_and_numbers_have_bins_and_levels_have_none() -> None:
    born = Date(name="born", low="1950-01-01", high="2020-01-01")
    view = ColumnBins(Geometry.of(table(AGE, WARD, born, SMOKER)), 8)
    assert [line.column.name for line in view.lines] == ["age", "born"]
