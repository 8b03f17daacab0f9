"""Summaries: number of records, means, spreads, correlations and principal axes of all columns."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from core.arrays import Floats
from core.columns.line import Ranged
from core.data import UNITS, Geometry, Ids, Stored
from core.data.tables.profiles import describe
from core.errors import InvalidRequest
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Plan, Step, question_domain
from core.probe import Probe
from core.questions.base import NOISE, Kind, noise_sentence
from core.questions.view import Estimate, Grid, Heading, Lines, Part, Sentence, count_text, share_text
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
#: Standard deviations of the noise to either end of a 95% interval.
_INTERVAL = 2.0
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
        count = float(max(probe.measure("count", Count(domain.fingerprint))[0], 0))
        sums = probe.measure("sums", Sums(Encoded.of(domain)))[0].astype(np.float64)
        packed = probe.measure("moments", self._moments(plan))[0].astype(np.float64)
        records = max(count, 1.0)
        mean, (variances, axes), covariance = _moments(domain, sums / records, packed / records)
        spreads = np.sqrt(np.diagonal(covariance))
        assert not isinstance(domain, Ids)  # refused when planned
        centre = domain.decode(mean[None, :])
        return {
            "count": count,
            "columns": _described(domain, centre),
            "coordinates": list(domain.columns),
            "spreads": (spreads * domain.unit_lengths()).tolist(),
            "correlations": _correlations(covariance, spreads).tolist(),
            "axes": [
                {"share": share, "loadings": axis.tolist()}
                for share, axis in zip(_shares(variances), axes.T, strict=True)
            ][:_AXES],
            "noise": {"count": self.noise(plan), "means": _mean_noise(plan, records)},
        }

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        means = Grid(
            "Means",
            (Heading("Column"), Heading("Mean", "number")),
            [[column["column"], _mean(answer, column)] for column in answer["columns"]],
        )
        names = answer["coordinates"]
        others = (Heading(name, "number") for name in names)
        spreads = zip(names, answer["spreads"], answer["correlations"], strict=True)
        rows = [[name, spread, *(round(each, 2) for each in row)] for name, spread, row in spreads]
        correlations = Grid("Correlations", (Heading("Column"), Heading("Spread", "number"), *others), rows)
        counted = Sentence(f"About {count_text(answer['count'])} records.")
        return noise_sentence(answer), counted, means, correlations

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        names = answer["coordinates"]
        rows: list[list[Any]] = [["", "count", "", answer["count"]]]
        for column in answer["columns"]:
            if "shares" in column:
                shares = column["shares"].items()
                rows += ([f"{column['column']}={level}", "mean", "", share] for level, share in shares)
            else:
                rows.append([column["column"], column["measure"], "", column["value"]])
        rows += ([name, "spread", "", each] for name, each in zip(names, answer["spreads"], strict=True))
        for name, row in zip(names, answer["correlations"], strict=True):
            rows += ([name, "correlation", other, each] for other, each in zip(names, row, strict=True))
        return Lines(("column", "measure", "other_column", "value"), rows)

    def bounds(self, answer: Mapping[str, Any], column: Ranged) -> tuple[Any, Any] | None:
        """Three spreads around the mean."""
        found = next((each for each in answer["columns"] if each["column"] == column.name), None)
        if found is None or column.name not in answer["coordinates"]:
            return None
        spread = _SPREADS * float(answer["spreads"][answer["coordinates"].index(column.name)])
        place = column.place(found["value"])
        return column.bounds_around(place - spread, place + spread)

    def _moments(self, plan: Plan) -> SecondMoments:
        rows = Encoded.of(plan.domain)
        return SecondMoments(rows, np.zeros(rows.width, dtype=np.int64), UNITS)


def _mean(answer: Mapping[str, Any], column: Mapping[str, Any]) -> Any:
    """The mean of a column, with its interval where it is a number on its own scale."""
    if "shares" in column:
        return ", ".join(f"{level} {share_text(share)}" for level, share in column["shares"].items())
    noise = dict(zip(answer["coordinates"], answer["noise"].get("means", ()), strict=False))
    if column["kind"] == "number" and column["measure"] == "mean" and column["column"] in noise:
        return Estimate(column["value"], _INTERVAL * noise[column["column"]])
    return column["value"]


def _deviation(plan: Plan, step: str, width: int) -> float:
    mechanism: Any = plan.step(step).mechanism
    return float(mechanism.deviation(width))


def _mean_noise(plan: Plan, records: float) -> list[float]:
    """Standard deviation of the noise in the mean of each coordinate, in its unit."""
    domain: Any = plan.domain
    noise = _deviation(plan, "sums", domain.dimension) * UNITS / records
    lengths: list[float] = (noise * domain.unit_lengths()).tolist()
    return lengths


def _moments(domain: Any, mean: Floats, packed: Floats) -> tuple[Floats, tuple[Floats, Floats], Floats]:
    """A mean inside the bounds, and the nearest covariance that records can have, with its axes.

    Axes are those of columns in units of their own bounds.
    """
    mean = domain.encode_points(domain.decode(mean[None, :]))[0].astype(np.float64)
    width = len(mean)
    second = np.zeros((width, width))
    second[np.triu_indices(width)] = packed
    second = second + np.triu(second, 1).T
    variances, axes = np.linalg.eigh(second - np.outer(mean, mean))
    variances = np.clip(variances, 0.0, float(UNITS) ** 2)
    covariance: Floats = (axes * variances) @ axes.T
    order = np.argsort(-variances)
    return mean, (variances[order], axes[:, order]), covariance


def _correlations(covariance: Floats, spreads: Floats) -> Floats:
    scales = np.outer(spreads, spreads)
    found: Floats = np.divide(covariance, scales, out=np.zeros_like(covariance), where=scales > 0)
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)


def _shares(variances: Floats) -> list[float]:
    whole = float(variances.sum())
    return [float(each) / whole if whole > 0 else 0.0 for each in variances]


def _described(domain: Any, centre: Floats) -> list[dict[str, Any]]:
    """The mean of each column, in the kinds of columns."""
    if isinstance(domain, Geometry):
        (entries,) = describe(domain, centre, None, "means")
        return entries
    return [
        {"column": name, "kind": "number", "measure": "mean", "value": float(value)}
        for name, value in zip(domain.columns, centre[0], strict=True)
    ]
