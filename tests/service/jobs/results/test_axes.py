"""Tests of the axes by which plots draw centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.data import Dense, Geometry, Table
from core.data.tables.profiles import ranges_of
from service.jobs.results.answers import MadeUpRows
from service.jobs.results.axes import of_domain
from tests.support.service import House

COLUMNS: list[dict[str, Any]] = [
    {"kind": "number", "name": "age", "low": 0, "high": 120, "weight": 2.0},
    {"kind": "number", "name": "cost", "low": 0, "high": 1e5, "log": True, "offset": 10},
    {"kind": "category", "name": "sex", "levels": ["F", "M"], "missing": "level"},
    {"kind": "date", "name": "visited", "low": "2024-01-01", "high": "2024-12-31"},
    {"kind": "datetime", "name": "seen", "low": "2024-01-01T00:00", "high": "2024-01-02T12:00"},
    {"kind": "boolean", "name": "smoker"},
]


def hospital(**choices: Any) -> Geometry:
    table = Table.from_json({"columns": COLUMNS, "size": 100, "rows_per_person": 1})
    return Geometry.of(table, **choices)


@pytest.mark.parametrize("choices", [{}, {"columns": ["sex", "cost"], "weights": {"sex": 3.0}}])
def test_axes_of_a_table_have_its_geometry(choices: dict[str, Any]) -> None:
    geometry = hospital(**choices)
    found = of_domain(geometry, {})
    assert found["units"] == pytest.approx(geometry.unit_lengths().tolist())
    low, high = geometry.bounds_units
    ends = geometry.decode_alone(np.stack([low, high]))
    assert np.allclose([found["low"], found["high"]], ends, rtol=1e-3)


def test_scales_say_what_the_numbers_of_a_centre_are() -> None:
    found = of_domain(hospital(), {})
    assert found["scales"] == ["number", "log", *["share"] * 3, "date", "datetime", "share"]
    assert found["offsets"][1] == 10


def test_units_follow_the_ranges_that_private_scaling_released() -> None:
    geometry = hospital().clipped({"age": (0, 32767)})
    found = of_domain(hospital(), ranges_of(geometry))
    assert found["units"] == pytest.approx(geometry.unit_lengths().tolist(), rel=1e-3)


@pytest.mark.parametrize(
    ("domain", "low", "high"),
    [
        (Dense.box([0, -5, 1], [10, 5, 2], size=100), [0, -5, 1], [10, 5, 2]),
        (Dense.box([0, -5], [10, 5], size=100, scaling="none"), [0, -5], [10, 5]),
        (Dense.ball(7.5, [1, 0], dimension=2, size=100), [-6.5, -7.5], [8.5, 7.5]),
    ],
)
def test_axes_of_numbers_have_the_units_and_bounds_of_their_domain(
    domain: Dense, low: list[float], high: list[float]
) -> None:
    found = of_domain(domain, {})
    assert found["units"] == domain.unit_lengths().tolist()
    assert (found["low"], found["high"], found["scales"]) == (low, high, None)


def test_axes_and_coordinates_of_a_result_can_be_fetched(small_house: House) -> None:
    small_house.ready(planned_release=False)
    job = small_house.submit("1", k={"from": 1, "to": 3}, algorithm="auto").json()["id"]
    assert small_house.work()
    found = small_house.ada.get(f"/v1/jobs/{job}/axes").json()
    assert len(found["units"]) == len(found["low"]) == 2
    place = f"/v1/jobs/{job}/sample?n=5"
    drawn, same = (small_house.ada.get(place + each).json()["rows"] for each in ("&coordinates=true", ""))
    assert drawn == same  # of a dataset without a table


def test_made_up_rows_of_a_table_have_the_coordinates_of_their_values() -> None:
    geometry = hospital()
    codes = (
        np.random.default_rng(0).integers(0, [65535, 65535, 3, 366, 129_600, 2], (20, 6)).astype(np.uint16)
    )
    rows = MadeUpRows(geometry, codes)
    values, coordinates = rows.first(20), rows.coordinates(20)
    assert np.allclose(coordinates[:, 0], values["age"], atol=0.01)
    assert np.allclose(np.exp(coordinates[:, 1]) - 10, values["cost"], rtol=1e-3, atol=0.1)
    levels = np.array(["F", "M", "missing"])
    assert (levels[coordinates[:, 2:5].argmax(axis=1)] == values["sex"]).all()
    assert ((coordinates[:, -1] > 0.5) == values["smoker"]).all()
