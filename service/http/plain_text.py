"""Text that people can tell apart: nothing in it is invisible, and each letter is written in one way."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TypeVar

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

Value = TypeVar("Value")

#: General categories of control and format characters (zero-width and bidirectional ones among them) and of
#: separators of lines.
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp")
#: Letters and marks without a shape: fillers, joiners and selectors of variants.
_WITHOUT_SHAPE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
#: Control characters that a text of several lines may have.
_ON_LINES = "\t\n"
#: Most characters of a text that an error quotes.
_QUOTED = 60


def plain(value: Value) -> Value:
    """Return a value of a request; an error names the character that a text in it must not have."""
    for text in _texts(value):
        if not text.isascii():
            _require_plain(text)
    return value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _require_plain(text: str) -> None:
    hidden = next(filter(_is_hidden, text), None)
    if hidden is not None:
        words = f"must not have the invisible character {_named(hidden)}: remove it from “{_quoted(text)}”"
        raise PydanticCustomError("invisible", "{words}", {"words": words})
    composed = unicodedata.normalize("NFC", text)
    if text != composed:
        letter = next(new for old, new in zip(text, composed, strict=False) if old != new)
        words = f"must be in Unicode's composed form (NFC): write {_named(letter)} in “{_quoted(composed)}”"
        raise PydanticCustomError("composed", "{words}", {"words": words})


def _is_hidden(sign: str) -> bool:
    invisible = unicodedata.category(sign) in _INVISIBLE and sign not in _ON_LINES
    return invisible or _WITHOUT_SHAPE.match(sign) is not None


def _named(sign: str) -> str:
    return f"U+{ord(sign):04X} ({unicodedata.name(sign, 'a control character')})"


def _quoted(text: str) -> str:
    shown = "".join("\N{REPLACEMENT CHARACTER}" if _is_hidden(sign) else sign for sign in text[:_QUOTED])
    return f"{shown}…" if len(text) > _QUOTED else shown
