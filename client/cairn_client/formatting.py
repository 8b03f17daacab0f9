"""Format numbers and ids for people: grouped thousands, sensible rounding, ids no longer than needed."""

import math
import re
from collections.abc import Iterable
from decimal import Decimal

_SHORTEST_ID = 8
_SMALL_DECIMAL = re.compile(r"(?<![\w.])0\.0{4,}[1-9]\d*")


def number(value: float | Decimal, digits: int = 4) -> str:
    """Round to a number of significant digits, but never left of the decimal point: `12,346`, `0.0123`."""
    if isinstance(value, int):
        return f"{value:,}"
    x = float(value)
    if x == 0 or not math.isfinite(x):
        return f"{x:g}"
    magnitude = math.floor(math.log10(abs(x)))
    if -4 <= magnitude < 15:
        text = f"{x:,.{max(0, digits - 1 - magnitude)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def rounded_to_noise(value: float, low: float, high: float) -> tuple[float, float, float]:
    """Round a number and the ends of its 95% interval, outwards, to a tenth of the noise at least."""
    noise = max(high - value, value - low) / 2
    if not 0 < noise < math.inf:
        return value, low, high
    places = -math.ceil(round(math.log10(noise / 10), 9))
    steps = [
        side(round(each * 10.0**places, 6))
        for each, side in ((value, round), (low, math.floor), (high, math.ceil))
    ]
    middle, first, last = (round(each / 10.0**places, places) for each in steps)
    return middle, first, last


def about(value: float) -> str:
    """Round an estimated count: three digits of a large one, a whole number from 10, two digits below."""
    if abs(value) < 10:
        return number(float(value), 2)
    return number(float(f"{value:.3g}") if abs(value) >= 1000 else round(value))


def with_exponents(text: str) -> str:
    """Write the smallest decimals of a text as amounts are written: `1e-6` for `0.000001`."""
    return _SMALL_DECIMAL.sub(lambda found: number(Decimal(found[0]), 6), text)


def shorten(ids: Iterable[str]) -> list[str]:
    """Cut every id to the shortest length, from 8 characters, at which all of them still differ."""
    ids = list(ids)
    length = _SHORTEST_ID
    while len({each[:length] for each in ids}) < len(set(ids)):
        length += 1
    return [each[:length] for each in ids]
