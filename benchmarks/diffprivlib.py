"""IBM's diffprivlib as a comparator: its k-means, where the package `diffprivlib` is installed.

It implements DP-Lloyd (Su et al. 2016) under pure epsilon. It is no dependency of this project.
"""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
import numpy.typing as npt

__all__ = ["centres", "installed", "spent"]

Floats = npt.NDArray[np.float64]
#: The constant of Su et al. that splits epsilon between counts and sums.
_RHO = 0.225


def installed() -> bool:
    """Whether the package can be imported."""
    return importlib.util.find_spec("diffprivlib") is not None


def centres(rows: Floats, low: npt.ArrayLike, high: npt.ArrayLike, k: int, epsilon: float) -> Floats:
    """Centres by its defaults inside these bounds of each column, or of all of them."""
    if not installed():
        raise ImportError("diffprivlib is not installed: run `pip install diffprivlib`")
    models = importlib.import_module("diffprivlib.models")
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), rows.shape[1:]) for end in (low, high))
    found = models.KMeans(k, epsilon=epsilon, bounds=(low, high)).fit(rows)
    return np.asarray(found.cluster_centers_, dtype=np.float64)


def spent(columns: int) -> float:
    """What release 0.6.6 spends over what it is asked to spend.

    Its `_split_epsilon` returns the part of a column before the part of the count, and its caller unpacks
    them the other way round: every column gets what the count should get.
    """
    count = float(np.cbrt(4 * columns * _RHO**2))
    return (1 + columns * count) / (columns + count)
