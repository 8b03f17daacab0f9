"""Facilities for private homes by Jones et al. (2021), with their constant and with sharper accountings.

Their paper has no figure. Here 20 of 2,000 public sites are chosen for 100,000 homes, for ever less epsilon.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Dataset, towns
from benchmarks.figures_balcan import private
from benchmarks.panels import Line, Panel, Setting
from core.postprocessing.medoids import weighted_medoids

__all__ = ["panels"]

Floats = npt.NDArray[np.float64]
SITES: Floats = np.random.default_rng(2000).uniform(0, 100, size=(2_000, 2))
EPSILONS = (0.02, 0.1, 1.0)


def _not_private(data: Dataset, setting: Setting, run: int) -> Floats:
    """The same solver with the exact number of homes nearest to each site."""
    apart = np.linalg.norm(SITES[:, None] - SITES, axis=2)
    homes = np.zeros(len(SITES))
    for start in range(0, len(data.rows), 5_000):
        block = data.rows[start : start + 5_000]
        near = ((block[:, None] - SITES) ** 2).sum(axis=2).argmin(axis=1)
        homes += np.bincount(near, minlength=len(SITES))
    listed = np.flatnonzero(homes)
    picked = weighted_medoids(apart[listed] / apart.max(), homes[listed], setting.k)
    return SITES[picked]


def _jones(name: str, accounting: str) -> Line:
    sites = {"kind": "coordinates", "points": SITES.tolist()}
    return private(name, "jones", {"sites": sites, "accounting": accounting}, objective="medians")


LINES = (
    _jones("jones (F3)", "pure"),
    _jones("jones with F2", "approximate"),
    _jones("jones with its constant", "jones"),
    Line("not private", _not_private, lambda setting: setting.epsilon == 1.0, once=True),
)


def panels() -> tuple[Panel, ...]:
    settings = tuple(Setting(20, epsilon, 1e-6, 2) for epsilon in EPSILONS)

    def homes(_columns: int) -> Dataset:
        return towns()

    title = "20 of 2,000 sites for 100,000 homes"
    return (Panel("sites", title, "epsilon", homes, settings, LINES, "medians"),)
