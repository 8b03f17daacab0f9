"""The order of levels as people list them: Roman numerals and bands of ages by what they count."""

import re
from collections.abc import Iterable

_ROMAN = re.compile(r"(?=.)M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_NUMBER = re.compile(r"(\d+)")
#: Beginnings of a band that is open below, and of one that is open above.
_BELOW = re.compile(r"[<≤]\s*=?|under|below|up to|bis|unter")
_ABOVE = re.compile(r"[>≥]\s*=?|over|above|from|ab|über")


def in_order(levels: Iterable[str]) -> list[str]:
    """Return levels in the order in which people list them."""
    found = sorted(levels)
    romans = all(_ROMAN.fullmatch(level) for level in found)
    return sorted(found, key=_of_roman if romans else _natural)


def _of_roman(text: str) -> int:
    values = [_VALUES[sign] for sign in text]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def _natural(text: str) -> list[tuple[str, int, bool]]:
    """Return a key in which numbers count as numbers; a band that is open below comes before its number."""
    first, *others = _NUMBER.split(text.casefold())
    before, is_open_below = first.strip(), False
    if others and (_BELOW.fullmatch(before) or _ABOVE.fullmatch(before)):
        is_open_below, before = _BELOW.fullmatch(before) is not None, ""
    texts, numbers = [before, *others[1::2]], [*map(int, others[0::2]), -1]
    pairs = zip(texts, numbers, strict=True)
    return [(words, number, place > 0 or not is_open_below) for place, (words, number) in enumerate(pairs)]
