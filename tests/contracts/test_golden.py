"""Plans change only on purpose: each is compared with what the files of `tests/contracts/golden` keep."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from core.jobs import kinds
from core.plan import Plan
from tests.contracts.cases import ASKED, BUDGETS, OPTIONS, cases
from tests.contracts.golden import ESTIMATES, PRIVACY, GoldenFile, changed, plans
from tests.contracts.library import questions, registry

SULQ = "sulq; means; box; approximate; k 3"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return plans()


@pytest.mark.parametrize("golden", [PRIVACY, ESTIMATES], ids=lambda golden: golden.path.stem)
def test_every_case_has_a_line_in_both_files(golden: GoldenFile) -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    assert list(golden.kept()) == names, f"run: python -m tests.contracts.golden --write-{golden.path.stem}"


def test_plans_keep_their_measurements_noise_and_cost(made: dict[str, Any]) -> None:
    assert PRIVACY.differences(made) == []


def test_plans_estimate_what_is_kept(made: dict[str, Any]) -> None:
    assert ESTIMATES.differences(made) == [], "run: python -m tests.contracts.golden --write-estimates"


def test_the_privacy_of_plans_is_kept_without_any_estimate() -> None:
    """Tuning a constant of time or of a forecast must not rewrite the file that promises privacy."""
    estimates = {"work", "operations", "memory_bytes", "seconds", "forecast"}
    assert {name for kept in PRIVACY.kept().values() for name in _names(kept)} & estimates == set()
    assert {name for kept in ESTIMATES.kept().values() for name in kept} == {"work", "forecast"}


def _names(value: Any) -> Iterator[str]:
    """Every name of a field, at any depth."""
    if isinstance(value, Mapping):
        yield from value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _names(part)


@pytest.mark.parametrize("name", ["summit; means; box; pure; k 3", SULQ])
def test_every_part_of_a_plan_but_its_wording_is_in_one_of_the_files(name: str, made: dict[str, Any]) -> None:
    assert {*PRIVACY.kept()[name], *ESTIMATES.kept()[name], "format", "reason"} == {*made[name].to_json()}


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


@pytest.mark.parametrize("factor", [1 - 1e-9, 1 + 1e-9])
def test_a_step_has_neither_less_nor_more_noise_than_is_kept(factor: float) -> None:
    was = PRIVACY.kept()[SULQ]
    now = copy.deepcopy(was)
    now["steps"]["sums"][1]["mu"] *= factor
    assert [path for path, _, _ in changed(was, now)] == ["steps.sums[1].mu"]


def test_another_repetition_and_another_order_of_steps_are_seen() -> None:
    was = PRIVACY.kept()[SULQ]
    now = copy.deepcopy(was)
    now["steps"]["sums"][2] += 1
    now["steps"] = dict(reversed(now["steps"].items()))
    assert [path for path, _, _ in changed(was, now)] == ["steps has", "steps.sums[2]"]
