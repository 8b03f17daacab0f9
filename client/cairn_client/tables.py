"""Tables as people hold them: lists, numpy arrays, sparse matrices, pandas DataFrames."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import IO, Any

import numpy as np
import numpy.typing as npt

#: Whole numbers up to this one are floats without rounding.
_LARGEST_WHOLE = 2**53
_ROWS_PER_BATCH = 1 << 16
_BREAKS = re.compile(r"[\r\n\0]")


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


def write_frame(frame: Any, file: IO[bytes], reading: Mapping[str, Any]) -> str:
    """Write a DataFrame without its index and return the media type: Arrow if pyarrow is installed, else CSV.

    What a cell becomes follows from that cell alone: a gap in one row makes pandas store whole numbers as
    floats and booleans as objects, which changes nothing here. `reading` is how the dataset reads text.
    """
    if find_spec("pyarrow") is None:
        write_csv(frame, file, reading)
        return "text/csv"
    write_arrow(frame, file)
    return "application/vnd.apache.arrow.file"


def write_arrow(frame: Any, file: IO[bytes]) -> None:
    """Write a DataFrame as an Arrow file, column by column."""
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    table = pa.table([_as_arrow(frame.iloc[:, place]) for place in range(len(names))], names=names)
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=_ROWS_PER_BATCH)


def _as_arrow(column: Any) -> Any:
    """A column as numbers or times; as text where a cell is anything else.

    The service reads a number alike whether it comes as a whole number, a float or text.
    """
    import pyarrow as pa

    kind = column.dtype.kind
    if kind in "biufM":
        values = pa.array(column, from_pandas=True)
        return values.cast({"b": pa.int8(), "f": pa.float64()}.get(kind, values.type))
    cells = _cells(column)
    if all(cell is None or _is_number(cell) for cell in cells):
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return pa.array([None if cell is None else _spelled(cell) for cell in cells], pa.string())


def write_csv(frame: Any, file: IO[bytes], reading: Mapping[str, Any]) -> None:
    """Write a DataFrame as delimited text that the dataset reads as declared."""
    decimal = reading.get("decimal") or "."
    encoding = reading.get("encoding") or "utf-8"
    text = io.TextIOWrapper(file, encoding, "replace", newline="", write_through=True)
    writer = csv.writer(text, delimiter=reading.get("separator") or ",", lineterminator="\n")
    writer.writerow(_on_one_line(str(name)) for name in frame.columns)
    columns = (_cells(frame.iloc[:, place]) for place in range(frame.shape[1]))
    texts = [
        ["" if cell is None else _on_one_line(_spelled(cell, decimal)) for cell in each] for each in columns
    ]
    writer.writerows(zip(*texts, strict=True))
    text.detach()


def _cells(column: Any) -> list[Any]:
    """The values of a column as Python has them, None where one is missing."""
    gaps = column.isna().tolist()
    return [None if gap else cell for cell, gap in zip(column.tolist(), gaps, strict=True)]


def _is_number(cell: Any) -> bool:
    """Return True for a number that a float holds exactly."""
    if isinstance(cell, int | np.integer):
        return abs(int(cell)) <= _LARGEST_WHOLE
    return isinstance(cell, bool | np.bool_ | float | np.floating)


def _spelled(cell: Any, decimal: str = ".") -> str:
    """A cell as text: whole numbers without a point, booleans as 1 and 0, times in ISO 8601."""
    if isinstance(cell, bool | np.bool_):
        return str(int(cell))
    if isinstance(cell, float | np.floating):
        number = float(cell)
        return str(int(number)) if number.is_integer() else repr(number).replace(".", decimal)
    return str(cell.isoformat() if hasattr(cell, "isoformat") else cell)


def _on_one_line(text: str) -> str:
    """A text whose line breaks, which no level has, cannot end a record."""
    return _BREAKS.sub("\ufffd", text)
