"""Summaries: number of records, means, spreads, correlations and principal axes of all columns."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from core.arrays import Floats
from core.columns.line import Ranged
from core.data import UNITS, Dense, Geometry, Stored
from core.data.tables.profiles import describe_intervals
from core.errors import InvalidRequest
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Plan, Step, question_domain
from core.postprocessing.intervals import Interval, counts_interval
from core.postprocessing.moments import Moments, Noise, Released
from core.probe import Probe
from core.questions.base import NOISE, Kind, noise_sentence
from core.questions.view import (
    Estimate,
    Grid,
    Heading,
    Lines,
    Part,
    Sentence,
    estimates,
    lines_of,
    rounded,
)
from core.statistics.counts import Count
from core.statistics.sums import SecondMoments, Sums
from core.views import Encoded

#: Most coordinates (numbers, booleans and levels) of a summary.
MOST_COORDINATES = 200
#: Share of the budget for the number of records.
_COUNT = 0.1
#: Share of the budget for their sum.
_SUMS = 0.3
#: Share of the budget for their second moments.
_MOMENTS = 0.6
#: Noise is rounded to whole numbers by at most this.
_ROUNDING = 0.5
#: Proposed bounds lie this many spreads from the mean.
_SPREADS = 3.0
#: Principal axes that are shown.
_AXES = 10


class Summary(Kind):
    """Moments of all columns without gaps; the argument is in `summary.md`."""

    name = "summary"
    title = "Summary"
    label = "means, spreads and correlations"
    released = "Number of records, means, spreads and correlations of columns"
    used = "moments"
    summary = "number of records, and means, spreads and correlations of all columns"
    options = (NOISE,)
    most_columns = 0
    offers_columns = False
    record_operations = 110.0  # three passes, one of which multiplies

    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        width = question_domain(stored).dimension
        if width > MOST_COORDINATES:
            raise InvalidRequest(
                f"this dataset has {width} numbers and levels; a summary is for at most {MOST_COORDINATES}: "
                "ask for quantiles or tables of some columns",
                parameter="kind",
            )
        return {}

    def steps(self, plan: Plan) -> tuple[Step, ...]:
        shares = self.shares(plan)
        return (
            Step("count", additive_noise(shares.noise(_COUNT)), Count.kind, 1, "number of records"),
            Step("sums", vector_noise(shares.noise(_SUMS)), Sums.kind, 1, "mean of each column"),
            Step(
                "moments",
                vector_noise(shares.noise(_MOMENTS)),
                SecondMoments.kind,
                1,
                "spreads of columns, and correlations between them",
            ),
        )

    def entries(self, plan: Plan) -> int:
        # So that the comparison of noises is that of vectors as wide as the second moments.
        return math.ceil((self._moments(plan).shape[1] + 1) / 2)

    def cells(self, plan: Plan) -> int:
        return 1 + plan.domain.dimension + self._moments(plan).shape[1]

    def noise(self, plan: Plan) -> float:
        return _deviation(plan, "count", 1)

    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        domain = plan.domain
        assert isinstance(domain, Dense | Geometry)  # others are refused when planned
        released = Released(
            float(probe.measure("count", Count(domain.fingerprint))[0]),
            probe.measure("sums", Sums(Encoded.of(domain)))[0].astype(np.float64),
            _square(probe.measure("moments", self._moments(plan))[0].astype(np.float64), domain.dimension),
            self._noise(plan),
        )
        records = max(released.count, 1.0)
        moments = Moments.of(
            released, domain.encode_points(domain.decode(released.sums[None, :] / records))[0]
        )
        count = max(released.count, 0.0)
        lengths = domain.unit_lengths()
        of_spreads = released.spreads(moments)
        return {
            "count": count,
            **counts_interval(np.array(released.count), released.noise.count, count).to_json("count"),
            "columns": _described(domain, moments.mean, released.means(moments)),
            "coordinates": list(domain.columns),
            "spreads": (moments.spreads * lengths).tolist(),
            **Interval(of_spreads.low * lengths, of_spreads.high * lengths).to_json("spreads"),
            "correlations": moments.correlations.tolist(),
            **released.correlations(moments, of_spreads).to_json("correlations"),
            "axes": released.axes(moments)[:_AXES],
            "noise": {"count": self.noise(plan), "means": _mean_noise(plan, records)},
        }

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        headings = (Heading("Column"), Heading("Mean", "number"))
        means = Grid("Means", headings, [[name, mean] for name, mean in _means(answer)])
        names = answer["coordinates"]
        others = (Heading(name, "number") for name in names)
        spreads = zip(names, _spreads(answer), _correlations(answer), strict=True)
        correlations = Grid(
            "Correlations",
            (Heading("Column"), Heading("Spread", "number"), *others),
            [[name, spread, *row] for name, spread, row in spreads],
        )
        (count,) = _count(answer)
        return noise_sentence(answer), Sentence(f"Number of records: {count.text}."), means, correlations

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        names = answer["coordinates"]
        rows: list[list[Any]] = [["", "count", "", *rounded(*_count(answer))]]
        rows += ([name, "mean", "", *rounded(mean)] for name, mean in _means(answer))
        rows += (
            [name, "spread", "", *rounded(each)] for name, each in zip(names, _spreads(answer), strict=True)
        )
        for name, row in zip(names, _correlations(answer), strict=True):
            rows += (
                [name, "correlation", other, *rounded(each)] for other, each in zip(names, row, strict=True)
            )
        return Lines(("column", "measure", "other_column", *lines_of("value")), rows)

    def bounds(self, answer: Mapping[str, Any], column: Ranged) -> tuple[Any, Any] | None:
        """Three spreads around the mean."""
        found = next((each for each in answer["columns"] if each["column"] == column.name), None)
        if found is None or column.name not in answer["coordinates"]:
            return None
        spread = _SPREADS * float(answer["spreads"][answer["coordinates"].index(column.name)])
        place = column.place(found["value"])
        return column.bounds_around(place - spread, place + spread)

    def _noise(self, plan: Plan) -> Noise:
        """How far noise moves the count, an entry of the sums and one of the second moments."""
        width = plan.domain.dimension
        entries = {
            "count": (1, 1.0),
            "sums": (width, UNITS),
            "moments": (self._moments(plan).shape[1], UNITS**2),
        }
        found = {}
        for name, (columns, length) in entries.items():
            mechanism: Any = plan.step(name).mechanism
            found[name] = mechanism.tail * mechanism.deviation(columns) * float(length) + _ROUNDING
        return Noise(**found)

    def _moments(self, plan: Plan) -> SecondMoments:
        rows = Encoded.of(plan.domain)
        return SecondMoments(rows, np.zeros(rows.width, dtype=np.int64), UNITS)


def _count(answer: Mapping[str, Any]) -> list[Estimate]:
    """The number of records, alone in a list."""
    named = {name: [value] for name, value in answer.items() if name.startswith("count")}
    return estimates(named, "count", Estimate.of_count, answer["noise"]["count"])


def _means(answer: Mapping[str, Any]) -> list[tuple[str, Estimate]]:
    """The mean of each column, or the share of each of its levels."""
    found = []
    for column in answer["columns"]:
        name, pair = column["column"], ("low", "high")
        if "shares" in column:
            ends = [column.get(f"shares_{end}", column["shares"]) for end in pair]
            levels = (
                (level, share, *(end[level] for end in ends)) for level, share in column["shares"].items()
            )
            found += [(f"{name}={level}", Estimate.of_share(*each)) for level, *each in levels]
        else:
            ends = [column.get(f"value_{end}", column["value"]) for end in pair]
            kind = Estimate.of_share if column["measure"] == "rate" else Estimate.of_number
            found.append((name, kind(column["value"], *ends)))
    return found


def _spreads(answer: Mapping[str, Any]) -> list[Estimate]:
    return estimates(answer, "spreads", Estimate.of_number)


def _correlations(answer: Mapping[str, Any]) -> list[list[Estimate]]:
    rows = answer["correlations"]
    ends = (answer.get(f"correlations{end}", rows) for end in ("_low", "_high"))
    return [list(map(Estimate.of_number, *row)) for row in zip(rows, *ends, strict=True)]


def _deviation(plan: Plan, step: str, width: int) -> float:
    mechanism: Any = plan.step(step).mechanism
    return float(mechanism.deviation(width))


def _mean_noise(plan: Plan, records: float) -> list[float]:
    """Standard deviation of the noise in the mean of each coordinate, in its unit."""
    domain: Any = plan.domain
    noise = _deviation(plan, "sums", domain.dimension) * UNITS / records
    lengths: list[float] = (noise * domain.unit_lengths()).tolist()
    return lengths


def _square(packed: Floats, width: int) -> Floats:
    """A symmetric matrix from its upper triangle."""
    second = np.zeros((width, width))
    second[np.triu_indices(width)] = packed
    return second + np.triu(second, 1).T


def _described(domain: Any, centre: Floats, ends: Interval) -> list[dict[str, Any]]:
    """The mean of each column with its interval, in the kinds of columns."""
    centre = domain.decode(centre[None, :])
    if isinstance(domain, Geometry):
        low, high = (domain.decode_alone(end[None, :]) for end in ends)
        (entries,) = describe_intervals(domain, centre, low, high)
        return entries
    low, high = (domain.decode(end[None, :]) for end in ends)
    return [
        {
            "column": name,
            "kind": "number",
            "measure": "mean",
            "value": float(value),
            "value_low": float(least),
            "value_high": float(most),
        }
        for name, value, least, most in zip(domain.columns, centre[0], low[0], high[0], strict=True)
    ]
