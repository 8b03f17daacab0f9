"""K-means on made-up rows for many k in turn: in single precision, which is enough for rows of a model."""

import numpy as np
import numpy.typing as npt

from core.arrays import Floats

Singles = npt.NDArray[np.float32]

#: Lloyd's algorithm ends once centres move by less than this share of the variance of a column, all together.
_TOLERANCE = 1e-4
_TRIALS = 4  # Rows that are tried for each further centre; the one that lowers the loss most is taken.


class LloydRows:
    """Rows about some middle, prepared for one run of Lloyd's algorithm after another."""

    def __init__(self, rows: Floats) -> None:
        # A column of ones: products with it give squared lengths of centres, and numbers of rows.
        self._rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1).astype(np.float32)
        self._turned = np.ascontiguousarray(self._rows.T)
        self._squares: Singles = (self._turned[:-1] ** 2).sum(axis=0)
        self._moved = _TOLERANCE * float(rows.var(axis=0).mean())

    def settled(self, centres: Floats, rounds: int) -> Floats:
        """Centres after at most this many rounds of Lloyd's algorithm; one without rows stays where it is."""
        for _ in range(rounds):
            scores = self._scores(centres)
            sums = (scores == scores.min(axis=0)).astype(np.float32) @ self._rows
            counts = sums[:, -1:].astype(np.float64)
            before, centres = centres, np.where(counts > 0, sums[:, :-1] / np.maximum(counts, 1.0), centres)
            if ((centres - before) ** 2).sum() <= self._moved:
                break
        return centres

    def nearest(self, centres: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        """For each row the number of its nearest centre, and the squared distance to it."""
        numbers = (self._rows @ self._weights(centres).T).argmin(axis=1)
        away = self._rows[:, :-1] - centres.astype(np.float32)[numbers]
        return numbers, np.einsum("ij,ij->i", away, away).astype(np.float64)

    def loss(self, centres: Floats) -> float:
        """Mean squared distance of the rows to their nearest centre."""
        return float(self._least(centres).mean(dtype=np.float64))

    def spread(self, centres: Floats, k: int, draw: np.random.Generator) -> Floats:
        """These centres, and rows far from them and from each other (greedy k-means++) until there are k."""
        found, nearest = list(centres), self._least(centres)
        for _ in range(k - len(centres)):
            reached = nearest.cumsum(dtype=np.float64)
            tried = np.searchsorted(reached, draw.random(_TRIALS) * reached[-1], side="right")
            tried = np.minimum(tried, len(nearest) - 1)
            rows = self._rows[tried, :-1].astype(np.float64)
            within = np.minimum(self._distances(rows), nearest)
            best = int(within.sum(axis=1).argmin())
            nearest = within[best]
            found.append(rows[best])
        return np.array(found)

    def _least(self, centres: Floats) -> Singles:
        """Squared distance of each row to its nearest centre."""
        least: Singles = self._distances(centres).min(axis=0)
        return least

    def _distances(self, centres: Floats) -> Singles:
        """Squared distances of each centre to all rows."""
        distances: Singles = np.maximum(self._scores(centres) + self._squares, 0.0)
        return distances

    def _scores(self, centres: Floats) -> Singles:
        """The same, less the squared length of each row."""
        scores: Singles = self._weights(centres) @ self._turned
        return scores

    @staticmethod
    def _weights(centres: Floats) -> Singles:
        """What columns of rows are multiplied by, to give scores."""
        squares = (centres**2).sum(axis=1, keepdims=True)
        return np.concatenate([-2.0 * centres, squares], axis=1).astype(np.float32)
