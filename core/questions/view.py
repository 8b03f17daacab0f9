"""Views of answers: the closed vocabulary that console, CSV files and notebooks draw."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar

#: Numbers beyond these are written with a power of ten.
_LARGE = 1e7
_SMALL = 1e-4
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Sentence:
    """A sentence, between other parts or above them."""

    type: ClassVar[str] = "sentence"

    text: str


@dataclass(frozen=True)
class Estimate:
    """A number whose 95% interval reaches `margin` to either side."""

    value: float
    margin: float


@dataclass(frozen=True)
class Heading:
    """The heading of a column, and how numbers below it are written: count, number; text has none."""

    name: str
    format: str = "text"


@dataclass(frozen=True)
class Grid:
    """Rows of texts, numbers and estimates, a cell for each heading."""

    type: ClassVar[str] = "table"

    title: str
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Series:
    """Counts or shares, a bar each; `total` is what the longest bar could hold."""

    name: str
    values: Sequence[float]
    total: float


@dataclass(frozen=True)
class Bars:
    """Histograms next to each other, of the same bins."""

    type: ClassVar[str] = "bars"

    title: str
    bins: Sequence[str]
    series: Sequence[Series]


Part = Sentence | Grid | Bars


@dataclass(frozen=True)
class Lines:
    """An answer as a line for each released number: what a CSV file or a data frame holds."""

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]


def to_json(part: Part) -> dict[str, Any]:
    """A part of a view as JSON, with its type."""
    return {"type": part.type, **asdict(part)}


def number_text(value: float, digits: int = 4) -> str:
    """A number with this many significant digits, and commas between thousands."""
    if value == 0:
        return "0"
    if not _SMALL <= abs(value) < _LARGE:
        mantissa, exponent = f"{value:.{digits - 2}e}".split("e")
        return f"{float(mantissa):g}×10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count_text(value: float) -> str:
    """A noisy count as a whole number."""
    return f"{value:,.0f}"


def share_text(share: float) -> str:
    """A share in per cent."""
    return f"{number_text(100 * share)}%"


def bin_names(column: Mapping[str, Any]) -> list[str]:
    """Names of a column's bins in a view: levels, or the values between which a bin lies."""
    return _bin_names(column, lambda edge: number_text(edge) if isinstance(edge, int | float) else str(edge))


def exact_bin_names(column: Mapping[str, Any]) -> list[str]:
    """Names of a column's bins in lines, where no digit of an edge is left out."""
    return _bin_names(column, str)


def _bin_names(column: Mapping[str, Any], text: Any) -> list[str]:
    edges = column.get("edges", ())
    between = [f"{text(low)} to {text(high)}" for low, high in pairwise(edges)]
    return [*(column.get("levels") or between), *(["missing"] if column["missing"] else [])]


def clusters(sizes: Sequence[float]) -> list[str]:
    """Names of clusters with their sizes, numbered from 1."""
    return [f"Cluster {number} ({count_text(size)})" for number, size in enumerate(sizes, 1)]
