"""Rows derived from single records by pure functions of released parameters."""

from core.kernels.cache import clear_cache, limit_cache
from core.views.assigned import Assigned
from core.views.base import DerivedView, RowView, View
from core.views.bins import Binning, Bins
from core.views.buckets import Buckets
from core.views.cells import Cubes, GridCells, PathCodes
from core.views.distances import CandidateDistances, Distances, SiteDistances
from core.views.rows import LARGEST_MATRIX, LONGEST_COLUMN, ChosenColumns, Encoded, Projected, TopEntries
from core.views.table import ColumnBins, TableRows

__all__ = [
    "LARGEST_MATRIX",
    "LONGEST_COLUMN",
    "Assigned",
    "Binning",
    "Bins",
    "Buckets",
    "CandidateDistances",
    "ChosenColumns",
    "ColumnBins",
    "Cubes",
    "DerivedView",
    "Distances",
    "Encoded",
    "GridCells",
    "PathCodes",
    "Projected",
    "RowView",
    "SiteDistances",
    "TableRows",
    "TopEntries",
    "View",
    "clear_cache",
    "limit_cache",
]
