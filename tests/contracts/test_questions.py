"""What every kind of question must declare, so that nothing is found missing after a charge."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.data import (
    Boolean,
    Category,
    DataSource,
    Date,
    Dense,
    Number,
    Partition,
    Stored,
    Table,
    bounded_columns,
)
from core.errors import InvalidRequest
from core.jobs import kinds
from core.options import options_schema
from core.privacy import Budget
from core.questions import registry
from core.questions.base import Kind, Question, QuestionResult
from core.questions.view import Bars, Estimate, Grid, Sentence, to_json
from service.jobs.results.findings import as_csv, shown
from service.jobs.results.wire import FindingsFacts
from service.workers.rehearsal import synthetic_source

BOX = Dense.box([0, -5], [100, 5], ["age", "score"], size=300)
TABLE = Table(
    declared=(
        Number(name="age", low=0, high=9, whole=True),
        Category(name="region", levels=("north", "south", "east")),
        Boolean(name="smoker", role="keep"),
        Date(name="day", low="2030-01-01", high="2030-12-31", role="keep", missing="keep"),
    ),
    size=300,
)
PARTITIONS = {
    "dense": Partition.of(BOX, [[20.0, -3.0], [80.0, 3.0]]),
    # Of a table the centres of a clustering are decoded: an age, and shares of three levels.
    "table": Partition.of(TABLE, [[1.5, 1.0, 0.0, 0.0], [7.5, 0.0, 1.0, 0.0]]),
}
ABOUT = {"job": "j", "dataset": "d", "clusterings": [], "draws": {}, "privacy": {}, "receipt": "/r"}


def fits(kind: Kind, stored: Stored) -> bool:
    """Whether there is anything in this dataset that a question of the kind could be about."""
    return not kind.offers_columns or any(each.refused is None for each in kind.offered_columns(stored))


#: Every kind on every dataset that it fits, and on one at least.
PAIRS = [
    pytest.param((registry.get(name), stored), id=f"{name}-{stored.kind}")
    for name in registry.names()
    for stored in (BOX, TABLE)
    if fits(registry.get(name), stored)
]


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[Kind, Stored]:
    found: tuple[Kind, Stored] = request.param
    return found


@pytest.fixture
def kind(pair: tuple[Kind, Stored]) -> Kind:
    return pair[0]


@pytest.fixture
def stored(pair: tuple[Kind, Stored]) -> Stored:
    return pair[1]


def test_every_kind_fits_a_dataset() -> None:
    found = [registry.get(name) for name in registry.names()]
    assert [kind.name for kind in found if not (fits(kind, BOX) or fits(kind, TABLE))] == []


def answer(kind: Kind, stored: Stored, epsilon: str = "1") -> QuestionResult:
    """The answer to a typical question about made-up rows."""
    partitions = (PARTITIONS[stored.kind],) * kind.clusterings
    question = Question(kind.name, Budget.of(epsilon), partitions=partitions)
    source: DataSource = synthetic_source(stored, 2, 300)
    found = kinds.run(kinds.plan(stored, kind.typical(stored, question)), source)
    assert isinstance(found, QuestionResult)
    return found


def body(kind: Kind, found: QuestionResult) -> dict[str, Any]:
    """The answer as the service stores it."""
    values = json.loads(json.dumps(found.values))
    return {**ABOUT, "kind": kind.name, "rehearsal": False, "findings": values}


def test_every_kind_declares_its_words(kind: Kind) -> None:
    for words in (kind.title, kind.label, kind.summary, kind.released, kind.used):
        assert words == words.strip() != ""
        assert not words.endswith(".")
    assert "noise" in options_schema(kind.options)["properties"]
    assert kind.offers_columns <= (kind.most_columns > 0)


def test_every_answer_has_a_view_in_the_vocabulary_of_the_api(kind: Kind, stored: Stored) -> None:
    found = body(kind, answer(kind, stored))
    facts = FindingsFacts.model_validate(shown(found, stored))
    assert facts.view[0].type == "sentence"
    assert any(part.type != "sentence" for part in facts.view)
    json.dumps(facts.model_dump(), allow_nan=False)


def test_views_are_whole(kind: Kind, stored: Stored) -> None:
    for part in kind.view(answer(kind, stored).values):
        match part:
            case Sentence():
                assert part.text.endswith(".")
            case Grid():
                assert part.rows
                assert {len(row) for row in part.rows} == {len(part.headings)}
                assert {type(cell) for row in part.rows for cell in row} <= {str, Estimate}
            case Bars():
                assert {len(each.bars) for each in part.series} == {len(part.bins)}
                assert len(set(part.bins)) == len(part.bins)
        assert to_json(part)["type"] == part.type


#: Numbers without noise: what was asked for, public bins, and the noise itself.
EXACT = {"levels", "edges", "noise"}


def without_interval(answer: Any, name: str = "") -> set[str]:
    """Names of released numbers in an answer that have no ends of an interval next to them."""
    if isinstance(answer, list):
        return {each for item in answer for each in without_interval(item, name)}
    if not isinstance(answer, dict):
        return {name} if isinstance(answer, float | int) and not isinstance(answer, bool) else set()
    found = set()
    for key, value in answer.items():
        if key not in EXACT and not key.endswith(("_low", "_high")) and f"{key}_low" not in answer:
            found |= without_interval(value, key)
    return found


def test_every_number_in_an_answer_has_an_interval(kind: Kind, stored: Stored) -> None:
    assert without_interval(answer(kind, stored).values) == set()


def test_every_answer_has_lines_of_released_numbers(kind: Kind, stored: Stored) -> None:
    found = answer(kind, stored)
    lines = kind.lines(found.values)
    assert {len(row) for row in lines.rows} == {len(lines.names)}
    assert as_csv(body(kind, found)).count("\n") == 1 + len(lines.rows)


def test_every_plan_says_what_noise_does(kind: Kind, stored: Stored) -> None:
    assert kind.expectation(answer(kind, stored).plan.forecast).endswith("are noise.")


def test_only_offered_columns_can_be_asked_about(kind: Kind, stored: Stored) -> None:
    offered = kind.offered_columns(stored)
    assert bool(offered) == kind.offers_columns
    partitions = (PARTITIONS[stored.kind],) * kind.clusterings
    for column in offered:
        question = Question(kind.name, Budget.of("1"), (column.name,), partitions)
        if column.refused is None:
            assert kinds.plan(stored, question).parameters["columns"] == [column.name]
            continue
        assert not column.suggested
        with pytest.raises(InvalidRequest, match=column.refused):
            kinds.plan(stored, question)
    assert not offered or any(column.suggested for column in offered)


def test_proposed_bounds_lie_inside_the_declared_ones(kind: Kind, stored: Stored) -> None:
    found = answer(kind, stored, epsilon="100").values
    for column in bounded_columns(stored):
        pair = kind.bounds(found, column)
        if pair is not None:
            ends: Any = column
            places = [column.place(value) for value in (ends.low, *pair, ends.high)]
            assert places == sorted(places)
            assert places[1] < places[2]
