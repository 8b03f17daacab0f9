"""Tables from a folder of CSV files, for the comparison of plans for few records."""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.modest_tables import cells, numeric


def written(folder: Path, rows: int) -> Path:
    """A table with numbers, a yes/no column and a text column, whose first column is a row number."""
    draw, path = np.random.default_rng(0), folder / "table.csv"
    columns: dict[str, object] = {name: draw.normal(size=rows) for name in "abc"}
    columns |= {"yes": draw.integers(2, size=rows), "text": ["x"] * rows}
    pd.DataFrame(columns).to_csv(path)
    return path


def test_numeric_columns_with_more_than_two_values_are_kept_and_scaled(tmp_path: Path) -> None:
    rows = numeric(written(tmp_path, 1000))
    assert rows is not None
    assert rows.shape == (1000, 3)
    assert np.abs(np.median(rows, axis=0) - 0.5).max() < 0.1


def test_short_tables_are_passed_over(tmp_path: Path) -> None:
    assert numeric(written(tmp_path, 100)) is None


def test_only_what_is_planned_as_few_records_is_asked(tmp_path: Path) -> None:
    path = written(tmp_path, 1000)
    rows = numeric(path)
    assert rows is not None
    assert all(cell.has_few_records for cell, _ in cells(path, rows))
