"""The contract of kinds of columns: every kind in the registry declares all that its columns need."""

import json
from typing import Any

import numpy as np
import pytest

from core.columns.base import MISSING, ROLES, Column, StoredColumn
from core.columns.cells import Cells
from core.columns.notation import Notation
from core.columns.reading import Fault
from core.columns.registry import KINDS, column_from_json, propose
from core.data import Geometry, Table

NAMES = list(KINDS)
COLUMNS = {name: column_from_json({"kind": name, **kind.example}) for name, kind in KINDS.items()}
STORED = {name: column for name, column in COLUMNS.items() if isinstance(column, StoredColumn)}
#: What no kind but text can read.
NONSENSE = "\x7f?"


def declared(name: str, **facts: Any) -> Column:
    return column_from_json({"kind": name, **KINDS[name].example, **facts})


def alone(column: StoredColumn, **others: Any) -> Geometry:
    """The geometry of a table with this column only."""
    return Geometry.of(Table(declared=(column,), size=100), **others)


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_has_a_name_for_programs_one_for_people_and_a_sentence(name: str) -> None:
    kind = KINDS[name]
    assert kind.kind == name
    assert kind.title
    assert (kind.__doc__ or "").partition("\n")[0].endswith(".")
    assert COLUMNS[name].words


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_kind_is_a_column_that_json_describes(name: str) -> None:
    column = COLUMNS[name]
    assert column_from_json(json.loads(json.dumps(column.to_json()))) == column


@pytest.mark.parametrize("name", NAMES)
def test_roles_and_uses_of_missing_values_are_among_those_that_exist(name: str) -> None:
    assert set(KINDS[name].roles) <= set(ROLES)
    assert set(KINDS[name].missing_choices()) <= set(MISSING)
    for role in KINDS[name].roles:
        assert declared(name, role=role, missing="").role == role


@pytest.mark.parametrize("gap", ["", " ", "NA", "nan", "null", "None", "N/A", "<NA>", None, float("nan")])
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_takes_the_same_spellings_for_missing_values(name: str, gap: Any) -> None:
    found = COLUMNS[name].read([gap])
    assert found.faults.tolist() == [Fault.MISSING]


@pytest.mark.parametrize("name", STORED)
def test_what_cannot_be_read_has_a_reason(name: str) -> None:
    found = STORED[name].read([NONSENSE])
    assert found.faults.tolist() in ([Fault.UNREADABLE], [Fault.UNKNOWN])
    assert STORED[name].problem(NONSENSE, Notation()).startswith("is n")


@pytest.mark.parametrize("name", STORED)
def test_every_code_reads_back_from_the_value_that_it_stands_for(name: str) -> None:
    column = STORED[name]
    codes = np.unique(np.linspace(0, column.codes - 1, 300).astype(np.uint16))
    values = column.values(codes)
    assert len(values) == len(codes)
    assert np.array_equal(column.read(values).codes, codes)


@pytest.mark.parametrize(
    ("name", "missing"),
    [(name, each) for name in STORED for each in ("keep", "level") if each in KINDS[name].missing_choices()],
)
def test_a_missing_value_that_is_stored_has_a_code_of_its_own(name: str, missing: str) -> None:
    column = declared(name, missing=missing, role="keep")
    assert isinstance(column, StoredColumn)
    found = column.read(np.array([None], dtype=object))
    assert found.usable.tolist() == [True]
    assert found.codes[0] >= STORED[name].codes


@pytest.mark.parametrize("name", STORED)
def test_no_coordinates_are_longer_than_the_kind_says(name: str) -> None:
    column = STORED[name]
    axis = column.axis(0, 1000.0, (0, column.codes - 1))
    codes = np.arange(column.codes, dtype=np.uint16)
    coordinates = axis.coordinates(codes).astype(np.int64)
    longest = int((coordinates**2).sum(axis=1).max())
    assert coordinates.shape == (column.codes, column.width)
    assert len(axis.names) == column.width
    assert longest <= axis.longest
    assert axis.longest == pytest.approx(1000.0**2 * column.longest, rel=0.01)
    low, high = axis.bounds
    assert ((low <= coordinates) & (coordinates <= high)).all()


@pytest.mark.parametrize("name", STORED)
def test_made_up_records_of_a_point_have_codes_of_the_column(name: str) -> None:
    geometry = alone(STORED[name])
    draw = np.random.default_rng(4)
    points = geometry.clip(geometry.scatter(50, draw))
    codes = geometry.codes(points, draw)
    assert codes.max() < STORED[name].codes
    assert np.abs(geometry.coordinates(codes)).max() <= np.abs(np.concatenate(geometry.bounds_units)).max()


@pytest.mark.parametrize("name", STORED)
def test_a_released_centre_is_a_closed_vocabulary_of_json(name: str) -> None:
    column, geometry = STORED[name], alone(STORED[name])
    (centre,) = geometry.decode(np.zeros((1, geometry.dimension)))
    entry = column.entry(centre.tolist(), 0.1, "mean")
    assert json.loads(json.dumps(entry)) == entry
    assert entry.keys() <= {"measure", "value", "shares", "noise", "noise_factor"}
    assert ("shares" in entry) != ("value" in entry)


@pytest.mark.parametrize("most", [1, 7, 100])
@pytest.mark.parametrize("name", STORED)
def test_bins_hold_every_code_once(name: str, most: int) -> None:
    column, cuts = STORED[name], STORED[name].cut(most)
    assert (cuts.edges[0], cuts.edges[-1]) == (0, column.codes)
    assert all(first < second for first, second in zip(cuts.edges, cuts.edges[1:], strict=False))
    if column.level_names is None:
        assert len(cuts.starts) == len(cuts.ends) == len(cuts.middles) + 1 == len(cuts.edges) <= most + 1
        assert json.dumps([column.edge(place) for place in cuts.starts])
    else:
        assert len(column.level_names) == len(cuts.edges) - 1


@pytest.mark.parametrize("name", STORED)
def test_moments_of_bins_have_an_entry_for_each_group(name: str) -> None:
    column, cuts = STORED[name], STORED[name].cut(4)
    middle = float(np.mean(cuts.middles or (0.0,)))
    for values in column.moments([None, middle], [None, 0.0]).values():
        assert len(values) == 2
        assert values[0] is None
        assert json.dumps(values)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_proposed_for_a_columns_own_values_can_be_declared(name: str) -> None:
    column = COLUMNS[name]
    texts = ["a", "b", "c"]
    if isinstance(column, StoredColumn):
        codes = np.linspace(0, column.codes - 1, 4).astype(np.uint16)
        texts = [str(value) for value in column.values(np.tile(codes, 5)).tolist()]
    proposed = KINDS[name].propose(Cells("value", texts))
    assert proposed is not None
    made = column_from_json({"kind": name, "name": "value", **proposed.facts})
    assert not (isinstance(column, StoredColumn) and made.read(texts).faults.any())
    assert proposed.known <= proposed.facts.keys()


def test_some_kind_fits_any_cells() -> None:
    for texts in ([], [""], ["a"] * 9, ["1"], ["2024-01-01", "x"], [NONSENSE]):
        kind, _ = propose(Cells("value", texts))
        assert kind in KINDS.values()
