"""The geometry of a job on a table: what may be chosen, and what centres are in the curator's words."""

import json
import math

import numpy as np
import pytest

from core.data import Boolean, Category, Date, Geometry, Number, Table
from core.data.tables.geometry import fair_weights
from core.data.tables.profiles import describe, ranges_of, records
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
    assert Geometry.of(TABLE, weights=fair_weights(TABLE, None)).warnings == ()
    *_, warning = Geometry.of(TABLE, weights={"age": 1000, "cost": 0.5}).warnings
    assert "cost, visit keep fewer than" in warning


def test_columns_that_outweigh_the_numbers_are_named_with_their_factor() -> None:
    (warning,) = Geometry.of(TABLE, ("age", "ward", "smoker"), {"age": 1.0}).warnings
    assert warning.startswith("smoker, ward outweigh age and will decide the clusters")
    assert "counts 6 times as much as one in age" in warning
    assert Geometry.of(TABLE, ("ward", "smoker")).warnings == ()


def test_fair_weights_follow_from_kinds_alone() -> None:
    fair = {"age": 1.0, "cost": 1.0, "ward": 0.16, "smoker": 0.16, "visit": 0.38}
    assert fair_weights(TABLE, None) == fair
    assert fair_weights(TABLE, ("age", "ward")) == {"age": 1.0, "ward": 0.16}


# --- made-up records ----------------------------------------------------------------------------------------


def test_made_up_records_keep_the_mean_of_their_points_in_every_kind() -> None:
    """A share is a chance, and a place between two codes one of both: means are off by 5 deviations at most.

    Of 20 means of 40,000 draws one is off by more than 5.7 deviations with a chance below 1e-6.
    """
    points = GEOMETRY.clip(np.random.default_rng(7).uniform(-20_000, 20_000, (3, GEOMETRY.dimension)))
    drawn = np.repeat(points, 40_000, axis=0)
    codes = GEOMETRY.codes(drawn, np.random.default_rng(8))
    for row in range(3):
        found = GEOMETRY.coordinates(codes[row * 40_000 : (row + 1) * 40_000])
        off = np.abs(found.mean(axis=0) - points[row])
        # Coordinates are truncated towards zero, by less than one unit.
        assert (off <= 5.7 * found.std(axis=0) / math.sqrt(40_000) + 1).all()


def test_made_up_records_have_values_of_the_columns_kinds() -> None:
    codes = np.array([[0, 0, 0, 0, 0], [100, 65_535, 2, 1, 364], [31, 32_768, 1, 0, 59]], dtype=np.uint16)
    found = records(GEOMETRY, codes)
    assert found["age"].tolist() == [0, 100, 31]
    assert found["age"].dtype.kind == "i"
    assert found["cost"].tolist() == pytest.approx([1, 10_000, 100], rel=1e-3)
    assert found["ward"].tolist() == ["a", "c", "b"]
    assert found["smoker"].tolist() == [False, True, False]
    assert [str(day) for day in found["visit"]] == ["2030-01-01", "2030-12-31", "2030-03-01"]


def test_a_made_up_record_is_coded_as_the_record_it_looks_like() -> None:
    codes = np.array([[17, 9000, 2, 1, 200]], dtype=np.uint16)
    row = GEOMETRY.rows(np.array([[17, 9000, 2, 1, 200, 0]], dtype=np.uint16)).astype(np.float64)
    np.testing.assert_array_equal(GEOMETRY.coordinates(codes), row)


def test_ends_of_intervals_are_decoded_coordinate_by_coordinate() -> None:
    """Moved to the nearest shares, the low ends would add up to one and lie above the shares themselves."""
    centre = centre_at(ward=1) * 0.5
    low, middle, high = (GEOMETRY.decode_alone(centre + side) for side in (-2000.0, 0.0, 2000.0))
    assert ((low <= middle) & (middle <= high)).all()
    assert low[0, 2:5].sum() < 1 < high[0, 2:5].sum()
    assert (low[:, 2:6] >= 0).all()
    assert (high[:, 2:6] <= 1).all()


def test_the_unit_of_length_is_that_of_the_weights() -> None:
    for geometry in (GEOMETRY, Geometry.of(TABLE, ["ward"], {"ward": 4.0}), Geometry.of(TABLE, ["age"])):
        ends = [np.zeros(6, np.uint16), np.array([column.codes - 1 for column in TABLE.stored], np.uint16)]
        apart = np.diff(geometry.rows(np.array(ends)).astype(np.float64), axis=0)
        across = float(np.linalg.norm(apart)) * geometry.unit_length
        assert across == pytest.approx(math.hypot(*geometry.weights), rel=1e-3)
