"""The ablation: every rule can be switched off, and is on again afterwards."""

import pytest

from benchmarks.ablation import RULES, summarise
from core.algorithms import registry
from core.data import Dense


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_switched_off_and_on_again(name: str) -> None:
    rule = RULES[name]
    before = [getattr(module, constant) for module, constant, _ in rule.patches]
    with rule.off():
        assert [getattr(module, constant) for module, constant, _ in rule.patches] != before
    assert [getattr(module, constant) for module, constant, _ in rule.patches] == before


def test_a_rule_that_is_off_is_not_in_the_plan() -> None:
    rule = RULES["columns that vary"]
    cell = rule.cells[0]
    domain = Dense.box(0, 1, dimension=cell.columns, size=cell.size)

    def measures_columns() -> bool:
        return any(step.name == "columns" for step in registry.plan(domain, cell.request).steps)

    assert measures_columns()
    with rule.off():
        assert not measures_columns()


def test_the_table_says_how_much_more_is_lost_without_a_rule() -> None:
    runs = [
        {"rule": "a", "cell": "c", "seed": str(seed), "with": "1.0", "without": without}
        for seed, without in enumerate(("1.1", "1.3"))
    ]
    (line,) = summarise(runs)
    assert line["without it, %"] == "+20.0 ± 10.0"
