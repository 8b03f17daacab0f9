"""Additive functions of records that declare how far one record can move them."""

from core.statistics.base import FamilyCounts, Statistic
from core.statistics.counts import (
    BucketCounts,
    ClusterCounts,
    Count,
    CubeCounts,
    GridCounts,
    NormHistogram,
    PrefixCounts,
    SiteCounts,
)
from core.statistics.scores import BOUNDED_BY_ENTRY, NetLosses, SetLosses, SwapLosses
from core.statistics.sums import (
    BucketSums,
    EntrySums,
    GroupResidualSums,
    GroupSums,
    PickedSums,
    ResidualSums,
    SecondMoments,
    Sums,
    bucket_means,
)

__all__ = [
    "BOUNDED_BY_ENTRY",
    "BucketCounts",
    "BucketSums",
    "ClusterCounts",
    "Count",
    "CubeCounts",
    "EntrySums",
    "FamilyCounts",
    "GridCounts",
    "GroupResidualSums",
    "GroupSums",
    "NetLosses",
    "NormHistogram",
    "PickedSums",
    "PrefixCounts",
    "ResidualSums",
    "SecondMoments",
    "SetLosses",
    "SiteCounts",
    "Statistic",
    "Sums",
    "SwapLosses",
    "bucket_means",
]
