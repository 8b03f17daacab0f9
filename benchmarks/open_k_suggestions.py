"""Mixtures with a known number of clusters, and the gap statistic without privacy beside the suggested k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from benchmarks.datasets import Dataset, centres_apart, gaussians, power_shares
from core.data import Dense

__all__ = ["MIXTURES", "Mixture", "gap_statistic"]

Floats = npt.NDArray[np.float64]
_ROWS, _COLUMNS = 20_000, 8
#: Rows that the gap statistic looks at, and samples without clusters that it compares with.
_GAP_ROWS, _REFERENCES = 4_000, 5


@dataclass(frozen=True)
class Mixture:
    """Normal clusters of one deviation about centres drawn uniformly from a cube around the origin."""

    reach: float
    deviation: float
    #: The least distance between two centres, in deviations.
    apart: float
    equal: bool = True

    def rows(self, truth: int, seed: int) -> Dataset:
        """20,000 rows of 8 columns around `truth` centres."""
        draw = np.random.default_rng(seed)
        centres = centres_apart(draw, truth, _COLUMNS, self.reach, self.apart * self.deviation)
        shares = None if self.equal else power_shares(truth, 1.0)
        rows = gaussians(draw, _ROWS, centres, self.deviation, shares)
        domain = Dense.box(-1, 1, dimension=_COLUMNS, scaling="none", size=_ROWS)
        return Dataset(f"{truth} clusters", np.clip(rows, -1, 1), domain, (truth,))


#: Nearest centres of the overlapping ones are 3 to 5 deviations apart.
MIXTURES = {
    "separated": Mixture(0.7, 0.08, 6.0),
    "separated, unequal": Mixture(0.7, 0.08, 6.0, equal=False),
    "overlapping": Mixture(0.4, 0.15, 0.0),
    "overlapping, unequal": Mixture(0.4, 0.15, 0.0, equal=False),
}


def gap_statistic(rows: Floats, last: int, seed: int) -> int:
    """Tibshirani, Walther and Hastie's estimate: the first k whose gap is within an error of the next one."""
    draw = np.random.default_rng(seed)
    rows = rows[draw.choice(len(rows), _GAP_ROWS, replace=False)]
    middle = rows.mean(axis=0)
    axes = np.linalg.svd(rows - middle, full_matrices=False)[2]
    turned = (rows - middle) @ axes.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    references = [draw.uniform(low, high, size=turned.shape) for _ in range(_REFERENCES)]
    gaps, errors = [], []
    for k in range(1, last + 1):
        without = np.array([_log_loss(sample, k, seed) for sample in references])
        gaps.append(without.mean() - _log_loss(turned, k, seed))
        errors.append(without.std() * np.sqrt(1 + 1 / _REFERENCES))
        if k > 1 and gaps[-2] >= gaps[-1] - errors[-1]:
            return k - 1
    return last


def _log_loss(rows: Floats, k: int, seed: int) -> float:
    return float(np.log(KMeans(k, n_init=3, random_state=seed).fit(rows.astype(np.float32)).inertia_))
