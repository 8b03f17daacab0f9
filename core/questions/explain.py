"""Explanations: for each cluster the columns that set it apart most, chosen privately."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from core.arrays import Floats, Integers
from core.data import Stored
from core.errors import InvalidRequest
from core.mechanisms.choice import TopChoice
from core.mechanisms.noise import additive_noise
from core.options import Option
from core.plan import Plan, Step
from core.postprocessing.consistency import nearest_counts, pooled_totals
from core.probe import Probe
from core.questions.base import BINS, NOISE, Kind, Question, assigned, count_deviation, noise_sentence
from core.questions.columns import EVERYONE, BinnedColumn, binned_columns, bins_of
from core.questions.view import Bars, Lines, Part, Sentence, Series, bin_names, count_text, exact_bin_names
from core.statistics.histograms import WHOLE, Departures, Histograms, PickedHistograms
from core.views import Bins

#: Share of the budget for histograms of all records.
_REFERENCE = 0.2
#: Share of the budget for the choice of columns.
_CHOICE = 0.4
#: Share of the budget for histograms of the columns that were chosen.
_PICKED = 0.4


class Explain(Kind):
    """A choice of columns for each cluster, then their histograms; the argument is in `explain.md`."""

    name = "explain"
    title = "Explanation"
    label = "what sets each cluster apart"
    released = "The columns that set clusters of an earlier clustering apart, with their histograms"
    summary = "for each cluster of a clustering the columns that set it apart most, with their histograms"
    options = (
        Option("picks", int, 3, "columns that are chosen for each cluster", least=1, most=20),
        BINS,
        NOISE,
    )
    clusterings = 1
    offers_columns = False  # it chooses among all of them
    chooses = True

    def options_for(self, columns: int) -> tuple[Option, ...]:
        picks, *others = self.options
        return (replace(picks, default=max(1, min(picks.default, columns - 1))), *others)

    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        if len(columns) <= options["picks"]:
            raise InvalidRequest(
                f"of {len(columns)} columns {options['picks']} cannot be chosen: lower options.picks, or ask "
                "for a profile of all of them",
                parameter="options.picks",
            )
        return {"columns": list(columns), "bins": options["bins"], "picks": options["picks"]}

    def typical(self, stored: Stored, question: Question) -> Question:
        return replace(question, options={"picks": 1})

    def columns(self, plan: Plan) -> tuple[BinnedColumn, ...]:
        return binned_columns(plan.stored, plan.parameters["columns"], plan.parameters["bins"])

    def steps(self, plan: Plan) -> tuple[Step, ...]:
        shares, picks = self.shares(plan), plan.parameters["picks"]
        choice = TopChoice(shares.amount(_CHOICE), picks, not plan.budget.is_pure)
        reference, picked = (additive_noise(shares.noise(part)) for part in (_REFERENCE, _PICKED))
        return (
            Step(
                "reference", reference, Histograms.kind, 1, "how all records are distributed in each column"
            ),
            Step("choice", choice, Departures.kind, 1, "in which columns each cluster departs from that"),
            Step("histograms", picked, PickedHistograms.kind, 1, "size of each cluster, and these columns"),
        )

    def entries(self, plan: Plan) -> int:
        return max(len(plan.parameters["columns"]), 1 + int(plan.parameters["picks"]))

    def cells(self, plan: Plan) -> int:
        widths = self._bins(plan).widths
        return sum(widths) + plan.k * (1 + int(plan.parameters["picks"])) * max(widths)

    def noise(self, plan: Plan) -> float:
        one = np.zeros((1, 1 + plan.parameters["picks"]), dtype=np.int64)
        one[0] = np.arange(one.shape[1])
        statistic = PickedHistograms(self._bins(plan, EVERYONE), None, one)
        return count_deviation(plan.step("histograms"), statistic.sensitivity)

    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        group, columns = assigned(plan), self.columns(plan)
        everyone = Histograms(self._bins(plan), None)
        overall = _shares(everyone.parts(probe.measure("reference", everyone)[0]))
        reference = np.concatenate([_of_whole(shares) for shares in overall])
        picks = probe.measure("choice", Departures(everyone.view, group, reference))
        # The first histogram of each cluster is one bin for everyone, its size.
        counted = np.concatenate([np.zeros((len(picks), 1), dtype=np.int64), picks + 1], axis=1)
        statistic = PickedHistograms(self._bins(plan, EVERYONE), group, counted)
        released = probe.measure("histograms", statistic).astype(np.float64)
        clusters = [
            _cluster(counts, [(columns[pick], overall[pick]) for pick in row])
            for counts, row in zip(released, picks, strict=True)
        ]
        return {"clusters": clusters, "noise": {"count": self.noise(plan)}}

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        parts: list[Part] = [noise_sentence(answer)]
        for number, cluster in enumerate(answer["clusters"], 1):
            parts.append(Sentence(f"Cluster {number}: about {count_text(cluster['size'])} records."))
            for column in cluster["columns"]:
                here = Series("This cluster", column["counts"], cluster["size"])
                everywhere = Series("All records", column["overall"], 1.0)
                parts.append(Bars(column["column"], bin_names(column), (here, everywhere)))
        return tuple(parts)

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        rows: list[list[Any]] = []
        for number, cluster in enumerate(answer["clusters"], 1):
            rows.append([number, "", "", cluster["size"], ""])
            for column in cluster["columns"]:
                bins = zip(exact_bin_names(column), column["counts"], column["overall"], strict=True)
                rows += ([number, column["column"], *each] for each in bins)
        return Lines(("cluster", "column", "bin", "count", "overall_share"), rows)

    def _bins(self, plan: Plan, *before: Any) -> Bins:
        return bins_of(plan.stored, [*before, *(column.binning for column in self.columns(plan))])


def _shares(histograms: list[Integers]) -> list[Floats]:
    """Shares of all records in each bin: at least zero, adding up to one."""
    total = pooled_totals([row[None, :].astype(np.float64) for row in histograms])
    total = np.maximum(total, 1.0)
    return [nearest_counts(row[None, :].astype(np.float64), total)[0] / total[0] for row in histograms]


def _of_whole(shares: Floats) -> Integers:
    """Whole numbers near these shares that add up to `WHOLE`."""
    ends = np.rint(np.cumsum(shares) / shares.sum() * WHOLE).astype(np.int64)
    ends[-1] = WHOLE
    parts: Integers = np.diff(ends, prepend=0)
    return parts


def _cluster(released: Floats, picked: list[tuple[BinnedColumn, Floats]]) -> dict[str, Any]:
    """The size of a cluster and its histograms, made consistent, with shares of all records to compare."""
    size, *histograms = released
    cut = [row[None, : column.bins] for row, (column, _) in zip(histograms, picked, strict=True)]
    total = pooled_totals([size[None, :1], *cut])
    described = []
    for row, (column, shares) in zip(cut, picked, strict=True):
        counts = nearest_counts(row, total)
        distance = float(np.abs(counts[0] / max(total[0], 1.0) - shares).sum() / 2)
        described.append(
            {
                **column.to_json(),
                "counts": counts[0].tolist(),
                "overall": shares.tolist(),
                "distance": distance,
            }
        )
    return {"size": float(total[0]), "columns": described}
