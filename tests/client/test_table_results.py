"""Results of tables in the analyst's hands: rows of all kinds are labelled and plotted."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from cairn_client import Result
from cairn_client.plotting import map_of
from cairn_client.wire import ResultFacts
from core.data import Boolean, Category, Date, DateTime, Geometry, Number, Table, TableSource
from core.data.tables.profiles import describe, ranges_of

TABLE = Table(
    declared=(
        Number(name="age", low=0, high=110, whole=True),
        Number(name="cost", low=0, high=1_000_000, log=True, offset=10, weight=2.0),
        Number(name="bmi", low=10, high=60, missing="fill", fill=25.0),
        Category(name="region", levels=("north", "south", "east"), other="east", weight=0.4),
        Category(name="ward", levels=("1", "2"), missing="level"),
        Boolean(name="smoker", weight=0.3),
        Date(name="visited", low="2024-01-01", high="2024-12-31"),
        DateTime(name="seen", low="2024-01-01", high="2024-12-31"),
    ),
    size=500,
)


def rows(count: int = 500) -> pandas.DataFrame:
    draw = np.random.default_rng(8)
    days = [date(2023, 12, 1) + timedelta(days=int(day)) for day in draw.integers(0, 420, count)]
    return pandas.DataFrame(
        {
            "age": draw.integers(-5, 120, count),
            "cost": np.exp(draw.normal(7, 3, count)),
            "bmi": np.where(draw.random(count) < 0.1, np.nan, draw.normal(27, 9, count)),
            "region": draw.choice(["north", "south", "east", "mars"], count),
            "ward": draw.choice(np.array(["1", "2", None], dtype=object), count),
            "smoker": draw.choice(["yes", "no", "True", "0"], count),
            "visited": days,
            "seen": pandas.to_datetime(days) + pandas.Timedelta(hours=7),
            "note": "not clustered on",
        }
    )


def result_of(geometry: Geometry, points: Any) -> Result:
    """A result with these centres, given in the geometry's units."""
    centres = geometry.decode(points)
    facts = {
        "job": "6f1c", "dataset": "patients", "rehearsal": False, "algorithm": "summit", "objective": "means",
        "columns": list(geometry.columns), "centres": centres.tolist(), "sizes": [100.0] * len(centres),
        "profiles": describe(geometry, centres, None, "means"), "draws": {}, "receipt": "",
        "details": {} if geometry.ranges is None else {"ranges": ranges_of(geometry)},
        "privacy": {"epsilon": "1", "delta": "0"},
    }  # fmt: skip
    return Result(ResultFacts(**facts), {"domain": json.loads(json.dumps(geometry.to_json())), "steps": []})


@pytest.mark.parametrize("scaled", [False, True])
def test_labels_are_those_of_the_service_s_own_encoding(scaled: bool) -> None:
    geometry = Geometry.of(TABLE, weights={"age": 3.0})
    if scaled:
        geometry = geometry.clipped({"age": (20, 80), "cost": (9000, 40_000), "visited": (100, 200)})
    frame = rows()
    source = TableSource(TABLE, {name: frame[name].to_numpy() for name in TABLE.columns})
    encoded = geometry.rows(np.concatenate([each().rows for each in source.loaders()])).astype(np.float64)
    assert len(encoded) == len(frame)
    centres = geometry.clip(np.random.default_rng(2).uniform(-20_000, 20_000, (4, geometry.dimension)))
    squared = ((encoded[:, None] - centres[None]) ** 2).sum(axis=2)
    first, second = np.sort(squared, axis=1)[:, :2].T
    clear = second - first > 1e-3 * squared.max()
    assert clear.mean() > 0.9
    found = result_of(geometry, centres)
    assert (found.predict(frame) == squared.argmin(axis=1))[clear].all()
    listed = frame[list(TABLE.columns)].to_numpy(dtype=object).tolist()
    np.testing.assert_array_equal(found.predict(listed), found.predict(frame))


def test_rows_are_read_with_the_chosen_columns_alone() -> None:
    geometry = Geometry.of(TABLE, ["age", "region"])
    found = result_of(geometry, geometry.scatter(3, np.random.default_rng(0)))
    assert found.predict(rows()[["region", "age"]]).shape == (500,)
    with pytest.raises(ValueError, match="the rows lack the column region"):
        found.predict({"age": [1, 2]})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": ["old"]}, "column age: 'old' is not a number"),
        ({"age": [None]}, "column age: 1 rows have no value: fill them, or leave them out"),
        ({"smoker": ["perhaps"]}, "column smoker: 'perhaps' is not true or false"),
        ({"visited": ["31/12/2024"]}, "column visited: '31/12/2024' is not a moment such as 2030-12-31"),
        ({"ward": ["9"]}, r"column ward: '9' is not one of its levels \(1, 2, missing\)"),
    ],
)
def test_a_value_that_cannot_be_labelled_is_named_with_its_column(
    changes: dict[str, list[Any]], words: str
) -> None:
    geometry = Geometry.of(TABLE)
    row = {name: values[:1].tolist() for name, values in rows().items() if name in TABLE.columns}
    with pytest.raises(ValueError, match=words):
        result_of(geometry, geometry.scatter(2, np.random.default_rng(0))).predict({**row, **changes})


def test_made_up_rows_are_labelled_as_they_come() -> None:
    from core.data.tables.profiles import records

    geometry = Geometry.of(TABLE)
    draw = np.random.default_rng(1)
    points = geometry.scatter(50, draw)
    found = result_of(geometry, points[:5])
    labels = found.predict(records(geometry, geometry.codes(points, draw)))
    assert labels[:5].tolist() == [0, 1, 2, 3, 4]


def test_a_plot_of_a_table_writes_values_of_its_kinds(tmp_path: Path) -> None:
    wide = Geometry.of(TABLE)
    figure = result_of(wide, wide.scatter(4, np.random.default_rng(3))).plot()
    assert [axes.get_title() for axes in figure.axes][1].startswith("profiles")
    figure.savefig(tmp_path / "wide.png")
    narrow = Geometry.of(TABLE, ["cost", "visited"])
    found = result_of(narrow, np.array([[-20_000.0, -9000.0], [15_000.0, 9000.0]]))
    assert map_of(found)[1] == ("cost", "visited")
    axes = found.plot().axes[0]
    figure.savefig(tmp_path / "narrow.png")
    assert axes.xaxis.get_major_formatter()(np.log(1010.0), 0) == "1e+03"
    assert axes.yaxis.get_major_formatter()(19_800.0, 0) == "2024-03-18"
