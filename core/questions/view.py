"""Views of answers: the closed vocabulary that console, CSV files and notebooks draw."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

#: Numbers beyond these are written with a power of ten.
_LARGE = 1e7
_SMALL = 1e-4
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Standard deviations of the noise to either end of an interval, about.
_DEVIATIONS = 2.0
#: The last digit that is shown is worth at least this part of a standard deviation of the noise.
_FINEST = 0.1
#: Digits of a number that has no noise.
_EXACT_DIGITS = 15

#: What is said of a number that noise hides.
_NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Sentence:
    """A sentence, between other parts or above them."""

    type: ClassVar[str] = "sentence"

    text: str


@dataclass(frozen=True)
class Estimate:
    """A released number with its 95% interval, rounded to its noise, and both as text."""

    value: float | str | None
    low: float | str | None
    high: float | str | None
    text: str

    @property
    def least(self) -> float:
        """The lower end, to sort by; of a text nothing."""
        return self.low if isinstance(self.low, float) else 0.0

    @classmethod
    def of_count(cls, value: float, low: float, high: float) -> Self:
        """A count; below the noise, the most that it can be."""
        return cls._rounded(value, low, high, max(1.0, noise_unit(value, low, high)), count_text)

    @classmethod
    def of_share(cls, value: float | None, low: float, high: float) -> Self:
        """A share between 0 and 1, shown in per cent; None where nothing was counted."""
        if value is None:
            return cls(None, low, high, _NOT_KNOWN)
        unit = min(noise_unit(value, low, high), 0.1)
        return cls._rounded(value, low, high, unit, share_text, most=1.0)

    @classmethod
    def of_difference(cls, value: float, low: float, high: float) -> Self:
        """A difference of two shares, shown in percentage points."""
        points = cls.of_number(100 * value, 100 * low, 100 * high)
        ends = f"{_signed(points.low)} to {_signed(points.high)} points"
        hidden = low <= 0 <= high
        text = f"not known: {ends}" if hidden else f"{_signed(points.value)} points ({ends})"
        return cls(value, low, high, text)

    @classmethod
    def of_number(cls, value: Any, low: Any, high: Any) -> Self:
        """A number, or a date or time as text."""
        if value is None:
            return cls(None, low, high, _NOT_KNOWN)
        if isinstance(value, str):
            return cls(value, low, high, f"{value} ({low} to {high})")
        return cls._rounded(value, low, high, noise_unit(value, low, high), number_text, least=-math.inf)

    @classmethod
    def _rounded(
        cls,
        value: float,
        low: float,
        high: float,
        unit: float,
        text: Callable[[float], str],
        *,
        least: float = 0.0,
        most: float = math.inf,
    ) -> Self:
        """Round to a unit; ends outwards, which makes an interval no less certain."""
        middle = _in_units(value, unit, round)
        first, last = (_in_units(each, unit, side) for each, side in ((low, math.floor), (high, math.ceil)))
        first, last = max(first, least), min(last, most)
        if first <= least:
            words = f"not more than {text(last)}" if last < most else _NOT_KNOWN
        elif last >= most:
            words = f"at least {text(first)}"
        else:
            words = f"{text(middle)} ({text(first)} to {text(last)})" if first < last else text(middle)
        return cls(middle, first, last, words)


@dataclass(frozen=True)
class Heading:
    """The heading of a column, and whether numbers stand below it."""

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
class Bar:
    """A share of a total, which is as long as the bar, and the count that it represents."""

    share: Estimate
    count: Estimate | None = None


@dataclass(frozen=True)
class Series:
    """The bars of one histogram."""

    name: str
    bars: Sequence[Bar]


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


def noise_unit(value: float, low: float, high: float) -> float:
    """The power of ten that a number is rounded to: at least a tenth of the noise in it."""
    noise = max(high - value, value - low) / _DEVIATIONS
    if not noise > 0:
        return 10.0 ** (math.floor(math.log10(abs(value) or 1.0)) - _EXACT_DIGITS)
    # A rounding error in the logarithm must not turn a power of ten into the next one.
    return float(10.0 ** math.ceil(round(math.log10(_FINEST * noise), 9)))


def rounded_to_noise(value: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """A number and the ends of its interval, outwards, rounded to its noise; dates and times are texts."""
    if not isinstance(value, float):
        return value, low, high
    unit = noise_unit(value, low, high)
    ends = ((value, round), (low, math.floor), (high, math.ceil))
    middle, first, last = (_in_units(each, unit, side) for each, side in ends)
    return middle, first, last


def _in_units(value: float, unit: float, rounding: Any) -> float:
    """A number rounded to a power of ten."""
    places = -round(math.log10(unit))
    steps = value * 10.0**places if places >= 0 else value / unit
    return round(float(rounding(round(steps, 6))) * unit, places)


def number_text(value: float, digits: int = 15) -> str:
    """A number with at most this many significant digits, and commas between thousands."""
    if value == 0:
        return "0"
    if not _SMALL <= abs(value) < _LARGE:
        mantissa, exponent = f"{value:.{min(digits - 1, 6)}e}".split("e")
        return f"{float(mantissa):g}×10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _signed(value: Any) -> str:
    return f"+{number_text(value)}" if value > 0 else number_text(value).replace("-", "−")


def count_text(value: float) -> str:
    """A noisy count as a whole number."""
    return f"{value:,.0f}"


def share_text(share: float) -> str:
    """A share in per cent."""
    return f"{number_text(100 * share, 4)}%"


def estimates(
    answer: Mapping[str, Any], name: str, kind: Callable[..., Estimate], noise: float = 0.0
) -> list[Estimate]:
    """The numbers under a name with their intervals; those of an earlier version follow from the noise."""
    values = answer[name]
    if f"{name}_low" in answer:
        return list(map(kind, values, answer[f"{name}_low"], answer[f"{name}_high"]))
    return [kind(each, max(0.0, each - _DEVIATIONS * noise), each + _DEVIATIONS * noise) for each in values]


def group(column: Mapping[str, Any], place: int) -> dict[str, Any]:
    """What a column has for one group of several."""
    names = ("counts", "shares", "means", "spreads", "rates")
    found = {f"{name}{end}" for name in names for end in ("", "_low", "_high")} & column.keys()
    return {**column, **{name: column[name][place] for name in found}}


def bars_of(column: Mapping[str, Any], total: float, noise: float) -> list[Bar]:
    """The histogram of one group: shares of its total, with counts."""
    counts = estimates(column, "counts", Estimate.of_count, noise)
    whole = max(total, 1.0)
    shares = column if "shares" in column else {"shares": [each / whole for each in column["counts"]]}
    return list(map(Bar, estimates(shares, "shares", Estimate.of_share, noise / whole), counts))


def bin_names(column: Mapping[str, Any]) -> list[str]:
    """Names of a column's bins in a view: levels, or the values between which a bin lies."""
    return _bin_names(column, lambda edge: str(edge) if isinstance(edge, str) else number_text(edge, 4))


def exact_bin_names(column: Mapping[str, Any]) -> list[str]:
    """Names of a column's bins in lines, where no digit of an edge is left out."""
    return _bin_names(column, str)


def _bin_names(column: Mapping[str, Any], text: Any) -> list[str]:
    edges = column.get("edges", ())
    between = [f"{text(low)} to {text(high)}" for low, high in pairwise(edges)]
    return [*(column.get("levels") or between), *(["missing"] if column["missing"] else [])]


def histogram(column: Mapping[str, Any], series: Mapping[str, Sequence[Bar]]) -> Bars:
    """Histograms of a column; of levels, which have no order, those come first that are surely frequent."""
    bins = bin_names(column)
    order = list(range(len(bins)))
    if column.get("levels"):
        order.sort(key=lambda place: -max(bars[place].share.least for bars in series.values()))
    arranged = [Series(name, [bars[place] for place in order]) for name, bars in series.items()]
    return Bars(column["column"], [bins[place] for place in order], arranged)


def lines_of(name: str) -> tuple[str, ...]:
    """Names of the columns that hold an estimate in lines."""
    return (name, f"{name}_low", f"{name}_high", f"{name}_text")


def rounded(*each: Estimate | None) -> list[Any]:
    """Estimates as cells of a line: the value, both ends of its interval, and the text; empty without one."""
    cells = [(one.value, one.low, one.high, one.text) if one else ("",) * 4 for one in each]
    return [cell for row in cells for cell in row]
