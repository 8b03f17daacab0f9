"""Weighted k-means on released points: free, because it never sees rows.

scikit-learn is imported when it is first needed, or by `load`: a process that only plans starts in half the
time without it.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from core.arrays import Floats

Numbers = npt.NDArray[np.intp]

#: Weights of at least this keep every point in play; released counts may be zero or negative.
_LEAST_WEIGHT = 1e-9
#: Up to this many points are also merged pair by pair: the best start where clusters lie apart.
_MOST_MERGED = 800
_MOST_AT_ONCE = 1 << 20  # Distances of points to centres, over all restarts, that are computed at once.
_MOST_ROUNDS = 100
#: On more points than this starts and rounds are few: until centres settle, one coreset of many cells takes
#: several times as long as another, and rounds on the records follow in any case.
_MANY_POINTS = 10_000
_STARTS_ON_MANY = 2  # Starts on many points, at most.
_ROUNDS_ON_MANY = 10  # Rounds of each start on many points.
_STARTS = 5  # Random starts on many points for the best k-means.
_TRIED_ROUNDS = 4  # Rounds of each new start for the best k-means, before only the best is followed.
_MOST_WORK = 2e7  # Points times columns times centres above which there is a single random start.
_SOME_MERGED = 400  # Of many points, those that are merged pair by pair for one more start.
_CELL_STARTS = 10  # Starts on cells of a grid, at most.
_LEAST_CELL_STARTS = 3  # Starts on cells of a grid, at least.
_CELL_VISITS = 7e5  # Visits to cells, over all starts, that limit the number of starts in between.
_CELL_ROUNDS = 12  # Rounds of each start on cells.
_LAST_ROUNDS = 30  # Further rounds of the best start on cells.


def weighted_kmeans(
    points: Floats, weights: Floats, k: int, draw: np.random.Generator, restarts: int = 10
) -> Floats:
    """k centres of weighted points, or the points themselves where there are no more than k.

    One thread: the sums of several threads depend on their order, and a release must not.
    """
    seed = int(draw.integers(1 << 31))
    distinct, owner = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) <= k:
        return distinct
    mass: Floats = np.bincount(owner.reshape(-1), np.maximum(weights, _LEAST_WEIGHT)).astype(np.float64)
    merged = agglomerated(distinct, mass, k) if len(distinct) <= _MOST_MERGED else None
    if merged is not None and restarts * len(distinct) * k <= _MOST_AT_ONCE:
        with single_threaded():
            spread = distinct[_spread(distinct, mass, k, restarts, draw)]
            return _best_of(distinct, mass, np.concatenate([spread, merged[None]]))
    if len(distinct) > _MANY_POINTS:
        starts = min(restarts, _STARTS_ON_MANY)
        return _best([KMeans(k, n_init=starts, random_state=seed, max_iter=_ROUNDS_ON_MANY)], distinct, mass)
    solvers = [KMeans(k, n_init=restarts, random_state=seed)]
    if merged is not None:
        solvers.append(KMeans(k, init=merged, n_init=1))
    return _best(solvers, distinct, mass)


def many_points_operations(points: float, columns: float, k: float) -> float:
    """Operations of `weighted_kmeans` on this many points, for plans; few points are not counted.

    Seeding by k-means++ takes as long as some rounds.
    """
    if points <= _MANY_POINTS:
        return 0.0
    return _STARTS_ON_MANY * (_ROUNDS_ON_MANY + 4 + math.log(k)) * points * k * (2.6 + 0.22 * columns)


def kmeans_for_each(
    points: Floats, weights: Floats, ks: Iterable[int], draw: np.random.Generator, restarts: int = 10
) -> dict[int, Floats]:
    """k centres of few weighted points for each k, all smaller than their number.

    Points are merged pair by pair once for all k. Random starts are drawn once, too: the first k points of
    one for more centres are a start for k.
    """
    ks = list(ks)
    if not ks:
        return {}
    mass = np.maximum(weights, _LEAST_WEIGHT)
    merged = merges(points, mass)
    with single_threaded():
        spread, found = points[_spread(points, mass, max(ks), restarts, draw)], {}
        for k in ks:
            by_merging = _after_merges(points, mass, merged, k)
            found[k] = _best_of(points, mass, np.concatenate([spread[:, :k], by_merging[None]]))
    return found


def best_kmeans(
    points: Floats,
    weights: Floats,
    k: int,
    draw: np.random.Generator,
    start: Floats | None = None,
    new_starts: bool = True,
) -> Floats:
    """k centres of many weighted points: the best of those that a start and, if asked, new ones lead to.

    Of the new ones only that which is best after a few rounds is followed until it settles.
    """
    solvers = [] if start is None else [KMeans(k, init=start, n_init=1)]
    tried: list[Any] = []
    few = min(len(points), _SOME_MERGED)
    if new_starts and 3 * k <= few:
        some = draw.choice(len(points), few, replace=False)
        merged = agglomerated(points[some], weights[some], k)
        tried.append(KMeans(k, init=merged, n_init=1, max_iter=_TRIED_ROUNDS))
    cheap = points.size * k <= _MOST_WORK
    if (new_starts and cheap) or not (solvers or tried):
        with single_threaded():
            near = (points - points.mean(axis=0)).astype(np.float32)  # for starts that is enough
            starts = _spread(near, weights, k, _STARTS if cheap else 1, draw)
        tried.append(KMeans(k, init=_those_of(starts), n_init=len(starts), max_iter=_TRIED_ROUNDS))
    if tried:
        solvers.append(KMeans(k, init=_best(tried, points, weights), n_init=1))
    return _best(solvers, points, weights)


def kmeans_of_cells(points: Floats, weights: Floats, k: int, draw: np.random.Generator) -> Floats:
    """k centres of weighted points that are all different, in a number of rounds that is known beforehand.

    Until centres settle, as many cells take five times as many rounds on one table as on another.
    """
    if len(points) <= max(_MOST_MERGED, k):
        return weighted_kmeans(points, weights, k, draw, _CELL_STARTS)
    seed, starts = int(draw.integers(1 << 31)), round(_starts_on_cells(len(points)))
    first = KMeans(k, n_init=starts, random_state=seed, max_iter=_CELL_ROUNDS, tol=0)
    begun = _best([first], points, weights)
    return _best([KMeans(k, init=begun, n_init=1, max_iter=_LAST_ROUNDS)], points, weights)


def _starts_on_cells(cells: float) -> float:
    return min(max(_CELL_VISITS / max(cells, 1.0), _LEAST_CELL_STARTS), _CELL_STARTS)


def operations_of_cells(cells: float, columns: float, k: float) -> float:
    """Operations of `kmeans_of_cells` at most, for plans: seeds by k-means++, and all rounds."""
    trials = 2 + math.log(k)
    seeding = 700.0 + 30.0 * columns + k * trials * (12.0 + 1.4 * columns)
    a_round = 12.0 + k * (7.0 + 0.16 * columns)
    visits = cells * _starts_on_cells(cells)
    return visits * (seeding + _CELL_ROUNDS * a_round) + cells * _LAST_ROUNDS * a_round


def best_kmeans_operations(points: float, columns: float, k: float) -> float:
    """Operations of `best_kmeans` with new starts, for plans: until centres settle, as profiles show it."""
    starts = 1 + (_STARTS if points * columns * k <= _MOST_WORK else 0)
    return starts * points * k * (400.0 + 20.0 * columns)


def merge_operations(points: float) -> float:
    """Operations to merge points pair by pair, for plans; more than a limit are not merged."""
    return 300.0 * min(points, _MOST_MERGED) ** 2


def load() -> None:
    """Import scikit-learn now: a worker's first job must take no longer than the next."""
    _libraries()


def KMeans(k: int, **options: Any) -> Any:  # noqa: N802
    """The solver of scikit-learn, whose name it has."""
    from sklearn import cluster

    return cluster.KMeans(k, **options)


@contextmanager
def _quiet() -> Iterator[None]:
    """One thread, and no warning of points so close that two centres coincide: odd data are not an error."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), single_threaded():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _best(solvers: list[Any], points: Floats, weights: Floats) -> Floats:
    """The centres of least loss."""
    with _quiet():
        fitted = [solver.fit(points, sample_weight=weights) for solver in solvers]
    found: Floats = min(fitted, key=lambda solver: float(solver.inertia_)).cluster_centers_
    return found


def _spread(
    points: npt.NDArray[np.floating], mass: Floats, k: int, starts: int, draw: np.random.Generator
) -> Numbers:
    """Draw several starts of k points each by greedy k-means++, all at once; in each row their numbers.

    scikit-learn draws the same way, one start after the other, and takes longer to check its arguments than
    a few hundred points take.
    """
    trials, last = 2 + int(math.log(k)), len(points) - 1
    squares, turned = (points * points).sum(axis=1), np.ascontiguousarray(points.T)
    chance, weights = mass / mass.sum(), mass.astype(points.dtype)

    def distances(some: Numbers) -> npt.NDArray[Any]:
        apart: npt.NDArray[Any] = (-2.0 * points[some]) @ turned
        apart += squares
        apart += squares[some][..., None]
        np.maximum(apart, 0.0, out=apart)
        return apart

    chosen = np.zeros((starts, k), dtype=np.intp)
    chosen[:, 0] = draw.choice(len(points), size=starts, p=chance)
    closest = distances(chosen[:, 0])
    for step in range(1, k):
        cumulative = np.cumsum(closest * weights, axis=1, dtype=np.float64)
        levels = draw.random((starts, trials)) * cumulative[:, -1:]
        tried = np.stack(
            [np.searchsorted(*each, side="right") for each in zip(cumulative, levels, strict=True)]
        )
        tried = np.minimum(tried, last)
        within = distances(tried)
        np.minimum(within, closest[:, None, :], out=within)
        best = (within @ weights).argmin(axis=1)
        rows = np.arange(starts)
        chosen[:, step], closest = tried[rows, best], within[rows, best]
    return chosen


def _those_of(starts: Numbers) -> Callable[..., Floats]:
    """Starts of scikit-learn's solver, one after the other: these of the points that it is given."""
    left = iter(starts)
    return lambda points, *_, **__: points[next(left)]


def _best_of(points: Floats, mass: Floats, starts: Floats) -> Floats:
    """Run Lloyd's algorithm from several starts at once; return the centres with the least loss."""
    centres = starts
    numbers = np.arange(starts.shape[1])
    owner = np.full((len(starts), len(points)), -1)
    for _ in range(_MOST_ROUNDS):
        scores = (centres * centres).sum(axis=2)[:, None, :] - 2.0 * points @ centres.transpose(0, 2, 1)
        nearest = scores.argmin(axis=2)
        if np.array_equal(nearest, owner):
            break
        owner = nearest
        members = (owner[:, :, None] == numbers) * mass[:, None]
        sizes = members.sum(axis=1)[:, :, None]
        sums = members.transpose(0, 2, 1) @ points
        centres = np.where(sizes > 0, sums / np.maximum(sizes, _LEAST_WEIGHT), centres)
    best: Floats = centres[(scores.min(axis=2) @ mass).argmin()]
    return best


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of this process, scikit-learn's OpenMP included; finding them takes milliseconds."""
    import sklearn.cluster  # noqa: F401  # its pool is there once it is loaded

    return ThreadpoolController()


def single_threaded() -> AbstractContextManager[object]:
    """One thread for all libraries: sums of several threads depend on their order, and a release must not."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limited


def agglomerated(points: Floats, weights: Floats, k: int) -> Floats:
    """k means of weighted points, merged pair by pair, always where that adds least to the loss (Ward)."""
    return _after_merges(points, weights, merges(points, weights), k)


def _after_merges(points: Floats, weights: Floats, merged: list[tuple[int, int, float]], k: int) -> Floats:
    """The means of weighted points after the first merges, which leave k of them."""
    owner = list(range(len(points)))
    for one, other, _ in reversed(merged[: len(points) - k]):
        owner[other] = owner[one]
    members = np.equal.outer(np.unique(owner), owner) * weights
    means: Floats = members @ points / members.sum(axis=1, keepdims=True)
    return means


def merges(points: Floats, weights: Floats) -> list[tuple[int, int, float]]:
    """Ward's merges in turn: the point that represents the union, the one that joins, the loss added.

    A merge never brings a third point closer than both parts were. So two points that are nearest to each
    other are merged sooner or later whatever becomes of the others, and all such pairs are merged at once;
    losses tell the order afterwards.
    """
    with single_threaded():
        found = _merges(
            _Left(np.arange(len(points)), points - points.mean(axis=0), weights.astype(np.float64))
        )
    return sorted(found, key=lambda merge: merge[2])  # equal ones stay in turn


def _merges(left: "_Left") -> list[tuple[int, int, float]]:
    """The same in another order, though no union is before its parts."""
    found: list[tuple[int, int, float]] = []
    while len(left.names) > 1:
        one = left.pairs()
        other = left.partner[one]
        # Rounding must not put a union before its parts.
        losses = np.maximum(left.least[one], np.maximum(left.merged_at[one], left.merged_at[other]))
        found += zip(left.names[one].tolist(), left.names[other].tolist(), losses.tolist(), strict=True)
        left.merge(one, other, losses)
    return found


class _Left:
    """Points and unions that are left, and what it costs to merge any two of them."""

    def __init__(self, names: Numbers, points: Floats, mass: Floats) -> None:
        self.names, self._points, self._mass = names, points, mass
        self._squares = (points * points).sum(axis=1)
        self._cost = self._costs(np.arange(len(names)))
        self._there = np.ones(len(names), dtype=bool)
        #: The nearest of the others, and what it costs to be merged with it.
        self.partner, self.least = self._cost.argmin(axis=1), self._cost.min(axis=1)
        #: The loss that the last merge of each added.
        self.merged_at = np.zeros(len(names))

    def pairs(self) -> Numbers:
        """The first of each two that are nearest to each other.

        There are some: costs are symmetric, and of equal ones the first counts.
        """
        numbers = np.arange(len(self.names))
        first: Numbers = np.flatnonzero(
            self._there & (numbers < self.partner) & (self.partner[self.partner] == numbers)
        )
        return first

    def merge(self, one: Numbers, other: Numbers, losses: Floats) -> None:
        """Let each of `other` join its partner in `one`."""
        mass = self._mass[one] + self._mass[other]
        share = (self._mass[other] / mass)[:, None]
        self._points[one] += share * (self._points[other] - self._points[one])
        self._squares[one], self._squares[other] = (self._points[one] ** 2).sum(axis=1), np.inf
        self._mass[one], self.merged_at[one] = mass, losses
        self._there[other] = False
        self._cost[:, other] = np.inf
        changed = np.zeros(len(self.names), dtype=bool)
        changed[one] = changed[other] = True
        stale = np.flatnonzero(self._there & changed[self.partner])
        if 2 * np.count_nonzero(self._there) <= len(self.names):
            number = np.cumsum(self._there) - 1
            one, stale = number[one], number[stale]
            self._keep(np.flatnonzero(self._there), number)
        fresh = self._costs(one)
        self._cost[one, :], self._cost[:, one] = fresh, fresh.T
        rows = self._cost[stale]
        self.partner[stale], self.least[stale] = rows.argmin(axis=1), rows.min(axis=1)

    def _keep(self, kept: Numbers, number: Numbers) -> None:
        """Forget those that are gone; the others get new numbers."""
        self.names, self._points, self._mass = self.names[kept], self._points[kept], self._mass[kept]
        self._squares, self.merged_at, self._there = (
            self._squares[kept],
            self.merged_at[kept],
            self._there[kept],
        )
        self._cost = self._cost[np.ix_(kept, kept)]
        self.partner, self.least = number[self.partner[kept]], self.least[kept]

    def _costs(self, some: Numbers) -> Floats:
        """What it costs to merge some with any; infinite with themselves and with those that are gone."""
        cost: Floats = self._points[some] @ self._points.T
        cost *= -2.0  # in place: fresh memory takes longer than the arithmetic
        cost += self._squares[some, None]
        cost += self._squares
        np.maximum(cost, 0.0, out=cost)
        cost *= self._mass[some, None]
        cost *= self._mass
        cost /= self._mass[some, None] + self._mass
        block = cost[:, some]
        cost[:, some] = np.minimum(block, block.T)  # the same both ways, to the last bit
        cost[np.arange(len(some)), some] = np.inf
        return cost


def nearest_points(
    points: npt.NDArray[np.floating], centres: npt.NDArray[np.floating]
) -> npt.NDArray[np.int64]:
    """For each released point the index of its nearest centre."""
    scores = points @ (-2.0 * centres).T
    scores += (centres * centres).sum(axis=1)
    nearest: npt.NDArray[np.int64] = scores.argmin(axis=1)
    return nearest
