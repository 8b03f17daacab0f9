"""The geometry of a job on a table: what may be chosen, and what centres are in the curator's words."""

import json
import math

import numpy as np
import pytest

from core.data import Boolean, Category, Date, Geometry, Number, Table
from core.data.profiles import describe, ranges_of
from core.errors import InvalidRequest

TABLE = Table(
    declared=(
        Number(name="age", low=0, high=100, whole=True, weight=2.0),
        Number(name="cost", low=1, high=10_000, log=True),
        Category(name="ward", levels=("a", "b", "c")),
        Boolean(name="smoker"),
        Date(name="visit", low="2030-01-01", high="2030-12-31"),
        Number(name="bmi", low=10, high=60, role="keep"),
    ),
    size=1000,
)
GEOMETRY = Geometry.of(TABLE)


def centre_at(**codes: float) -> np.ndarray:
    """The coordinates of a record."""
    row = [codes.get(column.name, 0) for column in TABLE.stored]
    return GEOMETRY.rows(np.array([row], dtype=np.uint16)).astype(np.float64)


def test_by_default_all_columns_to_cluster_on_are_taken_with_their_weights() -> None:
    assert GEOMETRY.chosen == ("age", "cost", "ward", "smoker", "visit")
    assert GEOMETRY.weights == (2.0, 1.0, 1.0, 1.0, 1.0)
    assert GEOMETRY.columns == ("age", "cost", "ward=a", "ward=b", "ward=c", "smoker", "visit")
    assert GEOMETRY.dimension == len(GEOMETRY.columns)


def test_a_request_chooses_columns_and_weights() -> None:
    some = Geometry.of(TABLE, ["smoker", "age"], {"smoker": 3})
    assert some.choices == {
        "columns": ["age", "smoker"],
        "weights": {"age": 2.0, "smoker": 3.0},
        "scaling": "declared",
    }
    assert Geometry.from_json(TABLE, json.loads(json.dumps(some.choices))) == some


@pytest.mark.parametrize(
    ("columns", "weights", "scaling", "parameter"),
    [
        (["height"], {}, "declared", "columns"),
        (["bmi"], {}, "declared", "columns"),
        ([], {}, "declared", "columns"),
        (["age", "age"], {}, "declared", "columns"),
        (["age"], {"ward": 1.0}, "declared", "weights"),
        (["age"], {"age": 0.0}, "declared", "weights"),
        (["age"], {"age": math.nan}, "declared", "weights"),
        (["age"], {}, "unit", "scaling"),
    ],
)
def test_choices_that_make_no_sense_are_refused_by_name(
    columns: list[str], weights: dict[str, float], scaling: str, parameter: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        Geometry.of(TABLE, columns, weights, scaling)
    assert refusal.value.parameter == parameter


def test_a_centre_speaks_the_kinds_of_its_columns() -> None:
    records = [centre_at(age=40, cost=0, ward=0, smoker=0), centre_at(age=60, cost=65534, ward=1, smoker=1)]
    middle = GEOMETRY.decode((records[0] + records[1]) / 2)
    ((age, cost, ward, smoker, visit),) = describe(GEOMETRY, middle, None, "means")
    assert age == {
        "column": "age",
        "kind": "number",
        "measure": "mean",
        "value": pytest.approx(50, abs=0.01),
        "noise": None,
    }
    assert cost["measure"] == "geometric mean"
    assert cost["value"] == pytest.approx(100, rel=0.01)
    assert ward["shares"] == {"a": pytest.approx(0.5), "b": pytest.approx(0.5), "c": pytest.approx(0)}
    assert smoker["measure"] == "rate"
    assert smoker["value"] == pytest.approx(0.5)
    assert visit["value"] == "2030-01-01"


def test_the_noise_of_a_geometric_mean_is_a_factor() -> None:
    middle = GEOMETRY.decode(np.zeros((1, GEOMETRY.dimension)))
    deviations = np.full((1, GEOMETRY.dimension), 0.1)
    (entries,) = describe(GEOMETRY, middle, deviations, "medians")
    assert entries[0]["measure"] == "median"
    assert entries[0]["noise"] == pytest.approx(0.1)
    assert entries[1]["noise_factor"] == pytest.approx(math.exp(0.1))


def test_whatever_is_released_shares_add_up_to_one_and_values_lie_inside_the_bounds() -> None:
    wild = np.random.default_rng(3).normal(scale=60_000, size=(200, GEOMETRY.dimension))
    decoded = GEOMETRY.decode(wild)
    shares = decoded[:, 2:5]
    assert shares.min() >= 0
    assert np.allclose(shares.sum(axis=1), 1)
    assert decoded[:, 0].min() >= 0
    assert decoded[:, 0].max() <= 100
    clipped = GEOMETRY.clip(wild)
    assert np.allclose(GEOMETRY.decode(clipped), decoded), "what is clipped is where it was"
    assert np.allclose(GEOMETRY.clip(clipped), clipped)


def test_clipping_moves_to_the_nearest_shares() -> None:
    ward = Geometry.of(TABLE, ["ward"])
    (axis,) = ward.axes
    point = np.array([[9000.0, -2000.0, 500.0]])
    best = ((ward.clip(point) - point) ** 2).sum()
    draw = np.random.default_rng(5)
    for shares in draw.dirichlet([1, 1, 1], size=2000):
        other = shares * axis.height - axis.drop  # type: ignore[attr-defined]  # an axis of levels
        assert ((other - point) ** 2).sum() >= best - 1e-6


def test_units_of_error_bars_are_those_of_the_columns() -> None:
    step = GEOMETRY.decode(np.ones((1, GEOMETRY.dimension))) - GEOMETRY.decode(
        np.zeros((1, GEOMETRY.dimension))
    )
    lines = [0, 1, 5, 6]
    assert step[0, lines] == pytest.approx(GEOMETRY.unit_lengths()[lines])


def test_released_ranges_are_told_in_the_curators_values() -> None:
    clipped = GEOMETRY.clipped({"age": (20, 60), "visit": (0, 31)})
    assert ranges_of(clipped)["age"] == [20.0, 60.0]
    assert ranges_of(clipped)["visit"] == ["2030-01-01", "2030-02-01"]


def test_a_column_with_hardly_any_steps_is_warned_about() -> None:
    assert GEOMETRY.warnings == ()
    (warning,) = Geometry.of(TABLE, weights={"age": 1000, "cost": 0.5}).warnings
    assert "cost" in warning
