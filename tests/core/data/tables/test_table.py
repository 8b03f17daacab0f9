"""Tables: which columns rows keep, and which rows can be kept."""

import json

import numpy as np
import pytest

from core.data import Boolean, Category, Column, Number, Table, Text
from core.errors import InvalidDomain

AGE = Number(name="age", low=0, high=110, whole=True)
BMI = Number(name="bmi", low=10, high=60, role="keep")
REGION = Category(name="region", levels=("north", "south"))
PATIENT = Text(name="patient", role="id")
NOTE = Text(name="note")


def table(*columns: Column) -> Table:
    return Table(declared=columns, size=100)


def test_rows_keep_what_is_clustered_on_or_kept_for_questions() -> None:
    kept = table(PATIENT, AGE, NOTE, BMI, REGION)
    assert kept.columns == ("age", "bmi", "region")
    assert kept.dimension == 3
    assert kept.id_column == "patient"


def test_a_gap_in_a_column_kept_for_questions_leaves_nobody_out() -> None:
    kept = table(AGE, BMI, REGION)
    readings = {
        "age": AGE.read([30, 40, 50]),
        "bmi": BMI.read([np.nan, 20, np.nan]),
        "region": REGION.read(["north", "east", "south"]),
    }
    rows, usable = kept.rows(readings)
    assert rows.dtype == np.uint16
    assert usable.tolist() == [True, False, True], "an undeclared level cannot be stored"
    assert rows[0].tolist() == [30, 65535, 0]


def test_a_table_is_known_by_all_that_was_declared() -> None:
    first = table(AGE, REGION)
    assert Table.from_json(json.loads(json.dumps(first.to_json()))) == first
    heavier = table(AGE, Category(name="region", levels=("north", "south"), weight=2.0))
    assert heavier.fingerprint != first.fingerprint


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ((), "between 1 and 1000"),
        ((AGE, AGE), "same name"),
        ((BMI, PATIENT), "used for clustering"),
        ((AGE, PATIENT, Text(name="other", role="id")), "only one column"),
    ],
)
def test_tables_that_make_no_sense_are_refused(columns: tuple[Column, ...], says: str) -> None:
    with pytest.raises(InvalidDomain, match=says):
        table(*columns)


def test_a_column_of_booleans_is_enough() -> None:
    assert table(Boolean(name="smoker")).dimension == 1
