"""The panels of Figure 1 of Chaturvedi et al. (2021); coverage also with the constants of the papers.

Everything private gets epsilon 1 and delta n^-1.5, as in the paper. A line "with its constant" differs in
nothing but how its coverage loop is accounted for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from benchmarks.datasets import Dataset, mixture, mnist
from benchmarks.figures_balcan import private
from benchmarks.panels import Line, Panel, Setting

__all__ = ["panels"]

Floats = npt.NDArray[np.float64]
CLUSTERS = (4, 16, 64)
MNIST_ROWS, MIXTURE_ROWS = 60_000, 50_000


def _lloyd(data: Dataset, setting: Setting, run: int) -> Floats:
    """Lloyd's algorithm without privacy, with the paper's number of iterations."""
    solver = KMeans(setting.k, n_init=1, max_iter=10, random_state=run).fit(data.rows.astype(np.float32))
    return np.asarray(solver.cluster_centers_, dtype=np.float64)


LINES = (
    private("summit", "summit"),
    private("chaturvedi", "chaturvedi"),
    private("chaturvedi with its constant", "chaturvedi", {"accounting": "chaturvedi"}),
    private("jones-euclidean", "jones-euclidean"),
    private("jones-euclidean with its constant", "jones-euclidean", {"accounting": "jones"}),
    private("balcan", "balcan"),
    Line("Lloyd (not private)", _lloyd),  # last: it takes longest
)


def panels(mnist_path: Path | None) -> tuple[Panel, ...]:
    def by_k(size: int, columns: int) -> tuple[Setting, ...]:
        return tuple(Setting(k, 1.0, size**-1.5, columns) for k in CLUSTERS)

    def digits(_columns: int) -> Dataset:
        return mnist(mnist_path)

    def gaussians(_columns: int) -> Dataset:
        return mixture(MIXTURE_ROWS)

    title = "64 Gaussians in 100 dimensions, epsilon = 1"
    return (
        Panel("mnist", "MNIST, epsilon = 1", "k", digits, by_k(MNIST_ROWS, 784), LINES),
        Panel("mixture", title, "k", gaussians, by_k(MIXTURE_ROWS, 100), LINES),
    )
