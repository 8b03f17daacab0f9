"""A sample of the attacks of `make chaos`: they are refused, in little memory, and others are served."""

from __future__ import annotations

from assurance.chaos.attacks import attack
from assurance.chaos.stage import Stage, Tally

#: What may be answered; a connection that is closed while a body is being sent shows no answer.
ALLOWED = {
    "nested JSON without a key": {"401", "connection closed"},
    "20,000 sites in a plan": {"413", "429", "connection closed"},
    "results as CSV, abandoned": {"200", "429", "connection closed"},
}


def test_attackers_are_refused_and_fill_no_memory() -> None:
    """How fast others are served meanwhile is measured by `make chaos`; here their requests must succeed."""
    tally = Tally()
    with Stage("sqlite") as stage:
        lines = list(attack(stage, tally, seconds=0.5, names=(*ALLOWED, "silent readers of results")))
    assert len(lines) == len(ALLOWED) + 1
    assert tally.problems == []
    for name, allowed in ALLOWED.items():
        answers = {what.split(": ")[2] for what in tally.counts if f": {name}: " in what}
        assert answers, name
        assert answers <= allowed, name
