"""Tables as people hold them: lists, numpy arrays, sparse matrices, pandas DataFrames."""

from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt


def is_frame(data: Any) -> bool:
    """Recognise a pandas DataFrame without importing pandas."""
    return hasattr(data, "columns") and hasattr(data, "loc")


def array_of(rows: Any, columns: Sequence[str]) -> npt.NDArray[np.float64]:
    """Rows as a two-dimensional array; the columns of a DataFrame are picked by name."""
    if is_frame(rows):
        missing = [name for name in columns if name not in rows.columns]
        if missing:
            raise ValueError(f"the rows lack the columns {', '.join(missing)}")
        rows = rows[list(columns)].to_numpy(dtype=np.float64)
    elif hasattr(rows, "toarray"):
        rows = rows.toarray()
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(columns):
        more = ", ..." if len(columns) > 10 else ""
        raise ValueError(f"rows must be a table with the columns {', '.join(columns[:10])}{more}")
    if not np.isfinite(table).all():
        raise ValueError("the rows hold missing or infinite values: remove or fill them first")
    return table


def write_frame(frame: Any, file: IO[bytes]) -> None:
    """Write a DataFrame as CSV, which keeps every digit and needs no further library."""
    types = dict.fromkeys(frame.select_dtypes(include=["bool", "boolean"]).columns, "Int8")
    # Whole numbers become floats in pandas where some are missing.
    types |= {name: "Int64" for name in frame.select_dtypes(include=["float"]).columns if _whole(frame[name])}
    frame.astype(types).to_csv(file, index=False, mode="wb")


def _whole(numbers: Any) -> bool:
    known = numbers.dropna().to_numpy(dtype=np.float64)
    return bool(
        len(known) < len(numbers) and np.all(np.abs(known) < 2**53) and np.all(known == np.rint(known))
    )
