"""Bounds that a statistic declares on its change by one record.

Relative to `scales`, positive numbers that broadcast to the statistic's shape: one record more or less
changes `value / scales` by at most `l1` and `l2` in those norms and by at most `linf` in any entry. A scale
may be a released radius, so a plan can fix losses before the radius is known.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from core.arrays import Floats

#: The norms in which a change is bounded, by their names in `Sensitivity`.
Norm = Literal["l1", "l2", "linf"]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Bounds on the change of a statistic by one record, relative to `scales`."""

    scales: Floats = field(default_factory=lambda: np.ones(1))
    l1: float = 1.0
    l2: float = 1.0
    linf: float = 1.0
    #: One record touches at most one row of the statistic (its first axis).
    one_block: bool = True
    #: Adding a record moves every entry the same way (an exponential mechanism then pays half).
    monotone: bool = False
    #: Entries are multiples of 1/grid of what they stand for; noise may be rounded to the grid.
    grid: int = 1
    #: Number of entries that one record can change; None where only the norms are known.
    touched: int | None = None
