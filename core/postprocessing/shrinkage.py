"""Shrinkage of noisy moves: empirical Bayes by groups of coordinates, and thresholds."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.arrays import Floats

#: A move this far beyond the noise is taken as real, in standard deviations of the energy of a group.
_SURPRISE_NOISES = 2.5
#: From this many coordinates on a group may be shrunk by a threshold instead, where few of them move.
_ENOUGH_COORDINATES = 48


def shrink_by_groups(moves: Floats, errors: Floats, groups: Sequence[npt.NDArray[np.intp]]) -> Floats:
    """Moves shrunk by empirical Bayes: each group of coordinates has a variance pooled over all clusters.

    `errors` is the standard deviation of the noise in each coordinate of a cluster's move.
    """
    noise = errors**2
    precision = noise**-1.0 / (noise**-1.0).sum()
    shrunk = np.zeros_like(moves)
    for group in groups:
        part = moves[:, group]
        energy = (part**2).sum(axis=1)
        signal = max(0.0, float((precision * (energy / len(group) - noise)).sum()))
        explained = noise * (len(group) + _SURPRISE_NOISES * np.sqrt(2 * len(group)))
        # A move that noise cannot explain is kept, however little other clusters move.
        certain = 1 - explained / np.maximum(energy, 1e-30)
        trust = np.maximum(signal / (signal + noise + 1e-30), certain)
        shrunk[:, group] = part * trust[:, None]
        if len(group) >= _ENOUGH_COORDINATES:
            few, risk = _thresholded(part, errors)
            # Stein's estimate of the risk of shrinking all coordinates alike.
            alike = noise * len(group) * (2 * trust - 1) + (1 - trust) ** 2 * energy
            better = risk + noise * np.sqrt(2 * len(group)) < alike  # by more than the estimates may err
            shrunk[np.ix_(better, group)] = few[better]
    return shrunk


def _thresholded(moves: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Moves of which small coordinates are dropped and others shortened, and Stein's estimate of the risk.

    Best where few coordinates of many move. The threshold of a cluster is that of least estimated risk.
    """
    sizes = np.abs(moves) / errors[:, None]
    limits = np.linspace(0.5, np.sqrt(2 * np.log(moves.shape[1])), 12)
    risks = np.stack(
        [(1.0 - 2.0 * (sizes <= limit) + np.minimum(sizes, limit) ** 2).sum(axis=1) for limit in limits]
    )
    limit = limits[risks.argmin(axis=0)][:, None]
    kept = np.sign(moves) * np.maximum(sizes - limit, 0.0) * errors[:, None]
    return kept, risks.min(axis=0) * errors**2


def shorten(moves: Floats, lengths: npt.NDArray[np.int64] | Floats) -> Floats:
    norms = np.maximum(np.linalg.norm(moves, axis=1), 1e-12)
    shortened: Floats = moves * np.minimum(1.0, lengths / norms)[:, None]
    return shortened
