"""The accuracy to expect of a planned job: figures, a verdict and sentences, ready to show.

Everything follows from the plan, which is made of public numbers, and from what the caller's own earlier
release states.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from core.data import Dense
from core.plan import CLUSTER, Plan
from core.questions import registry as questions
from core.questions.view import count_text, number_text, share_text

_MOST_RUNS = "in 95 of 100 runs"
_NOISE_ONLY = (
    "This counts noise only: clusters of few records far from all others can be off by more. Once you "
    "have a result that left k open, plans say by how much."
)
_NO_FORECAST = (
    "does not forecast the accuracy of clusters. A rehearsal is free and shows what an answer looks like."
)
#: Figures that explanations and the verdict of a question already contain.
_IN_OTHER_WORDS = {"cluster_share", "visible_count"}
#: A cluster is taken to be lost in the noise below three standard deviations of that in its size.
_LOST = 3


@dataclass(frozen=True)
class _Strain:
    """Noise as a share of what an average cluster has: of its records, and of its radius."""

    records: float
    radius: float

    def within(self, limit: "_Strain") -> bool:
        return self.records <= limit.records and self.radius <= limit.radius

    def largest_k(self, limit: "_Strain", k: int) -> int | None:
        """The most clusters whose strain is within the limit, if this is the strain of k; None: any number.

        Fewer clusters have more records each, so both shares shrink with k.
        """
        pairs = ((self.records, limit.records), (self.radius, limit.radius))
        ratios = [most * k / share for share, most in pairs if share > 0]
        return math.floor(min(ratios)) if ratios else None


# The limits are where the figures in docs/choosing.md turn.
#: Noise that leaves clusters as they are.
_SMALL = _Strain(0.2, 0.03)
#: Noise in which clusters can still be found.
_NOTICEABLE = _Strain(0.8, 0.15)


def accuracy(plan: Plan, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return figures (name, label, value, explanation), a verdict (tone, sentence), and their basis."""
    return {
        "figures": [
            {"name": name, "label": label, "value": value, "explanation": explanation}
            for name, label, value, explanation in _figures(plan)
        ],
        "verdict": _verdict(plan, earlier),
        "basis": _basis(plan),
    }


def _basis(plan: Plan) -> str:
    count = plan.measurements
    measurements = "1 measurement" if count == 1 else f"{count:,} measurements"
    basis = f"From public numbers alone: {measurements} with noise, for about {plan.domain.size:,} records."
    if plan.k_range is None:
        return basis
    return (
        f"A job that leaves k open measures {plan.k:,} fine clusters: small ones, which are merged for every "
        f"k. {basis}"
    )


def _average_size(plan: Plan) -> float:
    return plan.domain.size * float(plan.forecast.get("cluster_share", 1 / plan.k))


def _figures(plan: Plan) -> Iterator[tuple[str, str, str, str]]:
    """The figures of a forecast: those with their own words, then the algorithm's other numbers."""
    fine = plan.k_range is not None
    whose = f"an average one of {plan.k:,} fine clusters" if fine else "an average cluster"
    average = f"{whose if fine else 'an average one'} has {_about(_average_size(plan))}"
    records = f"records {_MOST_RUNS}"
    known: dict[str, tuple[str, Callable[[float], str], str]] = {
        "smallest_cluster": ("Smallest cluster that is found", _approximately, f"records; {average}"),
        "size_noise": ("Size of a cluster", _give_or_take, f"{records}; {average}"),
        "noise_per_radius": (
            "Position of a centre",
            lambda noise: f"± {number_text(200 * noise, 2)}%",
            f"of its cluster's radius {_MOST_RUNS}, for {whose}",
        ),
        "noise_at_bounds": (
            "Position at worst",
            lambda noise: f"± {number_text(2 * noise, 2)}",
            f"in {_widest_column(plan)}, for a cluster that fills the bounds",
        ),
        "count_noise": ("Each count", _give_or_take, records),
        "rank_noise": ("Rank of a quantile", _give_or_take, records),
        "scaling_share": ("Private scaling", share_text, "of the cost"),
    }
    for name, (label, write, explanation) in known.items():
        if name in plan.forecast:
            yield name, label, write(plan.forecast[name]), explanation
    for name, value in plan.forecast.items():
        if name not in known and name not in _IN_OTHER_WORDS:
            text = number_text(value) if isinstance(value, float | int) else str(value)
            yield name, name.replace("_", " ").capitalize(), text, ""


def _widest_column(plan: Plan) -> str:
    domain = plan.described
    if not isinstance(domain, Dense) or domain.low is None or domain.high is None:
        return "any column"
    widths = [high - low for low, high in zip(domain.low, domain.high, strict=True)]
    return domain.columns[widths.index(max(widths))]


def _verdict(plan: Plan, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the noise does to the result, and what an earlier release adds."""
    if plan.kind != CLUSTER:
        return {"tone": None, "sentence": questions.get(plan.kind).expectation(plan.forecast)}
    strain = _strain(plan)
    if strain is None:
        return {"tone": None, "sentence": f"{plan.algorithm} {_NO_FORECAST}"}
    tone, sentence = _of_one_k(strain) if plan.k_range is None else _of_range(strain, plan)
    if tone == "bad" and earlier is None:
        return {"tone": tone, "sentence": sentence}  # nothing else matters then
    if tone == "good" and earlier is not None and earlier["uncertain"]:
        tone = "warn"
    beyond = _NOISE_ONLY if earlier is None else earlier["sentence"]
    return {"tone": tone, "sentence": f"{sentence} {beyond}"}


def _strain(plan: Plan) -> _Strain | None:
    smallest, size, radius = (
        plan.forecast.get(name) for name in ("smallest_cluster", "size_noise", "noise_per_radius")
    )
    if smallest is None and size is None and radius is None:
        return None
    lost = _LOST * (size or 0.0) if smallest is None else smallest
    return _Strain(lost / _average_size(plan), radius or 0.0)


def _of_one_k(strain: _Strain) -> tuple[str, str]:
    if strain.within(_SMALL):
        return "good", "The noise is small compared with the clusters."
    if strain.within(_NOTICEABLE):
        return "warn", "The noise is noticeable: expect accurate large clusters and inaccurate small ones."
    return "bad", "The noise is as large as the clusters: raise epsilon, or ask for fewer clusters."


def _of_range(strain: _Strain, plan: Plan) -> tuple[str, str]:
    """Say up to which k of a range the noise is small; the strain is that of the fine clusters."""
    assert plan.k_range is not None
    small, noticeable = strain.largest_k(_SMALL, plan.k), strain.largest_k(_NOTICEABLE, plan.k)
    first, last = max(plan.k_range.first, 2), plan.k_range.last
    if small is None or noticeable is None or small >= last:
        return "good", "The noise is small compared with the clusters, whichever k you choose."
    if noticeable < first:
        return "bad", "The noise is as large as the clusters: raise epsilon."
    lost = f"; above about k = {noticeable} it is as large as the clusters" if noticeable < last else ""
    if small < first:
        return "warn", f"The noise is noticeable{lost}."
    words = "the noise is small compared with the clusters, then noticeable"
    return "good", f"Up to about k = {small} {words}{lost}."


def _about(value: float) -> str:
    """An estimated number of records: three digits of a large one, two digits below ten."""
    return number_text(value, 2) if abs(value) < 10 else count_text(float(f"{value:.3g}"))


def _approximately(value: float) -> str:
    return f"≈ {_about(value)}"


def _give_or_take(deviation: float) -> str:
    """The reach of 95% of the noise."""
    return f"± {_about(2 * deviation)}"
