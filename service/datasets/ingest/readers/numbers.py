"""Numbers that are written as text, a whole column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from core.arrays import Floats
from core.columns.missing import is_missing
from core.columns.notation import Notation

_DIGITS = b"0123456789+-eE"


def read_numbers(texts: Any, notation: Notation) -> Floats:
    """Return the number of each text: NaN where it is missing, infinity where it is not a number."""
    plain = _plain_numbers(texts, notation)
    if plain is not None:
        return plain
    encoded = texts.dictionary_encode()
    numbers = [_number(text.strip(), notation) for text in encoded.dictionary.to_pylist()]
    places = encoded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    found: Floats = np.array([*numbers, np.nan])[places]
    return found


def _number(text: str, notation: Notation) -> float:
    number = notation.number(text)
    if number is None:
        return np.nan if is_missing(text) else np.inf
    return number


def _plain_numbers(texts: Any, notation: Notation) -> Floats | None:
    """Return the numbers of texts without any other sign, all at once; None where a text has one.

    Of such texts, Arrow reads no more than `Notation.number` does, and both round correctly.
    """
    buffer = texts.buffers()[2]
    if buffer is not None and buffer.to_pybytes().translate(None, _DIGITS + notation.decimal.encode()):
        return None
    empty = compute.equal(texts, "")
    if compute.any(empty).as_py():
        texts = compute.if_else(empty, pa.scalar(None, pa.string()), texts)
    try:
        written = compute.replace_substring(texts, ",", ".") if notation.decimal == "," else texts
        numbers = written.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    found: Floats = numbers.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return found
