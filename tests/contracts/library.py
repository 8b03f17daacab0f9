"""The names of the library that pinned cases use, found wherever a tree keeps them.

When a module moves, put its new path in front of its old one here; no other file of the pins changes.
Old paths stay, so that `tests.contracts.transcripts --against` can run commits from before the move.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

__all__ = [
    "ArraySource",
    "Budget",
    "Dense",
    "Ids",
    "Partition",
    "Question",
    "Request",
    "Sparse",
    "SparseSource",
    "Table",
    "TableSource",
    "column_from_json",
    "drawing_bytes_from",
    "make_plan",
    "questions",
    "registry",
    "run",
    "with_mechanisms",
]


def _find(name: str, *modules: str) -> Any:
    """The first of these modules' attribute of that name."""
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise ImportError(f"{name} is in none of {', '.join(modules)}: add its new module to {__name__}")


def _find_new(name: str, module: str = "core.data") -> Any:
    """A name that commits before tables, or before questions, do not have; their cases are left out there."""
    try:
        return getattr(import_module(module), name, None)
    except ModuleNotFoundError:
        return None


Dense = _find("Dense", "core.data", "core.domain")
Sparse = _find("Sparse", "core.data", "core.domain")
Ids = _find("Ids", "core.data", "core.domain")
ArraySource = _find("ArraySource", "core.data", "core.source")
SparseSource = _find("SparseSource", "core.data", "core.source")
Table = _find_new("Table")
TableSource = _find_new("TableSource")
column_from_json = _find_new("column_from_json")
Partition = _find_new("Partition")
Question = _find_new("Question", "core.questions.base")
questions: Any = None if Question is None else import_module("core.questions.registry")
Budget = _find("Budget", "core.privacy")
Request = _find("Request", "core.plan")
Probe = _find("Probe", "core.probe")
mechanism_from_json = _find("mechanism_from_json", "core.mechanisms.kinds", "core.mechanisms")
registry = import_module("core.algorithms.registry")


def make_plan(domain: Any, request: Any) -> Any:
    asked = questions if Question is not None and isinstance(request, Question) else registry
    return asked.plan(domain, request)


def run(plan: Any, source: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """Carry a plan out; the clustering or the findings, and each released value with its step's name."""
    probe = Probe(plan, source)
    asked = registry if getattr(plan, "kind", "cluster") == "cluster" else questions
    found = asked.get(plan.algorithm).run(plan, probe)
    return found, [(release.step, release.values) for release in probe.transcript]


def with_mechanisms(plan: Any, mechanisms: list[dict[str, Any]]) -> Any:
    """The plan with the mechanisms of another plan of the same steps."""
    steps = zip(plan.steps, mechanisms, strict=True)
    return replace(plan, steps=tuple(replace(step, mechanism=mechanism_from_json(m)) for step, m in steps))


@contextmanager
def drawing_bytes_from(source: Callable[[int], bytes]) -> Iterator[None]:
    """Replace the operating system's entropy in every module of the library that asks for it, for a while."""
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("core.")]
    before = [(m, m.random_bytes) for m in modules if hasattr(m, "random_bytes")]
    try:
        for module, _ in before:
            module.random_bytes = source  # type: ignore[attr-defined]  # not exported
        yield
    finally:
        for module, entropy in before:
            module.random_bytes = entropy  # type: ignore[attr-defined]  # not exported
