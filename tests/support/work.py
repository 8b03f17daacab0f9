"""Records the work that core does on rows: the lines that run, and the sizes and types of all arrays.

Two datasets with equally many records must leave the same record. Times are noisy; this is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp

import core
from core.postprocessing.kmeans import single_threaded

#: Packages and modules of core that see rows, or totals over rows before noise is added.
WATCHED = ("coverage", "data", "kernels", "mechanisms", "probe", "statistics", "views")

_ROOT = Path(core.__file__).parent

#: A function, then a line that ran in it or the arrays it had when it returned.
Event = tuple[str, int | str]


@contextmanager
def recorded_work(except_in: tuple[str, ...] = ()) -> Iterator[list[Event]]:
    """Fill a list with what the watched modules do, on one thread, but not inside the functions named."""
    events: list[Event] = []
    hidden = 0

    def watch(frame: FrameType, event: str, value: Any) -> Any:
        name = _name(frame.f_code)
        if event == "line":
            events.append((name, frame.f_lineno))
        elif event == "return":
            sizes = {key: _size(v) for key, v in {**frame.f_locals, "return": value}.items()}
            events.append((name, ", ".join(f"{key}: {size}" for key, size in sizes.items() if size)))
        return watch

    def hide(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal hidden
        hidden -= event == "return"
        return hide

    def enter(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal hidden
        if hidden or not _is_watched(frame.f_code.co_filename):
            return None
        if _name(frame.f_code) in except_in:
            hidden += 1
            return hide
        return watch

    before = sys.gettrace()
    with single_threaded():  # which looks for the libraries once: it takes longer than most work here
        sys.settrace(enter)
        try:
            yield events
        finally:
            sys.settrace(before)


def assert_same_work(first: list[Event], *others: list[Event]) -> None:
    """Fail at the first difference, with the lines that led to it."""
    assert first, "no work was recorded"
    for other in others:
        for place, (left, right) in enumerate(zip_longest(first, other)):
            if left != right:
                before = "\n".join(map(str, first[max(0, place - 5) : place]))
                raise AssertionError(
                    f"the work depends on rows; after\n{before}\none: {left}\nother: {right}"
                )


@cache
def _is_watched(filename: str) -> bool:
    """Asked at every call of a run, also inside libraries."""
    path = Path(filename)
    if not path.is_relative_to(_ROOT):
        return False
    return path.relative_to(_ROOT).parts[0].removesuffix(".py") in WATCHED


@cache
def _name(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(_ROOT).with_suffix('')}:{code.co_qualname}"


def _size(value: Any) -> str:
    """How much work a value stands for; empty where it is no array, slice or list of them."""
    match value:
        case np.ndarray():
            return f"{value.dtype}{value.shape}"
        case sp.sparray():
            matrix: Any = value  # its stub has no attributes
            return f"{matrix.dtype}{matrix.shape} with {matrix.nnz}"
        case slice():
            return f"{value.start}:{value.stop}"
        case list() | tuple():
            return f"[{'; '.join(sizes)}]" if any(sizes := [_size(v) for v in value]) else ""
    return ""
