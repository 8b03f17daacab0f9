"""Forecasts of planned jobs, in the words and with the thresholds of the console."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cairn_client.formatting import about, number

if TYPE_CHECKING:
    from cairn_client.wire import Amount, DatasetFacts

_MOST_RUNS = "in 95 of 100 runs"
_LEAST_DELTA = " An automatic delta is never less than a tenth of the default: set a smaller one, or 0."
#: Noise that leaves clusters as they are: as a share of the records of one, and of its radius.
_GOOD = (0.2, 0.03)
#: Noise in which clusters can still be found, as the same shares.
_FAIR = (0.8, 0.15)
_TOO_MUCH = "The noise is as large as the clusters"


def plan_verdict(
    plan: Mapping[str, Any],
    forecast: Mapping[str, Any],
    average_size: float,
    earlier: Mapping[str, Any] | None,
) -> str | None:
    """The noise beside the clusters, and what an earlier release adds; None where there is no forecast."""
    if (open_k := plan.get("k_range")) is None:
        found = verdict(forecast, average_size)
    else:
        found = range_verdict(forecast, average_size, plan["k"], open_k["from"], open_k["to"])
    if found is None or (earlier is None and found.startswith(_TOO_MUCH)):
        return found  # noise alone is too much: what else may be off matters no more
    return f"{found} {beyond_noise(earlier)}"


def verdict(forecast: Mapping[str, Any], average_size: float) -> str | None:
    """Compare the noise with the clusters in one sentence; None where the algorithm makes no forecast."""
    found = _strain(forecast, average_size)
    if found is None:
        return None
    if any(share > limit for share, limit in zip(found, _FAIR, strict=True)):
        return f"{_TOO_MUCH}: raise epsilon, or ask for fewer clusters."
    if any(share > limit for share, limit in zip(found, _GOOD, strict=True)):
        return "The noise is noticeable: expect accurate large clusters and inaccurate small ones."
    return "The noise is small beside the clusters."


def beyond_noise(earlier: Mapping[str, Any] | None) -> str:
    """Say what an earlier release of one's own adds to a forecast, which counts noise alone."""
    if earlier is not None:
        return str(earlier["sentence"])
    return (
        "This counts noise only: clusters of few records far from all others can be off by more. Once you "
        "have a result that left k open, plans say by how much."
    )


def range_verdict(
    forecast: Mapping[str, Any], average_size: float, fine: int, first: int, last: int
) -> str | None:
    """Say up to which k of a range the noise is small; the forecast is of `fine` clusters."""
    found = _strain(forecast, average_size)
    if found is None:
        return None
    # Fewer clusters have more records each, so both shares shrink with k.
    good, fair = (
        math.floor(
            min(
                limit * fine / share if share else math.inf
                for share, limit in zip(found, limits, strict=True)
            )
        )
        for limits in (_GOOD, _FAIR)
    )
    if good >= last:
        return "The noise is small beside the clusters, whichever k you choose."
    if fair < max(first, 2):
        return f"{_TOO_MUCH}: raise epsilon."
    large = f"; above about k = {fair} it is as large as the clusters" if fair < last else ""
    if good < max(first, 2):
        return f"The noise is noticeable{large}."
    return f"Up to about k = {good} the noise is small beside the clusters, then noticeable{large}."


def _strain(forecast: Mapping[str, Any], average_size: float) -> tuple[float, float] | None:
    """The noise as a share of the records of a cluster, and of its radius."""
    smallest, size, blur = (
        forecast.get(name) for name in ("smallest_cluster", "size_noise", "noise_per_radius")
    )
    if smallest is None and size is None and blur is None:
        return None
    return (smallest if smallest is not None else 3 * (size or 0)) / average_size, blur or 0.0


def shortfall(facts: DatasetFacts, cost: Amount, *, automatic_delta: bool) -> str:
    """Say which amount is too large, for the account that has the least of it."""
    accounts = [("your cap", facts.cap), ("the dataset's budget", facts.budget)]
    for unit in ("epsilon", "delta") if cost.rho is None else ("rho", "delta"):
        left = {name: getattr(account.remaining, unit) for name, account in accounts if account is not None}
        tightest = min(left, key=left.__getitem__)
        asked, available = getattr(cost, unit), left[tightest]
        if asked > available:
            most = f"the {unit} {number(available, 6)} that {tightest} has left"
            said = f"This does not fit: {unit} {number(asked, 6)} is more than {most}."
            return said + (_LEAST_DELTA if unit == "delta" and automatic_delta else "")
    return "This does not fit: what remains has just changed."


def expectations(forecast: Mapping[str, Any], average_size: float) -> Iterator[tuple[str, str]]:
    """Label and text of each figure of a forecast: the known ones first, then the algorithm's own."""
    rest = {name: value for name, value in forecast.items() if name != "cluster_share"}
    average = f"an average one has {about(average_size)}"
    if (smallest := rest.pop("smallest_cluster", None)) is not None:
        yield "smallest cluster found", f"about {about(smallest)} records; {average}"
    if (noise := rest.pop("size_noise", None)) is not None:
        yield "size of a cluster", f"±{about(2 * noise)} records {_MOST_RUNS}; {average}"
    if (noise := rest.pop("noise_per_radius", None)) is not None:
        share = number(200 * noise, 2)
        yield (
            "position of a centre",
            f"±{share}% of its cluster's radius {_MOST_RUNS}, for an average cluster",
        )
    if (noise := rest.pop("noise_at_bounds", None)) is not None:
        yield (
            "position at worst",
            f"±{number(2 * noise, 2)} in the widest column, if a cluster fills the bounds",
        )
    if (noise := rest.pop("count_noise", None)) is not None:
        least = about(rest.pop("visible_count", 2 * noise))
        yield "each count", f"±{about(2 * noise)} records {_MOST_RUNS}; counts below about {least} are noise"
    if (noise := rest.pop("rank_noise", None)) is not None:
        yield "rank of a quantile", f"±{about(2 * noise)} records {_MOST_RUNS}"
    for name, value in rest.items():
        yield name.replace("_", " "), number(value) if isinstance(value, float | int) else str(value)
