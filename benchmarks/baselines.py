"""What private centres are compared with: scikit-learn's k-means, and k-medians by Weiszfeld's steps.

Baselines are kept in a CSV file under the digest of the rows, since they take longer than what they judge.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.cluster import KMeans, kmeans_plusplus

__all__ = ["Baselines", "k_means", "k_medians", "loss"]

Floats = npt.NDArray[np.float64]
#: Restarts of each baseline, of which the best counts.
RESTARTS = 3
_BLOCK_ROWS = 1 << 14
_MANY_COLUMNS = 64


def _nearest(rows: Floats, centres: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Nearest centre and squared distance to it."""
    labels = np.empty(len(rows), dtype=np.intp)
    squared = np.empty(len(rows))
    offsets = np.einsum("ij,ij->i", centres, centres)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS]
        scores = block @ (-2 * centres.T) + offsets
        label = scores.argmin(axis=1)
        labels[start : start + _BLOCK_ROWS] = label
        squared[start : start + _BLOCK_ROWS] = scores[np.arange(len(label)), label] + np.einsum(
            "ij,ij->i", block, block
        )
    return labels, np.maximum(squared, 0)


def loss(rows: Floats, centres: Floats, objective: str) -> float:
    """The sum of squared distances to the nearest centre, or of distances for medians."""
    squared = _nearest(rows, centres)[1]
    return float(squared.sum() if objective == "means" else np.sqrt(squared).sum())


def k_means(rows: Floats, k: int) -> Floats:
    """scikit-learn's k-means, the best of `RESTARTS`; in single precision, which takes half the time."""
    algorithm = "elkan" if rows.shape[1] >= _MANY_COLUMNS else "lloyd"  # the same steps, by fewer products
    found = KMeans(k, n_init=RESTARTS, random_state=0, algorithm=algorithm).fit(rows.astype(np.float32))
    centres: Floats = found.cluster_centers_.astype(np.float64)
    return centres


def k_medians(rows: Floats, k: int) -> Floats:
    """Weiszfeld's steps from k-means++ seeds, re-assigning rows after each step; the best of `RESTARTS`."""
    found = [_weiszfeld(rows, kmeans_plusplus(rows, k, random_state=seed)[0]) for seed in range(RESTARTS)]
    return min(found, key=lambda centres: loss(rows, centres, "medians"))


def _weiszfeld(rows: Floats, centres: Floats, steps: int = 200, tolerance: float = 1e-5) -> Floats:
    """Each step moves a centre to the mean of its rows weighted by one over their distance."""
    before = np.inf
    for _ in range(steps):
        labels, squared = _nearest(rows, centres)
        distances = np.sqrt(squared)
        if before - distances.sum() <= tolerance * distances.sum():
            break
        before = float(distances.sum())
        # A row on its centre would weigh infinitely much: distances below a thousandth of the mean count so.
        weights = 1 / np.maximum(distances, 1e-3 * distances.mean())
        columns = np.arange(len(rows) + 1)
        selector = sp.csc_array((weights, labels, columns), shape=(len(centres), len(rows)))
        mass = np.bincount(labels, weights, minlength=len(centres))
        moved = (selector @ rows) / np.maximum(mass, np.finfo(float).tiny)[:, None]
        centres = np.where(mass[:, None] > 0, moved, centres)
    return centres


_SOLVERS: dict[str, Callable[[Floats, int], Floats]] = {"means": k_means, "medians": k_medians}


class Baselines:
    """Losses of non-private centres, remembered in a file."""

    FIELDS = ("rows", "dataset", "k", "objective", "loss")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, int, str], float] = {}
        if path.exists():
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    self._known[row["rows"], int(row["k"]), row["objective"]] = float(row["loss"])

    def loss(self, name: str, rows: Floats, k: int, objective: str) -> float:
        """The non-private loss on these rows, from the file or computed and added to it."""
        digest = hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()[:16]
        key = (digest, k, objective)
        if key not in self._known:
            found = loss(rows, _SOLVERS[objective](rows, k), objective)
            self._known[key] = found
            self._append(dict(zip(self.FIELDS, (digest, name, k, objective, repr(found)), strict=True)))
        return self._known[key]

    def _append(self, row: dict[str, object]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = not self._path.exists()
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.FIELDS)
            if new:
                writer.writeheader()
            writer.writerow(row)
