"""Attacks by one caller are answered by refusals, in little memory, and hurt nobody's requests."""

from __future__ import annotations

from collections import Counter

from tests.chaos.attacks import ATTACKS, attack
from tests.chaos.stage import Stage, Tally


def test_attackers_are_refused_and_fill_no_memory() -> None:
    """How fast others are served meanwhile is measured by `make chaos`; here their requests must succeed."""
    tally = Tally()
    with Stage("sqlite") as stage:
        attack(stage, tally, seconds=1.0)
    answers: dict[str, Counter[str]] = {name: Counter() for name in ATTACKS}
    for what, number in tally.counts.items():
        if what.count(": ") == 2:
            _, name, status = what.split(": ")
            answers[name][status] += number
    assert [problem for problem in tally.problems if "memory" in problem] == []
    without_key = answers.pop("nested JSON without a key")
    assert set(without_key) <= {"401", "connection closed"}
    assert without_key.total() > 0
    for name, found in answers.items():
        assert found["429"] > 0 or name in ("lists of 500 jobs", "submit and cancel"), name
        assert all(status < "500" for status in found if status.isdecimal()), (name, found)
