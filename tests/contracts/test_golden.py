"""Plans change only on purpose: each is compared with the one that `golden/plans.jsonl` keeps."""

import copy
import json
from typing import Any

import pytest

from core.jobs import kinds
from core.plan import Plan
from tests.contracts.cases import ASKED, BUDGETS, OPTIONS, cases
from tests.contracts.golden import (
    MOVED,
    Difference,
    compare,
    differences,
    golden_plans,
    moves,
    record,
)
from tests.contracts.library import questions, registry


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    return [record(case) for case in cases()]


@pytest.fixture(scope="module")
def found(made: list[dict[str, Any]]) -> dict[str, list[Difference]]:
    return differences(made)


def test_every_case_has_a_golden_plan() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    assert list(golden_plans()) == names, "run: python -m tests.contracts.golden --write"


def test_a_plan_that_is_read_back_states_the_same_work() -> None:
    """As workers read it, without its sites; they void jobs whose plans do not."""
    for case in cases():
        plan = case.plan()
        again = Plan.from_json(json.loads(json.dumps(plan.to_json())), plan.stored)
        assert kinds.get(again).work(again) == plan.work, case.name


def test_every_algorithm_objective_guarantee_and_option_has_a_case() -> None:
    wanted: set[tuple[Any, ...]] = set()
    pinned: set[tuple[Any, ...]] = set()
    for name in registry.names():
        algorithm = registry.get(name)
        wanted |= {(name, objective) for objective in algorithm.objectives}
        wanted |= {(name, budget) for budget in BUDGETS if algorithm.guarantee in (budget, "either")}
        for option in algorithm.options:
            wanted |= {(name, option.name, choice) for choice in option.choices or ()}
            wanted.add((name, option.name))
        pinned |= {(name, "sites")} | {(name, o.name, o.default) for o in algorithm.options if o.choices}
    for case in cases():
        pinned |= {(case.algorithm, case.objective), (case.algorithm, case.budget)}
    for name, several in OPTIONS.items():
        for options in several:
            pinned |= {(name, option) for option in options} | {(name, *item) for item in options.items()}
    assert wanted - pinned == set()


def test_every_question_and_every_option_of_it_has_a_case() -> None:
    assert set(ASKED) == set(questions.names())
    for name, (common, several) in ASKED.items():
        options = {option.name for option in questions.get(name).options}
        assert {option for each in (common, *several) for option in each} == options
    asked = {(case.algorithm, case.budget) for case in cases() if case.objective == "question"}
    assert asked == {(name, budget) for name in ASKED for budget in BUDGETS}


def test_plans_are_the_golden_ones(found: dict[str, list[Difference]]) -> None:
    assert {name: bad for name, each in found.items() if (bad := [d for d in each if not d.tolerated])} == {}


def test_noise_that_moved_within_the_tolerance_is_listed(found: dict[str, list[Difference]]) -> None:
    assert moves(found) == MOVED.read_text(), "run: python -m tests.contracts.golden --list"


def test_plans_name_the_public_inputs_they_were_made_for(made: list[dict[str, Any]]) -> None:
    kept = golden_plans()
    assert [each["case"] for each in made if each["inputs"] != kept[each["case"]]["inputs"]] == []


@pytest.mark.parametrize(
    ("factor", "tolerated"), [(0.9991, True), (1 + 1e-9, True), (0.998, False), (1.0001, False)]
)
def test_a_step_may_have_a_little_more_noise_but_not_less_than_its_share(
    factor: float, tolerated: bool
) -> None:
    was = golden_plans()["sulq; means; box; approximate; k 3"]["plan"]
    now = copy.deepcopy(was)
    mechanism = next(step for step in now["steps"] if step[0] == "sums")[3]
    mechanism["mu"] *= factor
    (seen,) = compare(was, now)
    assert seen.path == "steps.sums.mechanism.mu"
    assert seen.tolerated is tolerated


def test_another_repetition_order_or_work_is_never_tolerated() -> None:
    was = golden_plans()["sulq; means; box; approximate; k 3"]["plan"]
    now = copy.deepcopy(was)
    now["steps"].reverse()
    now["steps"][0][2] += 1
    now["work"]["operations"] *= 1.0001
    seen = compare(was, now)
    assert len(seen) == 3
    assert not any(each.tolerated for each in seen)
