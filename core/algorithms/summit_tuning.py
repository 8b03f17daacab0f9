"""Tuned constants of the house algorithm, and the public schedule derived from them (`summit_tuning.md`)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from core.algorithms import summit_open as open_k
from core.blocks.adaptive_tree import level_bits
from core.data import Domain
from core.errors import EpsilonTooSmall
from core.mechanisms.noise import additive_noise
from core.plan import KRange, Request
from core.privacy.shares import Shares

# --- shares of the budget (of mu squared; of epsilon under pure DP) -----------------------------------------
#: Centre and radius only set origin and scale: their errors enter everything else in second order.
CENTRE = 0.03
#: The radius gets what brings the noise of a bin down to `RADIUS_SIGNAL * N`, within these limits.
LEAST_RADIUS, MOST_RADIUS, RADIUS_SIGNAL = 0.02, 0.06, 0.01
#: Share of the centre that goes to its sum; the rest goes to the count.
CENTRE_SUM = 0.9
#: The others divide what is left in these proportions.
TREE, EXPLORE, REFINE = 0.12, 0.2, 0.3
#: Second moments get between `LEAST_SUBSPACE` and `MOST_SUBSPACE`: more, the more the noise of many columns
#: blurs the principal axes. At `SUBSPACE_SIGNAL * N` the edge of the noise's spectrum should lie.
LEAST_SUBSPACE, MOST_SUBSPACE, SUBSPACE_SIGNAL = 0.15, 0.4, 0.015
#: In fewer columns than this they get less, down to `LEAST_TURN`: most axes are kept anyhow, so that moments
#: only turn and scale them. Where records are few, not less than `TURN_ROOM` times what that signal takes.
SUBSPACE_COLUMNS, LEAST_TURN, TURN_ROOM = 32, 0.05, 4.0
#: Within a round: sums against sizes in few and in all coordinates.
EXPLORE_SUMS, REFINE_SUMS = 0.7, 0.9
#: Each refining round gets this many times the budget of the one before: the last one is what is released.
REFINE_GROWTH = 1.5

# --- radius -------------------------------------------------------------------------------------------------
#: Bins of the histogram of distances to the centre; with the factor they reach down to 0.1% of the bounds.
RADIUS_BINS, RADIUS_FACTOR = 56, 1.15
#: Rows are clipped at `DATA_LEVEL` of that histogram, second moments at `SHAPE_LEVEL`: a tight clip keeps
#: directions and shrinks the noise with the square of the radius.
DATA_LEVEL, SHAPE_LEVEL = 0.99, 0.2
#: Records that lie far out are few, but dear: clipping may take this share of the squared distances. That is
#: looked at only where the noise of a bin is below this share of the records.
SPARE_ENERGY = 0.003
#: Where `DATA_LEVEL` of the records reach this many times as far as half of them, clusters have scales of
#: their own when their residuals are clipped.
FAR_OUT = 2.3

# --- subspace -----------------------------------------------------------------------------------------------
#: From this many columns on second moments are of rows in steps of this many bits to the clipping radius,
#: which takes half the time; the noise blurs more than the steps do. Beyond 8 bits products need doubles.
COARSE_FROM, MOMENT_BITS = 128, 7
LEAST_AXES, MOST_AXES = 6, 64
#: From this many columns on second moments are of those columns only that vary: noise grows with the number
#: of columns, and many of wide rows tell nothing. `COLUMNS` of the budget goes to the mean absolute
#: deviation of every column; those with `COLUMNS_LEVEL` of all that stands above noise are kept.
COLUMNS_FROM, COLUMNS, COLUMNS_LEVEL = 128, 0.015, 0.99
#: Exploring along few axes of so many columns needs less than `EXPLORE`: the loss is noise in all columns.
WIDE_EXPLORE = 0.1
#: Under pure DP second moments are of use only where their noise is below this share of the signal.
PURE_MOMENTS_NOISE = 0.05
#: Axes drawn at random where second moments are of no use.
RANDOM_AXES = 12
#: They tell little, and rounds in all columns then get up to `MOST_BLIND_REFINE` times as much: in proportion
#: to the variance of their noise, beyond that of a noise (columns * k / (N * epsilon), over the spread of a
#: cluster) of `BLIND_NOISE`. With less noise clusters are rather missed than blurred.
BLIND_NOISE, MOST_BLIND_REFINE = 0.04, 16.0
#: Beyond this many columns second moments are taken in a random sketch of `MOST_SKETCH` columns, or of fewer
#: where its matrix would have more than `SKETCH_ENTRIES` entries.
MOST_COLUMNS, MOST_SKETCH, LEAST_SKETCH, SKETCH_ENTRIES = 2048, 256, 24, 1 << 23
#: A sketch may lengthen rows: room for that in the ball it is clipped to.
SKETCH_ROOM = 1.25
#: Columns in the first group of shrinkage by columns; each group is twice the one before.
FIRST_COLUMNS = 16

# --- tree ---------------------------------------------------------------------------------------------------
TREE_AXES = 8
HALVINGS_PER_AXIS = 2.5
#: Limit on a deeper tree, where one level alone can count finer cells than that.
MOST_DEPTH = 11
#: The box of the tree, in standard deviations along each axis.
BOX_DEVIATIONS = 2.5
#: A cell stays active while its count is this many standard deviations of the noise.
KEEP = 2.75
#: Cells of the first level should hold this many standard deviations on average.
HEAD = 8.0
#: A group of records is spread over cells: to be found it needs this many times what a cell needs.
FOUND = 2.0
LATER_BITS = (1, 1, 2, 2, 3, 3, 3, 3, 3)
MOST_FIRST_BITS = 14

# --- rounds -------------------------------------------------------------------------------------------------
#: With `N * mu / k` of at least this, three rounds of each kind pay; below it two.
PLENTY = 30.0
#: Seeds per centre asked for, or this many in all where that is more: more to merge from.
OVERSEED, ENOUGH_SEEDS = 2.0, 64
#: In few columns, where a seed is measured fast, there may be more: so many coordinates of seeds, and so many
#: seeds. Small clusters far from each other then get seeds of their own. In one to three columns the cells of
#: the tree are fine enough to tell them apart: so many seeds for each column do.
SEED_COORDINATES, MOST_SEEDS, SEEDS_PER_COLUMN = 1280, 128, 24
#: Standard deviations of its size that a seed must be able to hold; those beyond `OVERSEED` rather more.
SEED_NOISES, SPARE_SEED_NOISES = 3.0, 10.0
ROUND_BINS, ROUND_FACTOR = 31, 1.2
#: Where columns outnumber (N * mu / k)^2 this many times, noise in a cluster's mean over all columns is far
#: larger than its records' spread, and rounds there tell next to nothing: they are taken along the axes.
ALONG_AXES = 1.5
#: Second moments then get up to this, since centres differ along the axes alone.
MOST_ALONG_SUBSPACE = 0.6
#: Operations that it takes to find a seed in the coreset, to merge seeds into a cluster, to count a record in
#: a level of the tree, and to add noise to one of many second moments.
SEED_OPERATIONS, CLUSTER_OPERATIONS = 1.2e6, 5e5
LEVEL_OPERATIONS, MOMENT_OPERATIONS = 8.0, 250.0
#: Moves are shrunk in groups of this many principal axes, and beside those in this many groups of columns.
GROUP_AXES, GROUPS_OF_COLUMNS = 4, 8

# --- few records --------------------------------------------------------------------------------------------
#: With `N * mu / k` below this, and up to so many columns, nothing is explored: k-means runs on synthetic
#: points, which are drawn from a released density. With more records exploring loses less; where the density
#: is a tree's, already from `FEW_RECORDS_CENTRES / log2(k)` on. In more columns rounds along few axes are
#: better than rounds in all columns.
FEW_RECORDS_BELOW, FEW_RECORDS_CENTRES, FEW_RECORDS_WIDTH = PLENTY, 125.0, 128
#: With too little signal synthetic points follow noise; exploring then stays nearer to the mean of all
#: records. So plans explore with `N * mu` below `FEW_RECORDS_LEAST` and, in more than `FEW_RECORDS_NARROW`
#: columns, with `N * mu / k` below `(columns + FEW_RECORDS_NARROW) / FEW_RECORDS_STEP`.
FEW_RECORDS_LEAST, FEW_RECORDS_NARROW, FEW_RECORDS_STEP = 8.0, 8, 7.0
#: The tree and the rounds then divide what is left in these proportions; rounds get more, the more columns
#: they measure: twice as much with `FEW_RECORDS_COLUMNS`.
FEW_RECORDS_TREE, FEW_RECORDS_REFINE, FEW_RECORDS_COLUMNS = 0.4, 0.5, 32
#: Second moments then get at least `LEAST_TURN`: in few columns what brings the edge of the noise's spectrum
#: down to `FEW_RECORDS_SIGNAL` of the mean eigenvalue, enough to turn and to scale the tree. They get at most
#: `FEW_RECORDS_SUBSPACE`, in proportion less in fewer than `FEW_RECORDS_COLUMNS` columns: a tree cuts most.
FEW_RECORDS_SUBSPACE, FEW_RECORDS_SIGNAL = 0.5, 0.2
#: Rounds, each with so many times the budget of the one before.
FEW_RECORDS_ROUNDS, FEW_RECORDS_GROWTH = 3, 1.3
#: The first round measures up to `FEW_RECORDS_OVERSEED` centres for each one asked for, since two clusters
#: may look like one in the density; but only as many as have `FEW_RECORDS_SEED / mu` records on average.
FEW_RECORDS_OVERSEED, FEW_RECORDS_SEED = 1.5, 10.0
#: The tree has a large first level and few later ones: the more levels, the more noise in each. An average
#: cell of the first level holds `FEW_RECORDS_HEAD` standard deviations. The last level has as many cells as
#: noise allows, about `2^FEW_RECORDS_CELLS * N * mu`, with at most `FEW_RECORDS_HALVINGS` for each axis.
FEW_RECORDS_HEAD, FEW_RECORDS_BITS, FEW_RECORDS_KEEP, FEW_RECORDS_CELLS = 0.5, (3,) * 9, 2.0, 2.1
FEW_RECORDS_HALVINGS = 3.5
#: Synthetic points for each centre, the least and the most of them. Along axes that the tree does not cut,
#: points of a cell have `OUTSIDE_SPREAD` of the standard deviation of all records.
POINTS_PER_CENTRE, LEAST_POINTS, MOST_POINTS, OUTSIDE_SPREAD = 40, 1000, 6000, 0.5
#: Move of a mean by clipping, as a share of the mean overshoot, by round: the first centres are far off.
FEW_RECORDS_BIAS = (0.7, 0.5, 0.35)
#: From so many columns on, up to so many centres and records, the density is a mixture fitted to a Fourier
#: sketch instead. In fewer columns cells of a tree are fine enough.
SKETCH_COLUMNS, SKETCH_CENTRES, SKETCH_RECORDS = 3, 64, 50_000
#: The more clusters, the more frequencies it takes to tell them apart.
FREQUENCIES_PER_CENTRE, LEAST_FREQUENCIES, MOST_FREQUENCIES = 32, 1000, 2048
#: Relative error of the declared number of records, where noise hides the true one.
SIZE_DOUBT = 0.5

# --- public rows --------------------------------------------------------------------------------------------
#: Share of the check whether public rows are of the records' kind.
PUBLIC_CHECK = 0.03
#: The check divides half of the public rows into up to so many groups, of so many rows on average. For
#: this, and to find seeds among, no more than `ENOUGH_ROWS` are needed.
PUBLIC_GROUPS, ROWS_PER_GROUP, ENOUGH_ROWS = 16, 8, 1000
#: The groups must explain this part of what they explain of public rows, by so many standard errors.
PUBLIC_EXPLAINS, CHECK_ERRORS = 0.5, 1.0
#: Axes that centres are looked for along, and those along which moves are shrunk; public rows for each.
PUBLIC_AXES, PUBLIC_CANDIDATES, ROWS_PER_AXIS = 32, 64, 4

#: Laplace noise of a pure epsilon acts like Gaussian noise of about a third of it as mu.
PURE_AS_MU = 1 / 3


@dataclass(frozen=True)
class Schedule:
    """The public numbers of a run: shares, rounds and levels."""

    #: Columns of the random projection in which clusters are looked for; 0 where none is needed.
    sketch: int
    moments: bool
    radius_share: float
    subspace_share: float
    tree_share: float
    explore_share: float
    refine_shares: tuple[float, ...]
    tree_axes: int
    tree_depth: int
    tree_levels: int
    explore_rounds: int
    explore_centres: int
    #: Only where second moments are of chosen columns.
    columns_share: float = 0.0
    #: Only where k is open.
    pooled_share: float = 0.0
    #: Only where k is open: whether moves of all rounds but the last of each kind are lengthened.
    long_moves: bool = False
    #: Whether the last rounds, too, are taken along principal axes alone.
    along_axes: bool = False
    #: Whether the plan is for few records: no exploring rounds; refining rounds correct synthetic points.
    few_records: bool = False
    #: Frequencies of the Fourier sketch that takes the tree's place and share; 0 where there is a tree.
    frequencies: int = 0
    #: Only where public rows may take the place of second moments.
    check_share: float = 0.0

    def to_json(self) -> dict[str, Any]:
        numbers = {**asdict(self), "refine_shares": list(self.refine_shares)}
        optional = ("columns_share", "pooled_share", "long_moves", "along_axes", "few_records", "frequencies")
        for name in (*optional, "check_share"):
            if not numbers[name]:
                del numbers[name]
        return numbers

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "refine_shares": tuple(data["refine_shares"])})


def schedule_for(domain: Domain, request: Request) -> Schedule:
    """Shares, rounds and levels for these public numbers."""
    shares = Shares(request.budget, domain.rows_per_person)
    size, width, pure = domain.size, domain.dimension, request.budget.is_pure
    k, strength = clusters_for(domain, request), _strength(shares)
    open_range = isinstance(request.k, KRange)
    pooled = open_k.POOLED if open_range else 0.0
    _require_enough(size, shares)
    sketch = min(max(SKETCH_ENTRIES // width, LEAST_SKETCH), MOST_SKETCH) if width > MOST_COLUMNS else 0
    seen = sketch or width
    moments = width > 1 and (not pure or seen**1.5 / (0.15 * size * shares.total) < PURE_MOMENTS_NOISE)
    if not moments and width > RANDOM_AXES:
        sketch = RANDOM_AXES
    per_centre = size * strength / k
    single_means = request.objective == "means" and not open_range
    offered = moments and not sketch and takes_public_rows(domain, request)
    few_records = single_means and not (sketch or offered) and _has_few_records(domain, request, per_centre)
    columns = COLUMNS if moments and width >= COLUMNS_FROM and not (pure or sketch or few_records) else 0.0
    along = columns > 0 and single_means and width > ALONG_AXES * per_centre**2
    # Pure moments get more noise than moments of few columns.
    subspace = _moments_weight(seen, size * strength, few_records, along, frugal=not pure) if moments else 0.0
    tree, explore, refine = _proportions(width, few_records, wide=columns > 0)
    if pure and sketch and not moments and request.objective == "means" and domain.kind != "sparse":
        noise = width * k / (size * shares.total)
        refine *= min(max((noise / BLIND_NOISE) ** 2, 1.0), MOST_BLIND_REFINE)
    radius = min(max((RADIUS_SIGNAL * size * strength) ** -2, LEAST_RADIUS), MOST_RADIUS)
    check = PUBLIC_CHECK if offered else 0.0
    whole = (subspace + tree + explore + refine) / (1 - CENTRE - radius - columns - pooled - check)
    plenty = per_centre >= PLENTY
    explore_rounds = 1 if pure else 3 if plenty else 2
    refine_rounds = (2 if plenty or sketch else 1) if pure else 3 if plenty else 2
    long_moves = open_range and plenty and not (pure or sketch) and width < COLUMNS_FROM
    weights = [REFINE_GROWTH**i for i in range(refine_rounds)]
    axes = min(TREE_AXES, width)
    fine = first_bits(size, _count_deviation(shares, tree / whole), MOST_DEPTH)
    depth = max(4, round(HALVINGS_PER_AXIS * axes), fine)
    if few_records:
        explore_rounds, weights = 0, [FEW_RECORDS_GROWTH**i for i in range(FEW_RECORDS_ROUNDS)]
        finest = math.log2(size * strength) + FEW_RECORDS_CELLS
        depth = max(4, min(round(FEW_RECORDS_HALVINGS * axes), round(finest)))
    frequencies = 0
    if few_records and _uses_sketch(domain, k):
        frequencies = min(max(FREQUENCIES_PER_CENTRE * k, LEAST_FREQUENCIES), MOST_FREQUENCIES)
        depth = 0
    seed_width = SEED_COORDINATES if pure or open_range else width
    return Schedule(
        sketch=sketch,
        moments=moments,
        radius_share=radius,
        subspace_share=subspace / whole,
        tree_share=tree / whole,
        explore_share=explore / whole,
        refine_shares=tuple(refine / whole * w / sum(weights) for w in weights),
        tree_axes=axes,
        tree_depth=depth,
        tree_levels=0 if frequencies else _tree_levels(size, depth, shares, tree / whole, few_records),
        explore_rounds=explore_rounds,
        explore_centres=_most_seeds(k, seed_width, per_centre, few_records),
        columns_share=columns,
        pooled_share=pooled,
        long_moves=long_moves,
        along_axes=along,
        few_records=few_records,
        frequencies=frequencies,
        check_share=check,
    )


def takes_public_rows(domain: Domain, request: Request) -> bool:
    """Whether public rows are offered and stand for what is hard to measure: axes of many columns."""
    single_means = request.objective == "means" and not isinstance(request.k, KRange)
    wide = domain.kind == "dense" and domain.dimension > MOST_AXES and not request.budget.is_pure
    return request.public_rows is not None and wide and single_means


def _has_few_records(domain: Domain, request: Request, per_centre: float) -> bool:
    """Whether records are too few for exploring rounds, and enough for synthetic points."""
    fits = domain.dimension <= FEW_RECORDS_WIDTH and not request.budget.is_pure
    below = FEW_RECORDS_BELOW
    if not _uses_sketch(domain, request.clusters):
        below = min(below, FEW_RECORDS_CENTRES / math.log2(max(request.clusters, 2)))
    above = FEW_RECORDS_LEAST / request.clusters
    if domain.dimension > FEW_RECORDS_NARROW:
        above = max(above, (domain.dimension + FEW_RECORDS_NARROW) / FEW_RECORDS_STEP)
    return fits and above <= per_centre < below


def _uses_sketch(domain: Domain, k: int) -> bool:
    """Whether a Fourier sketch, which takes long for many records or centres, takes the place of the tree."""
    return domain.dimension >= SKETCH_COLUMNS and k <= SKETCH_CENTRES and domain.size <= SKETCH_RECORDS


def _proportions(width: int, few_records: bool, wide: bool) -> tuple[float, float, float]:
    """What the tree, exploring and refining get beside each other."""
    if few_records:
        return FEW_RECORDS_TREE, 0.0, FEW_RECORDS_REFINE * (1 + width / FEW_RECORDS_COLUMNS)
    return TREE, WIDE_EXPLORE if wide else EXPLORE, REFINE


def _moments_weight(width: int, power: float, few_records: bool, along: bool, frugal: bool) -> float:
    """What second moments get beside the other parts: less of few columns if `frugal`; `power` is N * mu."""
    wanted = 2 * width / (SUBSPACE_SIGNAL * power) ** 2
    if few_records:
        wanted = min(wanted, 2 * width**3 / (FEW_RECORDS_SIGNAL * power) ** 2)
        most = max(FEW_RECORDS_SUBSPACE * min(1.0, width / FEW_RECORDS_COLUMNS), LEAST_TURN)
        return min(max(wanted, LEAST_TURN), most)
    least = LEAST_SUBSPACE
    if frugal:
        few = LEAST_SUBSPACE * width / SUBSPACE_COLUMNS
        least = min(least, max(few, LEAST_TURN, TURN_ROOM * wanted))
    return min(max(wanted, least), MOST_ALONG_SUBSPACE if along else MOST_SUBSPACE)


def clusters_for(domain: Domain, request: Request) -> int:
    """The number of clusters to measure: k, or as many fine ones as a range and the records can carry."""
    if not isinstance(request.k, KRange):
        return request.k
    strength = _strength(Shares(request.budget, domain.rows_per_person))
    most = max(round(open_k.FINE_PER_CLUSTER * request.k.last), open_k.LEAST_FINE)
    return min(most, max(round(domain.size * strength / open_k.FINE_RECORDS), open_k.LEAST_FINE))


def _strength(shares: Shares) -> float:
    """The budget as a mu, roughly."""
    return shares.total * (PURE_AS_MU if shares.budget.is_pure else 1.0)


def _require_enough(size: int, shares: Shares) -> None:
    """Refuse a budget too small to measure even the order of the number of records."""
    spread = 1 / shares.total * (math.sqrt(2) if shares.budget.is_pure else 1.0)
    least = 4.0 * spread
    if size < least:
        raise EpsilonTooSmall(
            f"this budget is too small for fewer than about {math.ceil(least)} records, and the dataset is "
            f"declared to have {size}: ask for a larger epsilon",
            parameter="epsilon",
        )


def _most_seeds(k: int, width: int, per_centre: float, few_records: bool) -> int:
    """Seeds to follow at most; in a plan for few records, exactly the centres of its first round."""
    if few_records:
        return round(k * min(max(per_centre / FEW_RECORDS_SEED, 1.0), FEW_RECORDS_OVERSEED))
    spare = min(SEED_COORDINATES // width, SEEDS_PER_COLUMN * width, MOST_SEEDS)
    return max(round(OVERSEED * k), ENOUGH_SEEDS, spare)


def _count_deviation(shares: Shares, fraction: float) -> float:
    """Standard deviation of a noisy count that spends this fraction of the budget."""
    return additive_noise(shares.noise(fraction)).deviation()


def first_bits(size: float, noise: float, depth: int, head: float = HEAD) -> int:
    """Halvings of the first level: as many as leave `head` standard deviations in an average cell."""
    room = math.log2(max(size / (head * noise), 2.0))
    return int(min(max(math.floor(room), 1), depth, MOST_FIRST_BITS))


def affordable_seeds(size: float, noise: float, k: int, most: int) -> int:
    """Number of seeds to follow, given about how many records there are and the noise in the size of one."""
    asked = min(round(OVERSEED * k), size / (SEED_NOISES * noise))
    spare = min(most, size / (SPARE_SEED_NOISES * noise))
    return int(max(asked, spare, min(k, 8), 2))


def tree_bits(size: float, noise: float, depth: int, levels: int, few_records: bool) -> list[int]:
    """Halvings of each of at most `levels` levels of the tree."""
    head, later = (FEW_RECORDS_HEAD, FEW_RECORDS_BITS) if few_records else (HEAD, LATER_BITS)
    return level_bits(first_bits(size, noise, depth, head), later, depth, levels)


def synthetic_point_count(k: int) -> int:
    """The number of synthetic points for k clusters."""
    return max(min(max(POINTS_PER_CENTRE * k, LEAST_POINTS), MOST_POINTS), 3 * k)


def _tree_levels(size: int, depth: int, shares: Shares, share: float, few_records: bool) -> int:
    """Number of levels that reach the planned depth, given that each gets an equal share."""
    levels = 1
    for _ in range(3):  # more levels mean more noise, fewer first bits and more levels: settles at once
        noise = _count_deviation(shares, share / levels)
        levels = len(tree_bits(size, noise, depth, depth, few_records))
    return levels
