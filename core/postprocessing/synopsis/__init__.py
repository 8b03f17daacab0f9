"""One release for every number of clusters: a pure function of released values and recorded randomness.

cells -> CellModel -> Cloud of made-up rows -> a CloudPartition for each k -> Level with losses and intervals
"""

from core.postprocessing.synopsis.cells import Cells
from core.postprocessing.synopsis.made_up import CellModel
from core.postprocessing.synopsis.partitions import Cloud
from core.postprocessing.synopsis.synopsis import (
    Level,
    Synopsis,
    decoded_rows,
    made_up_rows,
    summarise,
    synopsis_operations,
)

__all__ = [
    "CellModel",
    "Cells",
    "Cloud",
    "Level",
    "Synopsis",
    "decoded_rows",
    "made_up_rows",
    "summarise",
    "synopsis_operations",
]
