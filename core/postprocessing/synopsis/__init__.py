"""One release for every number of clusters: a pure function of released values and recorded randomness.

cells -> CellModel -> Cloud of made-up rows -> a Partition for each k -> Level with losses and intervals
"""

from core.postprocessing.synopsis.cells import Cells
from core.postprocessing.synopsis.synopsis import Level, Synopsis, decoded_rows, made_up_rows, summarise

__all__ = ["Cells", "Level", "Synopsis", "decoded_rows", "made_up_rows", "summarise"]
