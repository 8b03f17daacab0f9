"""Rows derived from single records by pure functions of released parameters."""

from core.views.assigned import Assigned
from core.views.base import DerivedView, RowView, View, clear_cache, limit_cache
from core.views.buckets import Buckets
from core.views.cells import Cubes, GridCells, PathCodes
from core.views.distances import CandidateDistances, Distances, SiteDistances
from core.views.rows import Encoded, Projected, TopEntries

__all__ = [
    "Assigned",
    "Buckets",
    "CandidateDistances",
    "Cubes",
    "DerivedView",
    "Distances",
    "Encoded",
    "GridCells",
    "PathCodes",
    "Projected",
    "RowView",
    "SiteDistances",
    "TopEntries",
    "View",
    "clear_cache",
    "limit_cache",
]
