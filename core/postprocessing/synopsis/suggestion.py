"""A number of clusters to start from: where the loss falls below that of one blob by most."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.data import Domain, Geometry
from core.postprocessing.synopsis.lloyd import LloydRows
from core.postprocessing.synopsis.losses import LossEstimate
from core.postprocessing.synopsis.partitions import Cloud

_BLOB_ROWS = 3000  # Rows of the blob.
_BLOB_ROUNDS = 20  # Rounds of Lloyd's algorithm on them for each number of clusters that is tried.
_TOLERANCE = 0.03  # The first k whose gap is this close to the largest is suggested.
_AS_MUCH = round(100 * _TOLERANCE)  # The same in per cent.
_LEAST_SHOWN = 0.5  # Per cent that are not rounded to none.
_NEIGHBOURS = 2  # Other numbers that fit are named up to this far from the suggested one.
_LEAST_GAIN = 0.05  # Where no gap exceeds that of one cluster by this, there is nothing to split.
#: In tables each further cluster must gain more than records with a rare level do, which are small groups of
#: their own within a cluster: more than this many times a low quantile of all gains.
_STEADY = 2.0
_QUARTER = 0.25  # The level of that quantile.
_LEAST_STEADY = 0.03  # That gain is at least this.
_MOST_STEADY = 0.08  # That gain is at most this.
_OF_LEVELS = "groups that differ in a category or boolean alone count as clusters: look at smaller k, too"
#: Numbers of clusters that are tried on the blob grow by this factor; losses between them are interpolated.
_GROWTH = 1.4


@dataclass(frozen=True)
class Suggestion:
    """A number of clusters, and why."""

    k: int
    reason: str


def suggest(cloud: Cloud, losses: Mapping[int, LossEstimate], draw: np.random.Generator) -> Suggestion:
    """The gap statistic of the made-up rows against one Gaussian blob of the same covariance."""
    ks = sorted(losses)
    tried = _tried(ks[0], ks[-1])
    blob = np.interp(np.log(ks), np.log(tried), _blob_losses(cloud, tried, draw))
    gaps = {k: float(level) - math.log(max(losses[k].value, 1e-9)) for k, level in zip(ks, blob, strict=True)}
    top = max(gaps.values())
    if top - gaps[ks[0]] < _LEAST_GAIN:
        return Suggestion(
            ks[0], f"k = {ks[0]}: more clusters fit these records no better than they would fit a single blob"
        )
    domain = cloud.model.cells.domain
    best = first_near_top(gaps, steady_gain(gaps) if isinstance(domain, Geometry) else 0.0)
    noise = {k: math.log(max(loss.high, 1e-9) / max(loss.low, 1e-9)) / 2 for k, loss in losses.items()}
    parts = [why(best, gaps, noise), also_fitting(best, gaps, noise)]
    return Suggestion(best, "; ".join([*filter(None, parts), *([_OF_LEVELS] if _has_levels(domain) else [])]))


def why(best: int, gaps: Mapping[int, float], noise: Mapping[int, float]) -> str:
    """What the suggested k gains on the first one, with the interval of the gain where there is one."""
    first = min(gaps)
    if best == first:
        return (
            f"k = {best}: compared with a single blob of the same shape, no larger k gains {_AS_MUCH}% on it"
        )
    gain, off = gaps[best] - gaps[first], noise[best] + noise[first]
    lower, least, most = (max(0.0, 100 * (1 - math.exp(-each))) for each in (gain, gain - off, gain + off))
    if least >= _LEAST_SHOWN:
        words = f"the loss is {lower:.0f}% ({least:.0f}% to {most:.0f}%) lower"
    elif most <= 100 - _LEAST_SHOWN:
        words = f"the loss is not more than {most:.0f}% lower"
    else:
        words = "noise hides how much lower the loss is"
    return (
        f"k = {best}: compared with a single blob of the same shape, {words} than at k = {first}, and no "
        f"larger k gains another {_AS_MUCH}%"
    )


def also_fitting(best: int, gaps: Mapping[int, float], noise: Mapping[int, float]) -> str:
    """The numbers next to the suggested one that noise, or too small a gain, does not distinguish from it."""

    def fits(k: int) -> bool:
        return abs(gaps[k] - gaps[best]) <= max(_TOLERANCE, noise[k], noise[best])

    near: list[int] = []
    for step in (-1, 1):
        k = best + step
        while k in gaps and fits(k) and abs(k - best) <= _NEIGHBOURS:
            near.append(k)
            k += step
    if not near:
        return ""
    hidden = all(abs(gaps[k] - gaps[best]) > _TOLERANCE for k in near)
    reason = "noise hides which is better" if hidden else f"they differ by less than {_AS_MUCH}% or noise"
    named = " and ".join(map(str, sorted(near)))
    return f"more than one k fits: {named} as well, because {reason}"


def _has_levels(domain: Domain) -> bool:
    """Whether records differ in levels, which set groups apart however few records differ in them."""
    return isinstance(domain, Geometry) and any(axis.column.is_discrete for axis in domain.axes)


def first_near_top(gaps: Mapping[int, float], each: float) -> int:
    """The first k from which no larger one gains more than the tolerance, and `each` for every cluster."""
    ks = sorted(gaps)
    return next(
        k
        for k in ks
        if all(gaps[more] - gaps[k] <= _TOLERANCE + each * (more - k) for more in ks if more > k)
    )


def steady_gain(gaps: Mapping[int, float]) -> float:
    """What a further cluster of a table gains once all clusters are found: rare levels split off."""
    gains = np.diff([gaps[k] for k in sorted(gaps)])
    return float(np.clip(_STEADY * np.quantile(gains, _QUARTER), _LEAST_STEADY, _MOST_STEADY))


def _tried(first: int, last: int) -> list[int]:
    """Numbers from the first to the last, ever farther apart."""
    found = [first]
    while found[-1] < last:
        found.append(min(max(found[-1] + 1, round(_GROWTH * found[-1])), last))
    return found


def _blob_losses(cloud: Cloud, ks: list[int], draw: np.random.Generator) -> Floats:
    """Logarithms of the loss of k clusters in one blob, with the covariance of the cloud."""
    sample = cloud.flat[:_BLOB_ROWS]
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(sample.T)))
    normal = draw.normal(size=sample.shape)
    alike, _ = np.linalg.qr(normal - normal.mean(axis=0))  # uncorrelated columns of length one
    blob = LloydRows(alike * np.sqrt(len(sample) * np.maximum(variances, 0.0)))
    starts = blob.spread(np.zeros((1, sample.shape[1])), ks[-1], draw)
    losses = [blob.loss(blob.settled(starts[:k], _BLOB_ROUNDS)) for k in ks]
    logs: Floats = np.log(np.maximum(np.array(losses) + cloud.unspanned.mean(), 1e-9))
    return logs
