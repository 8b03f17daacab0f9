"""OpenDP's histograms and quantiles, as comparators; None where the package `opendp` is not installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["histogram", "quantiles"]

#: Leaves of the tree that quantiles are read from.
_LEAVES = 4096


def _library() -> Any:
    """The package, if there is one; it is no dependency."""
    if importlib.util.find_spec("opendp") is None:
        return None
    prelude = importlib.import_module("opendp.prelude")
    prelude.enable_features("contrib")
    return prelude


def histogram(counts: npt.NDArray[np.int64], epsilon: float) -> list[int] | None:
    """Counts with OpenDP's Laplace noise for one record."""
    dp = _library()
    if dp is None:
        return None
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    released: list[int] = (space >> dp.m.then_laplace(scale=1 / epsilon))(counts.tolist())
    return released


def quantiles(
    values: npt.NDArray[np.float64], low: float, high: float, levels: Sequence[float], epsilon: float
) -> list[float] | None:
    """Quantiles from OpenDP's tree of counts with Laplace noise, made consistent."""
    dp = _library()
    if dp is None:
        return None
    edges = np.linspace(low, high, _LEAVES + 1)
    counts = np.histogram(values, edges)[0].tolist()
    measure, read = _tree(low, high, tuple(levels), epsilon, len(values))
    found: list[float] = read(measure(counts))
    return found


@cache
def _tree(low: float, high: float, levels: tuple[float, ...], epsilon: float, size: int) -> tuple[Any, Any]:
    dp = _library()
    branches = dp.t.choose_branching_factor(size_guess=_LEAVES)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = space >> dp.t.then_b_ary_tree(leaf_count=_LEAVES, branching_factor=branches)

    def noisy(scale: float) -> Any:
        return tree >> dp.m.then_laplace(scale=scale)

    scale = dp.binary_search_param(noisy, d_in=1, d_out=epsilon, T=float)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branches)
    edges = np.linspace(low, high, _LEAVES + 1).tolist()
    return noisy(scale) >> consistent, dp.t.make_quantiles_from_counts(edges, alphas=list(levels))
