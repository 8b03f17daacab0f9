"""The panels of Figure 2 of Balcan et al. (2017): what is compared, on which rows, at which budgets.

Their SuLQ adds Gaussian noise, so a delta is spent; here everything gets the same epsilon and delta, except
what is marked pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from benchmarks.comparators import k_variates, sample_aggregate
from benchmarks.datasets import Dataset, blobs3, mixture, mnist, spheres
from benchmarks.panels import Line, Panel, Setting
from core.algorithms import registry
from core.data import ArraySource
from core.plan import Request
from core.privacy import Budget, default_delta

__all__ = ["panels"]

Floats = npt.NDArray[np.float64]
CLUSTERS = (2, 4, 8, 16, 32, 64)
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
COLUMNS = (8, 32, 128, 512, 2048)


def private(
    name: str,
    algorithm: str,
    options: Mapping[str, Any] | None = None,
    pure: bool = False,
    objective: str = "means",
) -> Line:
    """An entry of the registry under the setting's budget."""
    sources: dict[int, ArraySource] = {}

    def cluster(data: Dataset, setting: Setting, run: int) -> Floats:
        budget = Budget.at_most(setting.epsilon, 0 if pure else setting.delta)
        request = Request(setting.k, budget, objective, algorithm, dict(options or {}))
        plan = registry.plan(data.domain, request)
        source = sources.setdefault(id(data), ArraySource(data.domain, data.rows))
        return registry.run(plan, source).centres

    return Line(name, cluster)


def _k_means_plus_plus(data: Dataset, setting: Setting, run: int) -> Floats:
    rows = data.rows.astype(np.float32)
    found = KMeans(setting.k, n_init=1, random_state=run).fit(rows).cluster_centers_
    return np.asarray(found, dtype=np.float64)


def _sample_aggregate(data: Dataset, setting: Setting, run: int) -> Floats:
    draw = np.random.default_rng(run)
    return sample_aggregate(data.rows, data.domain, setting.k, setting.epsilon, setting.delta, draw)


def _k_variates(data: Dataset, setting: Setting, run: int) -> Floats:
    return k_variates(data.rows, data.domain, setting.k, setting.epsilon, np.random.default_rng(run))


def _at_one(setting: Setting) -> bool:
    """Without privacy every epsilon is alike."""
    return setting.epsilon == 1.0


NON_PRIVATE = Line("k-means++ (not private)", _k_means_plus_plus, once=True)
MAIN = (
    private("summit", "summit"),
    private("balcan", "balcan"),
    private("balcan, clipped to the domain", "balcan", {"clipping": "domain"}),
    private("sulq, 20 rounds as in the paper", "sulq", {"rounds": 20}),
    private("sulq, 8 rounds", "sulq"),
    NON_PRIVATE,
)
BY_EPSILON = (MAIN[0], MAIN[1], MAIN[3], Line(NON_PRIVATE.name, _k_means_plus_plus, _at_one, once=True))
SMALL = (
    *MAIN,
    private("balcan, pure", "balcan", pure=True),
    private("sulq, pure", "sulq", pure=True),
    private("grid, pure", "grid", pure=True),
    Line("sample-aggregate", _sample_aggregate),
    Line("k-variates", _k_variates),
)


def panels(mnist_path: Path | None) -> tuple[Panel, ...]:
    def by_k(size: int, columns: int) -> tuple[Setting, ...]:
        return tuple(Setting(k, 1.0, default_delta(size), columns) for k in CLUSTERS)

    by_epsilon = tuple(Setting(10, epsilon, default_delta(60_000), 784) for epsilon in EPSILONS)
    by_columns = tuple(Setting(8, 1.0, default_delta(50_000), columns) for columns in COLUMNS)
    small = (Setting(3, 1.0, default_delta(10_000), 3),)

    def digits(_columns: int) -> Dataset:
        return mnist(mnist_path)

    def gaussians(_columns: int) -> Dataset:
        return mixture()

    def three(_columns: int) -> Dataset:
        return blobs3()

    return (
        Panel("small", "three blobs in 3 dimensions, k = 3, epsilon = 1", "k", three, small, SMALL),
        Panel(
            "synthetic",
            "64 Gaussians in 100 dimensions, epsilon = 1",
            "k",
            gaussians,
            by_k(100_000, 100),
            MAIN,
        ),
        Panel("mnist", "MNIST, epsilon = 1", "k", digits, by_k(60_000, 784), MAIN),
        Panel("epsilon", "MNIST, k = 10", "epsilon", digits, by_epsilon, BY_EPSILON),
        Panel("dimension", "8 Gaussians, k = 8, epsilon = 1", "columns", spheres, by_columns, BY_EPSILON),
    )
