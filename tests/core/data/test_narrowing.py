"""Narrower bounds of stored rows: each record clipped on its own, never beyond what noise covers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import (
    MISSING_CODE,
    UNITS,
    ArraySource,
    Chunk,
    Date,
    Dense,
    NarrowedSource,
    Number,
    Table,
    TableSource,
    column_from_json,
    narrowed,
)
from core.data.narrowing import recoded
from core.errors import InvalidDomain
from core.statistics.sums import Sums
from core.views import Encoded, clear_cache

WIDE = Dense.box([0, -100, 5], [1000, 100, 6], ["a", "b", "c"], size=1000)
NARROW: Any = narrowed(WIDE, {"a": (10, 60), "b": (-3, 4)})
TABLE = Table(
    declared=(
        Number(name="age", low=0, high=110, whole=True),
        Number(name="cost", low=1, high=1e6, log=True),
        Date(name="visited", low="2000-01-01", high="2030-12-31"),
        column_from_json({"kind": "category", "name": "ward", "levels": ["x", "y"]}),
        Number(name="bmi", low=10, high=60, role="keep"),
        Number(name="dose", low=0, high=100, missing="fill", fill=90.0),
    ),
    size=1000,
)
BOUNDS: dict[str, tuple[Any, Any]] = {
    "age": (18, 65),
    "cost": (100, 5000),
    "visited": ("2010-01-01", "2020-06-30"),
    "bmi": (20, 30.5),
    "dose": (5, 40),
}


def made_up(count: int) -> dict[str, Any]:
    draw = np.random.default_rng(3)
    return {
        "age": draw.integers(0, 111, count),
        "cost": np.exp(draw.uniform(0, 13.5, count)),
        "visited": np.datetime64("2000-01-01") + draw.integers(0, 11_000, count),
        "ward": draw.choice(["x", "y"], count),
        "bmi": np.where(draw.random(count) < 0.2, np.nan, draw.uniform(10, 60, count)),
        "dose": np.where(draw.random(count) < 0.2, np.nan, draw.uniform(0, 100, count)),
    }


def test_rows_in_a_box_are_those_of_the_narrower_domain_up_to_stored_steps() -> None:
    draw = np.random.default_rng(2)
    rows = np.column_stack([draw.gamma(2, 30, 4000), draw.normal(0, 5, 4000), draw.uniform(5, 6, 4000)])
    source = NarrowedSource(ArraySource(WIDE, rows, chunk_rows=1000), NARROW)
    found = np.concatenate([load().rows for load in source.loaders()])
    wanted = np.clip(rows, NARROW.low, NARROW.high)
    steps = WIDE.unit_lengths() + NARROW.unit_lengths()
    assert np.all(np.abs(NARROW.decode(found) - wanted) <= 1.01 * steps)
    assert [load().first for load in source.loaders()] == [0, 1000, 2000, 3000]


def test_rows_of_a_table_are_those_of_the_narrower_columns_up_to_stored_steps() -> None:
    narrow: Any = narrowed(TABLE, BOUNDS)
    columns = made_up(3000)
    (load,) = NarrowedSource(TableSource(TABLE, columns), narrow).loaders()
    found: Any = load().rows.astype(np.int64)
    (direct,) = TableSource(narrow, {**columns, "dose": np.nan_to_num(columns["dose"], nan=40)}).loaders()
    wanted: Any = direct().rows.astype(np.int64)
    # Whole numbers, days and levels are exact; other steps are as wide as they were stored.
    assert np.abs(found - wanted).max(axis=0).tolist() <= [0, 2, 0, 0, 3, 2]
    assert np.array_equal(found[:, 4] == MISSING_CODE, np.isnan(columns["bmi"]))


@given(
    st.lists(st.lists(st.integers(-(1 << 15), (1 << 15) - 1), min_size=3, max_size=3), min_size=1, max_size=9)
)
def test_no_record_is_longer_than_noise_is_calibrated_to_whatever_was_stored(values: list[list[int]]) -> None:
    found = recoded(np.array(values, dtype=np.int16), WIDE, NARROW).astype(np.int64)
    assert int((found**2).sum(axis=1).max()) <= UNITS**2
    alone = [recoded(np.array([each], dtype=np.int16), WIDE, NARROW)[0].tolist() for each in values]
    assert found.tolist() == alone  # each record on its own


def test_a_twin_that_does_not_clip_exceeds_the_sensitivity() -> None:
    """The same scale without the clip: one record moves a sum further than its noise covers."""
    outlier = WIDE.encode([[1000.0, 100.0, 5.5]])
    unclipped = np.trunc((WIDE.decode(outlier) - NARROW.decode(np.zeros((1, 3)))) / NARROW.unit_lengths())
    statistic = Sums(Encoded.of(NARROW))
    moved = {
        name: float(np.linalg.norm(np.asarray(statistic.of(Chunk(rows, 0, name)), dtype=np.float64)))
        for name, rows in (
            ("clipped", recoded(outlier, WIDE, NARROW)),
            ("twin", np.clip(unclipped, -(1 << 15), (1 << 15) - 1).astype(np.int16)),
        )
    }
    sensitivity = statistic.sensitivity.l2 * float(statistic.sensitivity.scales[0])
    assert moved["clipped"] <= sensitivity < moved["twin"]


def test_derived_rows_are_cached_under_their_own_domain() -> None:
    source = ArraySource(WIDE, np.zeros((3, 3)) + 5)
    keys = {
        NarrowedSource(source, domain).loaders()[0].key
        for domain in (NARROW, narrowed(WIDE, {"a": (10, 61)}))
    }
    assert len(keys | {source.loaders()[0].key}) == 3
    assert NARROW.fingerprint != WIDE.fingerprint


def test_the_same_stored_bytes_in_other_bounds_are_other_records() -> None:
    """A process that served two datasets would otherwise take rows of one for rows of the other."""
    clear_cache()
    other = replace(WIDE, high=tuple(2 * each for each in WIDE.high or ()))
    encoded = np.array([[3000, -2000, 1000]], dtype=np.int16)
    rows = []
    for stored in (WIDE, other):
        source: Any = ArraySource(stored, stored.decode(encoded))
        loader = replace(source.loaders()[0], source="the same")
        narrow: Any = NarrowedSource(source, NARROW).loaders()[0]
        rows.append(replace(narrow, loader=loader)().rows.tolist())
    assert rows[0] != rows[1]


def test_values_are_looked_up_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_cache()
    (load,) = NarrowedSource(ArraySource(WIDE, np.zeros((3, 3)) + 5), NARROW).loaders()
    first = load().rows
    monkeypatch.setattr("core.data.narrowing.recoded", lambda *_: pytest.fail("looked up again"))
    assert load().rows is first


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        ({"age": (-1, 20)}, "inside the declared ones"),
        ({"age": (20, 20)}, "low must be below high"),
        ({"age": (1.5, 20)}, "whole"),
        ({"age": ("x", 20)}, "numbers"),
        ({"age": (20, 21)}, "narrower than 2 of the steps"),
        ({"bmi": (20, 20 + 1e-9)}, "narrower than 2 of the steps"),
        ({"visited": ("2010-01-01", "soon")}, "such as"),
        ({"visited": ("1999-12-31", "2020-01-01")}, "inside the declared ones"),
        ({"ward": (0, 1)}, "only numbers, dates and times"),
    ],
)
def test_other_bounds_are_refused(bounds: dict[str, tuple[Any, Any]], problem: str) -> None:
    with pytest.raises(InvalidDomain, match=problem):
        narrowed(TABLE, bounds)


def test_a_ball_has_no_bounds_of_single_columns() -> None:
    with pytest.raises(InvalidDomain, match="in a box"):
        narrowed(Dense.ball(3, dimension=2, size=10), {"x0": (0, 1)})
