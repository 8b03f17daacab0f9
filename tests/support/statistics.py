"""Every kind of statistic through every kind of view, for tests that hold for all of them."""

from collections.abc import Iterator

import numpy as np

from core.data import UNITS, Domain, Geometry, read_sites
from core.statistics import counts, fourier, histograms, scores, sums
from core.statistics.base import FamilyCounts, Statistic
from core.statistics.counts import (
    ClusterCounts,
    ColumnHistograms,
    Count,
    GridCounts,
    NormHistogram,
    PooledHistogram,
    PrefixCounts,
    SiteCounts,
)
from core.statistics.fourier import FourierSums
from core.statistics.histograms import WHOLE, CellCounts, Departures, Histograms, PickedHistograms
from core.statistics.scores import NetLosses, SetLosses, SwapLosses
from core.statistics.sums import (
    AbsoluteSums,
    BucketSums,
    EntrySums,
    GroupResidualSums,
    GroupSums,
    LiftedSums,
    PickedSums,
    ResidualSums,
    SecondMoments,
    Sums,
)
from core.views import (
    Assigned,
    Binning,
    Bins,
    Buckets,
    CandidateDistances,
    ChosenColumns,
    ColumnBins,
    Encoded,
    GridCells,
    PathCodes,
    Projected,
    RowView,
    SiteDistances,
    TopEntries,
)
from tests.support.rows import DENSE, GEOMETRY, SPARSE, TABLE

DRAW = np.random.default_rng(11)
# Two columns that lie on a line.
TWO_LINES = Geometry(table=TABLE, chosen=("age", "visits"), weights=(1.0, 1.0))


def row_views(domain: Domain) -> Iterator[RowView]:
    """Every kind of view that yields rows, with tight and loose radii, odd matrices and centres."""
    root = Encoded.of(domain)
    yield root
    yield ChosenColumns(root, np.array([0, 2]))
    random_matrix = DRAW.integers(-(2**17), 2**17, size=(3, 2))
    yield Projected(root, random_matrix, 1)
    yield Projected(root, random_matrix, 777, np.array([30000, -9000, 5]))
    yield Projected(root, random_matrix, 2 * UNITS, np.array([-5, 0, 32000]))
    yield Projected(Projected(root, random_matrix, 20000), DRAW.integers(-(2**15), 2**15, size=(2, 3)), 5000)


def statistics(domain: Domain) -> Iterator[Statistic]:
    """Every kind of statistic through every kind of view."""
    yield Count(domain.fingerprint)
    for view in row_views(domain):
        width = view.width
        yield Sums(view)
        yield FourierSums(view, DRAW.integers(-(2**24), 2**24, size=(width, 5)))
        centres = DRAW.integers(-UNITS, UNITS, size=(4, width))
        centres[3] = centres[0]  # a tie
        assigned = Assigned(view, centres)
        yield ClusterCounts(assigned)
        yield NormHistogram(assigned, np.array([0, 1, 100, 5000, 40000]))
        yield PooledHistogram(assigned, np.array([0, 1, 100, 5000, 40000]))
        yield ResidualSums(assigned, np.array([1, 500, UNITS, 2 * UNITS]))
        yield from (AbsoluteSums(view, centres[0], radius) for radius in (1, 9000, 2 * UNITS))
        yield LiftedSums(assigned, np.array([1, 500, UNITS, 2 * UNITS]))
        yield SecondMoments(view, centres[0], 1)
        yield SecondMoments(view, centres[0], 9000)
        yield SecondMoments(view, centres[0], 9000, 4)
        yield SecondMoments(view, np.zeros(width, dtype=np.int64), 2 * UNITS)
        axes = tuple(i % width for i in range(6))
        codes = PathCodes.even(view, np.full(width, -(2**15)), np.full(width, 2**16), axes)
        yield PrefixCounts(codes, 2, np.array([0, 3, 9, 15]))
        yield GroupSums(assigned, Encoded.of(domain))
        about = Assigned(Encoded.of(domain), np.array([[30000, -9000, 5]]))
        yield from (GroupResidualSums(assigned, about, radius) for radius in (1, 9000, 2 * UNITS))
        inside = inside_ball(centres, view.radius)
        candidates = [CandidateDistances(view, inside, objective) for objective in ("means", "medians")]
        yield from (SwapLosses(source, np.array([1, 2])) for source in candidates)
        yield from (SetLosses(source, np.array([[0, 1], [2, 3]])) for source in candidates)
        yield NetLosses(assigned, np.stack([inside, np.zeros_like(inside)], axis=1))


def dense_statistics() -> Iterator[Statistic]:
    """Statistics of views that read dense rows only."""
    for view in row_views(DENSE):
        yield GridCounts(GridCells(view, np.full(view.width, -9000), np.full(view.width, 20001), 4))
        buckets = Buckets(view, np.arange(view.width), 9000)
        yield BucketSums(buckets, np.arange(buckets.family // 2))


def sparse_statistics() -> Iterator[Statistic]:
    """Statistics of views that read sparse rows only."""
    for view in row_views(SPARSE):
        assigned = Assigned(view, DRAW.integers(-UNITS, UNITS, size=(4, view.width)))
        kept = TopEntries(Encoded.of(SPARSE), 2, 9000)
        yield EntrySums(assigned, kept)
        yield PickedSums(assigned, kept, np.array([[0, 1], [2, 1], [0, 2], [1, 0]]))


def table_statistics() -> Iterator[Statistic]:
    """Statistics of columns of a table, and of columns clipped to released ranges."""
    yield ColumnHistograms(ColumnBins(GEOMETRY, 8))
    yield ColumnHistograms(ColumnBins(TWO_LINES, 8))
    for geometry in (GEOMETRY, GEOMETRY.clipped({"age": (900, 1000)})):
        view = Encoded.of(geometry)
        yield Sums(view)
        assigned = Assigned(view, DRAW.integers(-UNITS, UNITS, size=(3, view.width)))
        yield ClusterCounts(assigned)
        yield ResidualSums(assigned, np.array([1, 500, 2 * UNITS]))


def binned_statistics(domain: Domain, bins: Bins) -> Iterator[Statistic]:
    """Statistics of binned columns, with and without clusters."""
    view = Encoded.of(domain)
    group, other = (Assigned(view, DRAW.integers(-UNITS, UNITS, size=(k, view.width))) for k in (3, 2))
    yield CellCounts(bins)
    yield CellCounts(bins, (group, other))
    yield Histograms(bins, None)
    yield Histograms(bins, group)
    yield PickedHistograms(bins, group, np.array([[0, 1], [2, 0], [1, 2]]))
    shares = [np.diff(np.linspace(0, WHOLE, width + 1).astype(np.int64)) for width in bins.widths]
    lopsided = np.concatenate([np.eye(1, width, dtype=np.int64)[0] * WHOLE for width in bins.widths])
    yield Departures(bins, group, np.concatenate(shares))
    yield Departures(bins, group, lopsided)


SIGNED_BINS = Bins(
    DENSE.fingerprint,
    (Binning(0, (-UNITS, -5, 1, 20_000)), Binning(2, (-9, 9)), Binning(0, (-UNITS, 0, UNITS))),
    signed=True,
)
CODE_BINS = Bins(
    TABLE.fingerprint,
    (Binning(0, (0, 400, 65_535)), Binning(1, (0, 1, 2)), Binning(2, tuple(range(11)), missing=True)),
    signed=False,
)


def inside_ball(points: np.ndarray, radius: int) -> np.ndarray:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    clipped: np.ndarray = np.trunc(points * np.minimum(1, radius / norms))
    return clipped.astype(np.int64)


def known_kinds() -> set[str]:
    """The kinds of all statistics in arrays."""
    found = (
        value for module in (counts, fourier, histograms, scores, sums) for value in vars(module).values()
    )
    kinds = (s for s in found if isinstance(s, type) and issubclass(s, Statistic) and hasattr(s, "kind"))
    return {s.kind for s in kinds if not issubclass(s, FamilyCounts)}


SITES = read_sites(DENSE, {"kind": "coordinates", "points": [[0, 0, 0], [9000, 0, 5], [-5, 32000, 1]]})
BY_SITE = SiteCounts(SiteDistances.of(DENSE, SITES), np.array([0, 2]))
STATISTICS = [
    *statistics(DENSE),
    *dense_statistics(),
    BY_SITE,
    *(s for s in statistics(SPARSE) if s.kind != PrefixCounts.kind),
    *sparse_statistics(),
    *table_statistics(),
    *binned_statistics(DENSE, SIGNED_BINS),
    *binned_statistics(GEOMETRY, CODE_BINS),
]
