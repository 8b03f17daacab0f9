"""Which body computes a kernel: numpy's, the reference and the default, or a compiled one.

Compiled bodies come with the distribution `cairn-dp-kernels`; they return the same integers, bit for bit, so
that nothing depends on which one ran. Where it is not installed, numpy computes everything.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: The body that is written in Python.
NUMPY = "numpy"
#: The compiled body that any processor runs.
_PLAIN = "plain"
#: The interface of `cairn_kernels` that `core.kernels.compiled` is written for.
_INTERFACE = 1

#: How often each body computed each kernel in this process: (kernel, body) to calls.
CALLS: Counter[tuple[str, str]] = Counter()


@cache
def _package() -> Any:
    """The compiled kernels; None where they are missing, or cannot be loaded here."""
    try:
        import cairn_kernels

        usable = cairn_kernels.INTERFACE == _INTERFACE and cairn_kernels.names()
    except (ImportError, OSError):
        return None
    return cairn_kernels if usable else None


@cache
def bodies() -> tuple[str, ...]:
    """The bodies that this machine runs, in the order in which they are preferred."""
    compiled = _package().names() if _package() else ()
    # Without multiply-adds of pairs of int16, BLAS is faster in products.
    return (
        *(name for name in compiled if name != _PLAIN),
        NUMPY,
        *(name for name in compiled if name == _PLAIN),
    )


@cache
def _compiled(body: str) -> Any:
    """The kernels of a body, by name; None for numpy."""
    if body == NUMPY:
        return None
    from core.kernels.compiled import CompiledKernels  # it uses parts of the modules that import this one

    return CompiledKernels(_package().body(body))


class _Choice:
    """The body in use: the one that the environment names, or else the one preferred."""

    def __init__(self) -> None:
        self.body = os.environ.get("CAIRN_KERNELS") or bodies()[0]
        if self.body not in bodies():
            known = ", ".join(bodies())
            raise ValueError(f"CAIRN_KERNELS must be one of {known} on this machine, not {self.body!r}")


_choice = _Choice()


def body_in_use() -> str:
    """The body that computes kernels in this process, where it can."""
    return _choice.body


@contextmanager
def computed_by(body: str) -> Iterator[None]:
    """Use another body for a while."""
    before, _choice.body = _choice.body, body
    try:
        yield
    finally:
        _choice.body = before


def kernel(reference: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A kernel, given by its body in numpy: the compiled one of the same name computes what it accepts.

    What is accepted follows from types, public numbers and released ones, never from the rows' values.
    """
    name = reference.__name__

    @wraps(reference)
    def computed(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        compiled = _compiled(_choice.body)
        if compiled is not None:
            found: Result | None = getattr(compiled, name)(*args, **kwargs)
            if found is not None:
                CALLS[name, _choice.body] += 1
                return found
        CALLS[name, NUMPY] += 1
        return reference(*args, **kwargs)

    return computed
