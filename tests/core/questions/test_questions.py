"""Questions of every kind: exact where noise is small, and consistent where it is not."""

import json
from typing import Any

import numpy as np
import pytest

from core.data import (
    ArraySource,
    Boolean,
    Category,
    DataSource,
    Date,
    Dense,
    Ids,
    Number,
    Partition,
    Stored,
    Table,
    TableSource,
)
from core.errors import InvalidRequest, PlanViolation
from core.jobs import kinds
from core.jobs.transcript import Transcript
from core.plan import Plan
from core.privacy import Budget
from core.questions import registry
from core.questions.base import Question, QuestionResult

BOX = Dense.box([0, -5], [100, 5], ["age", "score"], size=300)
TABLE = Table(
    declared=(
        Number(name="age", low=0, high=9, whole=True),
        Category(name="region", levels=("north", "south", "east")),
        Boolean(name="smoker", role="keep"),
        Number(name="cost", low=0, high=10_000, log=True, offset=1, role="keep"),
        Date(name="day", low="2030-01-01", high="2030-12-31", role="keep", missing="refuse"),
    ),
    size=300,
)
DRAW = np.random.default_rng(3)
GROUP = DRAW.integers(0, 2, 300)
ROWS = np.stack([20 + 60 * GROUP, -3 + 6.0 * GROUP], axis=1) + DRAW.normal(0, 1, (300, 2))
COLUMNS = {
    "age": np.where(GROUP == 0, DRAW.integers(0, 4, 300), DRAW.integers(6, 10, 300)),
    "region": np.array(["north", "south"])[GROUP],
    "smoker": np.where(DRAW.random(300) < 0.2, np.nan, GROUP),
    "cost": np.exp(DRAW.normal(3, 1, 300)),
    "day": np.datetime64("2030-03-01") + DRAW.integers(0, 90, 300).astype("timedelta64[D]"),
}
BOX_PARTITION = Partition.of(BOX, [[20.0, -3.0], [80.0, 3.0]])
# Of a table the centres of a clustering are decoded: an age, and shares of three levels.
TABLE_PARTITION = Partition.of(TABLE, [[1.5, 1.0, 0.0, 0.0], [7.5, 0.0, 1.0, 0.0]])
EXACT = Budget.of(1000)
DATASETS: list[tuple[Stored, DataSource, Partition]] = [
    (BOX, ArraySource(BOX, ROWS), BOX_PARTITION),
    (TABLE, TableSource(TABLE, COLUMNS), TABLE_PARTITION),
]


def ask(kind: str, place: int = 1, budget: Budget = EXACT, **asked: Any) -> dict[str, Any]:
    """Plan a question, read the plan back, run it, and replay it without rows."""
    stored, source, partition = DATASETS[place]
    partitions = (partition,) * registry.get(kind).clusterings
    plan = kinds.plan(stored, Question(kind, budget, partitions=partitions, **asked))
    read = Plan.from_json(json.loads(json.dumps(plan.to_json())), stored, partitions=partitions)
    assert read.digest == plan.digest
    found = kinds.run(read, source)
    assert isinstance(found, QuestionResult)
    json.dumps(found.values, allow_nan=False)
    replayed = Transcript.read(b"".join(Transcript.of(found).parts()), stored).replay()
    assert isinstance(replayed, QuestionResult)
    assert replayed.values == found.values
    return found.values


def column(answer: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in answer["columns"] if each["column"] == name)
    return found


def test_a_profile_has_the_counts_of_each_cluster_with_missing_values_as_a_bin() -> None:
    answer = ask("profile", columns=("age", "region", "smoker"))
    assert np.rint(answer["sizes"]).tolist() == np.bincount(GROUP).tolist()
    ages = column(answer, "age")
    assert ages["edges"] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    exact = [np.bincount(COLUMNS["age"][g == GROUP], minlength=10).tolist() for g in (0, 1)]
    assert np.rint(ages["counts"]).tolist() == exact
    assert ages["means"] == pytest.approx([COLUMNS["age"][g == GROUP].mean() for g in (0, 1)], abs=0.1)
    smokers = column(answer, "smoker")
    gaps = np.isnan(COLUMNS["smoker"])
    assert smokers["missing"]
    assert np.rint([counts[2] for counts in smokers["counts"]]).tolist() == np.bincount(GROUP[gaps]).tolist()
    assert smokers["rates"] == pytest.approx([0, 1], abs=0.05)
    assert np.rint(column(answer, "region")["counts"])[:, 2].tolist() == [0, 0]


def test_a_profile_of_a_box_counts_in_even_bins_between_its_bounds() -> None:
    answer = ask("profile", 0, options={"bins": 4})
    ages = column(answer, "age")
    assert ages["edges"] == [0, 25, 50, 75, 100]
    exact = [np.histogram(ROWS[g == GROUP, 0], [0, 25, 50, 75, 100])[0] for g in (0, 1)]
    assert np.abs(np.array(ages["counts"]) - exact).max() < 2


def test_a_table_counts_combinations_of_levels_and_its_marginals_add_up() -> None:
    answer = ask("table", columns=("region", "smoker"))
    counts = np.array(answer["counts"])
    assert counts.shape == (3, 3)
    assert np.rint(counts[0, 0]) == ((GROUP == 0) & ~np.isnan(COLUMNS["smoker"])).sum()
    assert counts.sum(axis=1).tolist() == pytest.approx(answer["columns"][0]["counts"])
    assert answer["total"] == pytest.approx(counts.sum())


def test_two_equal_clusterings_agree() -> None:
    answer = ask("compare")
    assert np.rint(answer["counts"]).tolist() == np.diag(np.bincount(GROUP)).tolist()
    assert answer["agreement"] == pytest.approx(1.0)


@pytest.mark.parametrize("place", [0, 1])
def test_quantiles_are_those_of_the_records(place: int) -> None:
    levels = [0.1, 0.5, 0.9]
    answer = ask("quantiles", place, options={"levels": levels})
    if place == 0:
        exact = np.quantile(ROWS, levels, axis=0).T
        found = np.array([each["values"] for each in answer["columns"]])
        # One or two ranks off: gaps between 300 values, and noise.
        assert (np.abs(found - exact) < [[1.0], [0.5]]).all()
        return
    assert column(answer, "age")["values"] == np.quantile(COLUMNS["age"], levels, method="nearest").tolist()
    costs = np.array(column(answer, "cost")["values"])
    assert costs == pytest.approx(np.quantile(COLUMNS["cost"], levels), rel=0.1)
    assert column(answer, "day")["values"][1].startswith("2030-04")


def test_a_summary_has_the_moments_of_the_records() -> None:
    answer = ask("summary", 0)
    assert answer["count"] == pytest.approx(300, abs=1)
    means = [each["value"] for each in answer["columns"]]
    assert means == pytest.approx(ROWS.mean(axis=0).tolist(), abs=0.3)
    assert answer["spreads"] == pytest.approx(ROWS.std(axis=0).tolist(), rel=0.02)
    assert answer["correlations"][0][1] == pytest.approx(np.corrcoef(*ROWS.T).min(), abs=0.02)
    assert ask("summary")["coordinates"] == ["age", "region=north", "region=south", "region=east", "day"]


def test_an_explanation_names_the_columns_that_set_clusters_apart() -> None:
    answer = ask("explain", options={"picks": 2})
    for place, cluster in enumerate(answer["clusters"]):
        assert cluster["size"] == pytest.approx(np.bincount(GROUP)[place], abs=2)
        assert {each["column"] for each in cluster["columns"]} <= {"age", "region", "smoker"}
        assert all(each["distance"] > 0.3 for each in cluster["columns"])


@pytest.mark.parametrize("kind", registry.names())
@pytest.mark.parametrize(
    "budget", [Budget.of("0.1"), Budget.of("0.1", "0.000001")], ids=["pure", "approximate"]
)
def test_answers_are_consistent_whatever_the_noise(kind: str, budget: Budget) -> None:
    for place in (0, 1):
        asked: dict[str, dict[str, Any]] = {
            "explain": {"options": {"picks": 1}},
            "table": {"columns": ("age",)},
        }
        answer = ask(kind, place, budget, **asked.get(kind, {}))
        counted = [each for each in _histograms(answer) if each]
        assert all(np.min(each) >= 0 for each in counted)
        if kind == "profile":
            sums = [np.sum(each["counts"], axis=1) for each in answer["columns"]]
            assert np.allclose(sums, answer["sizes"])
        if kind == "quantiles":
            assert all(sorted(each["values"]) == each["values"] for each in answer["columns"])


def _histograms(answer: dict[str, Any]) -> list[Any]:
    clusters = answer.get("clusters", [answer])
    return [each.get("counts") for cluster in clusters for each in [*cluster.get("columns", ()), cluster]]


@pytest.mark.parametrize("kind", registry.names())
def test_a_dataset_without_rows_is_answered_like_any_other(kind: str) -> None:
    empty = ArraySource(BOX, np.zeros((0, 2)))
    partitions = (BOX_PARTITION,) * registry.get(kind).clusterings
    options = {"picks": 1} if kind == "explain" else {}
    plan = kinds.plan(BOX, Question(kind, Budget.of(1), partitions=partitions, options=options))
    found = kinds.run(plan, empty)
    assert isinstance(found, QuestionResult)
    json.dumps(found.values, allow_nan=False)


def test_laplace_noise_needs_no_delta_and_charges_none() -> None:
    budget = Budget.of(1, "0.000001")

    def planned(**asked: Any) -> Budget:
        question = Question("profile", budget, partitions=(TABLE_PARTITION,), **asked)
        return kinds.plan(TABLE, question).budget

    assert planned(columns=("age",)) == Budget.of(1)
    assert planned(columns=("age",), options={"noise": "gaussian"}) == budget
    with pytest.raises(InvalidRequest, match="delta above zero"):
        kinds.plan(TABLE, Question("table", Budget.of(1), ("age",), options={"noise": "gaussian"}))


def test_a_plan_read_without_its_centres_cannot_be_run() -> None:
    plan = kinds.plan(BOX, Question("profile", EXACT, partitions=(BOX_PARTITION.facts,)))
    with pytest.raises(PlanViolation, match="without its centres"):
        kinds.run(plan, ArraySource(BOX, ROWS))


def test_other_centres_than_the_planned_ones_are_refused() -> None:
    plan = kinds.plan(BOX, Question("profile", EXACT, partitions=(BOX_PARTITION,)))
    moved = Partition.of(BOX, [[20.0, -3.0], [80.0, 3.5]])
    with pytest.raises(PlanViolation, match="public inputs"):
        Plan.from_json(plan.to_json(), BOX, partitions=(moved,))


def test_a_partition_of_a_privately_scaled_table_keeps_its_ranges() -> None:
    clustered = {"columns": ["age"], "weights": {"age": 1.0}, "scaling": "private"}
    partition = Partition.of(TABLE, [[1.0], [7.0]], clustered, ranges={"age": [1.0, 8.0]})
    assert partition.facts.clustered == {**clustered, "ranges": {"age": [1, 8]}}
    again = Partition.of(TABLE, [[1.0], [7.0]], partition.facts.clustered)
    assert again.facts == partition.facts


@pytest.mark.parametrize(
    ("stored", "asked", "message"),
    [
        (TABLE, {"kind": "profile"}, "about one clustering"),
        (TABLE, {"kind": "compare", "partitions": (TABLE_PARTITION,)}, "about two clusterings"),
        (TABLE, {"kind": "table", "columns": ("age", "nothing")}, "no column 'nothing'"),
        (TABLE, {"kind": "table", "columns": ("age", "region", "smoker", "cost")}, "at most 3"),
        (TABLE, {"kind": "table", "columns": ("age", "day", "cost"), "options": {"bins": 100}}, "cells"),
        (TABLE, {"kind": "table", "columns": ("age", "age")}, "each once"),
        (TABLE, {"kind": "quantiles", "columns": ("region",)}, "no order"),
        (TABLE, {"kind": "quantiles", "options": {"levels": [0.5, 2]}}, "between 0 and 1"),
        (TABLE, {"kind": "summary", "columns": ("age",)}, "takes no columns"),
        (TABLE, {"kind": "explain", "partitions": (TABLE_PARTITION,), "options": {"picks": 5}}, "cannot be"),
        (Ids(count=5, size=10), {"kind": "table"}, "tables and dense columns"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(stored: Stored, asked: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        kinds.plan(stored, Question(budget=Budget.of(1), **asked))


def test_a_partition_divides_the_records_of_another_table_as_its_own() -> None:
    """The other table has its columns in another order; in other bounds, codes would be other values."""
    other = Table(declared=(*TABLE.declared[1:], TABLE.declared[0]), size=500)
    moved = TABLE_PARTITION.onto(other)
    question = Question("profile", EXACT, ("smoker",), (moved,))
    found = kinds.run(kinds.plan(other, question), TableSource(other, COLUMNS))
    assert isinstance(found, QuestionResult)
    assert np.rint(found.values["sizes"]).tolist() == np.bincount(GROUP).tolist()
    wider = Table(declared=(Number(name="age", low=0, high=90, whole=True), *TABLE.declared[1:]), size=500)
    with pytest.raises(InvalidRequest, match="its column age is whole number from 0 to 90"):
        TABLE_PARTITION.onto(wider)
    assert (
        BOX_PARTITION.onto(Dense.box([0, -5], [100, 5], ["age", "score"], size=9)).digest
        == BOX_PARTITION.digest
    )
    with pytest.raises(InvalidRequest, match="differ"):
        BOX_PARTITION.onto(Dense.box([0, -5], [100, 6], ["age", "score"], size=9))
