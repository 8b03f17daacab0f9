"""What to expect of a plan before it runs: the noise in sizes and centres, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.data import UNITS, Domain, Ids
from core.mechanisms import GaussianNoise, L2Noise, LaplaceNoise
from core.plan import Step
from core.statistics import ClusterCounts, GroupSums, ResidualSums


def widest_unit(domain: Domain) -> float:
    """Data units per encoded unit in the widest column."""
    return 0.0 if isinstance(domain, Ids) else float(domain.unit_lengths().max())


def forecast_of(
    steps: Sequence[Step], domain: Domain, k: int, *, radius: int | None = UNITS, positions: bool = True
) -> dict[str, float]:
    """The noise of the last sizes and sums that these steps measure.

    `size_noise`: the standard deviation of the noise in the size of a cluster. `noise_at_bounds`: that in
    each coordinate of a centre, in the units of the widest column, for a cluster of the average share 1/k
    clipped to `radius` (in encoded units), or, where `radius` is None because each round releases radii, to
    the bounds: the worst case. Only then `noise_per_radius`: the same as a fraction of the radius a cluster
    is clipped to. `positions` is False where centres are not noisy means: nothing is said of them then.
    """
    forecast = {"cluster_share": 1 / k}
    sizes = _last(steps, ClusterCounts.kind)
    if sizes is not None:
        forecast["size_noise"] = sizes.deviation(1)
    residuals, rows = _last(steps, ResidualSums.kind), _last(steps, GroupSums.kind)
    sums = residuals or rows
    if sums is not None and positions:
        noise = sums.deviation(domain.dimension) * k / domain.size
        if residuals is None and sizes is not None:
            # Whole rows were added: noise in the size they are divided by moves a mean at the bounds as well.
            noise = math.hypot(noise, sizes.deviation(1) * k / domain.size / math.sqrt(domain.dimension))
        forecast["noise_at_bounds"] = noise * (radius or UNITS) * widest_unit(domain)
        if radius is None:
            forecast["noise_per_radius"] = noise
    return forecast


def _last(steps: Sequence[Step], statistic: str) -> GaussianNoise | LaplaceNoise | L2Noise | None:
    """The noise of the last step that measures this."""
    found = [step.mechanism for step in steps if step.statistic == statistic]
    noisy = [m for m in found if isinstance(m, (GaussianNoise, LaplaceNoise, L2Noise))]
    return noisy[-1] if noisy else None
