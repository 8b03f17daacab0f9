"""The size of the noise in sizes and centres: forecast from a plan's steps, and stated with a result."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from core.arrays import Floats
from core.blocks.base import Clusters
from core.data import UNITS, Dense, Domain, Geometry, Ids, Sparse
from core.mechanisms.noise import AdditiveNoise
from core.plan import Plan, Step
from core.statistics.counts import ClusterCounts
from core.statistics.sums import GroupSums, LiftedSums, ResidualSums

RELEASED = "released"  # The clip of blocks whose rounds release the radii that they clip to.
_NORMAL_TAIL = 1.96  # Standard deviations that normal noise stays within in 95 of 100 draws.
_ROUNDING = 0.5  # Sizes are rounded to whole numbers by at most this.
_LEAST_SIZE = 1e-9  # A size whose interval begins at zero: that of the centre is as wide as the bounds.

Ends = tuple[Floats, Floats]


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the noise in a result, for error bars."""

    #: In the size of a cluster, in records; None where no sizes are counted.
    size: float | None = None
    #: In each coordinate of each centre, in units of the widest column; None where centres are not means.
    centres: tuple[float, ...] | None = None
    #: Factors of `centres` for each column: its unit over that of the widest; None where all are alike.
    columns: tuple[float, ...] | None = None
    #: Standard deviations that the noise stays within in 95 of 100 runs.
    tail: float = _NORMAL_TAIL

    @property
    def deviations(self) -> Floats | None:
        """Standard deviations of the noise in each coordinate of each centre, in its own unit."""
        if self.centres is None:
            return None
        return np.outer(self.centres, (1.0,) if self.columns is None else self.columns)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class NoiseIntervals:
    """95% intervals of what the last round would have released without noise, of each cluster.

    Those of centres are approximate: a centre is a noisy sum over a noisy size, and its interval is that for
    a size at the lower end of the size's own. Clipping, and what another run would find, are left out.
    """

    #: Both ends for each size; None where no sizes are counted.
    sizes: Ends | None
    #: Both ends in the data's units, inside the bounds; None where the noise in centres is not known.
    centres: Ends | None

    @classmethod
    def of(cls, domain: Domain, centres: Floats, sizes: Floats | None, noise: Noise) -> Self:
        """The intervals of a release whose centres are in the data's units."""
        of_sizes, of_centres, wider = None, None, np.ones(len(centres))
        if noise.size is not None and sizes is not None:
            reach = noise.tail * noise.size + _ROUNDING
            of_sizes = np.maximum(sizes - reach, 0.0), np.maximum(sizes + reach, reach / 2)
            wider = np.maximum(sizes, 1.0) / np.maximum(of_sizes[0], _LEAST_SIZE)
        if noise.deviations is not None and isinstance(domain, Dense | Geometry):
            away = noise.tail * noise.deviations * wider[:, None]
            low, high = _ends(domain)
            of_centres = np.clip(centres - away, low, high), np.clip(centres + away, low, high)
        return cls(of_sizes, of_centres)

    def to_json(self) -> dict[str, Any]:
        """The ends by the names that releases with an open k have for theirs; without those not known."""
        named = {"size": self.sizes, "centre": self.centres}
        return {
            f"{name}_{end}": values.tolist()
            for name, ends in named.items()
            if ends is not None
            for end, values in zip(("low", "high"), ends, strict=True)
        }


def _ends(domain: Dense | Geometry) -> Ends:
    """The least and the greatest value of each coordinate."""
    if isinstance(domain, Geometry):
        low, high = (domain.decode_alone(end[None, :])[0] for end in domain.bounds_units)
        return low, high
    if domain.low is not None and domain.high is not None:
        return np.array(domain.low), np.array(domain.high)
    assert domain.radius is not None
    middle = domain.decode(np.zeros((1, domain.dimension)))[0]
    return middle - domain.radius, middle + domain.radius


def widest_unit(domain: Domain) -> float:
    """Data units per encoded unit in the widest column."""
    return 0.0 if isinstance(domain, Ids) else float(domain.unit_lengths().max())


def forecast_of(steps: Sequence[Step], domain: Domain, k: int, clip: int | str | None) -> dict[str, float]:
    """The noise of the last sizes and sums that these steps measure, from public numbers alone.

    `size_noise`: the standard deviation of the noise in the size of a cluster. `noise_at_bounds`: that in
    each coordinate of a centre, in the units of the widest column, for a cluster of the average share 1/k
    clipped to the radius `clip` or, where each round releases radii, to the bounds: the worst case. Tables
    have none, since their columns have no unit in common. Only where radii are released `noise_per_radius`:
    the same as a fraction of the radius a cluster is clipped to.
    """
    forecast = {"cluster_share": 1 / k}
    sizes = _last(steps, ClusterCounts.kind)
    if sizes is not None:
        forecast["size_noise"] = sizes.deviation(1)
    noise = _per_radius(steps, domain, domain.size / k)
    if noise is not None and clip is not None:
        radius = clip if isinstance(clip, int) else UNITS
        if not isinstance(domain, Geometry):
            forecast["noise_at_bounds"] = noise * radius * widest_unit(domain)
        if clip == RELEASED:
            forecast["noise_per_radius"] = noise
    return forecast


def noise_of(plan: Plan, found: Clusters, clip: int | str | None) -> Noise:
    """The noise in what a run of the plan has released."""
    centres = columns = None
    if clip is not None and not isinstance(plan.domain, Ids):
        sizes = np.full(plan.k, plan.domain.size / plan.k) if found.sizes is None else found.sizes
        fixed = float(clip) if isinstance(clip, int) else float(UNITS)
        radii = np.full(plan.k, fixed) if found.radii is None else found.radii
        noises = [_per_radius(plan.steps, plan.domain, max(float(size), 1.0)) for size in sizes]
        unit = widest_unit(plan.domain)
        centres = tuple(n * float(r) * unit for n, r in zip(noises, radii, strict=True) if n is not None)
        if not isinstance(plan.domain, Sparse):
            columns = tuple((plan.domain.unit_lengths() / unit).tolist())
    tails = (step.mechanism.tail for step in plan.steps if isinstance(step.mechanism, AdditiveNoise))
    tail = max(tails, default=_NORMAL_TAIL)
    return Noise(plan.forecast.get("size_noise"), centres or None, columns, tail)


def _per_radius(steps: Sequence[Step], domain: Domain, size: float) -> float | None:
    """The noise in each coordinate of the mean of this many records, for a clipping radius of one."""
    residuals, rows = _last(steps, ResidualSums.kind, LiftedSums.kind), _last(steps, GroupSums.kind)
    sums = residuals or rows
    if sums is None:
        return None
    noise = sums.deviation(domain.dimension) / size
    sizes = _last(steps, ClusterCounts.kind)
    if residuals is None and sizes is not None:
        # Whole rows were added: noise in the size they are divided by moves a mean at the bounds as well.
        noise = math.hypot(noise, sizes.deviation(1) / size / math.sqrt(domain.dimension))
    return noise


def _last(steps: Sequence[Step], *statistics: str) -> AdditiveNoise | None:
    """The noise of the last step that measures one of these."""
    found = [step.mechanism for step in steps if step.statistic in statistics]
    return next((m for m in reversed(found) if isinstance(m, AdditiveNoise)), None)
