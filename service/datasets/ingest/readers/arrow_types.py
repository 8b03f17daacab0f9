"""Types of Arrow, as the kinds of columns speak of them."""

from typing import Any

import pyarrow as pa

from core.columns.cells import FileType


def _values_of(kind: Any) -> Any:
    """Return the type of the values of a dictionary, and any other type as it is."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: Any) -> bool:
    """Return True for text, also in a dictionary."""
    kind = _values_of(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def has_lengths(kind: Any) -> bool:
    """Return True for text and bytes of any length."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def file_type(kind: Any) -> FileType | None:
    """Return what columns are told about values of a type; None for one whose values no column holds."""
    kind = _values_of(kind)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "moment"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "text" if is_text(kind) or pa.types.is_null(kind) else None
