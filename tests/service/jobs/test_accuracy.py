"""Tests of the accuracy that a plan states in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.algorithms import registry
from core.data import Dense
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from service.jobs.accuracy import accuracy


def planned(k: int | KRange, epsilon: str, size: int = 20_000, algorithm: str = "auto") -> Plan:
    domain = Dense.box([0, 0], [1, 10], columns=["age", "cost"], size=size)
    return registry.plan(domain, Request(k=k, budget=Budget.of(epsilon, "0.000001"), algorithm=algorithm))


def stated(uncertain: int) -> dict[str, Any]:
    return {"job": "", "epsilon": "1", "k": 3, "uncertain": uncertain, "sentence": "Your release."}


def test_figures_have_labels_and_units() -> None:
    forecast = {
        "smallest_cluster": 300.4,
        "noise_per_radius": 0.0123,
        "noise_at_bounds": 0.05,
        "cluster_share": 0.25,
        "swaps_tried": 7,
    }
    found = accuracy(replace(planned(4, "0.5"), forecast=forecast), None)["figures"]
    radius = "of its cluster's radius in 95 of 100 runs, for an average cluster"
    assert [tuple(each.values()) for each in found] == [
        (
            "smallest_cluster",
            "Smallest cluster that is found",
            "≈ 300",
            "records; an average one has 5,000",
        ),
        ("noise_per_radius", "Position of a centre", "± 2.5%", radius),
        ("noise_at_bounds", "Position at worst", "± 0.1", "in cost, for a cluster that fills the bounds"),
        ("swaps_tried", "Swaps tried", "7", ""),
    ]


def test_without_a_forecast_nothing_is_promised() -> None:
    found = accuracy(replace(planned(4, "0.5"), forecast={}), None)
    assert found["figures"] == []
    assert found["verdict"]["tone"] is None
    assert "does not forecast" in found["verdict"]["sentence"]


@pytest.mark.parametrize(
    ("k", "epsilon", "tone"), [(3, "1", "good"), (10, "0.2", "warn"), (30, "0.05", "bad")]
)
def test_the_verdict_follows_the_forecast(k: int, epsilon: str, tone: str) -> None:
    verdict = accuracy(planned(k, epsilon), None)["verdict"]
    assert verdict["tone"] == tone
    assert ("This counts noise only" in verdict["sentence"]) == (tone != "bad")  # which says enough


@pytest.mark.parametrize(("uncertain", "tone"), [(0, "good"), (1, "warn")])
def test_the_verdict_heeds_an_earlier_release_of_the_analyst(uncertain: int, tone: str) -> None:
    verdict = accuracy(planned(3, "1"), stated(uncertain))["verdict"]
    sentence = "The noise is small compared with the clusters. Your release."
    assert verdict == {"tone": tone, "sentence": sentence}


@pytest.mark.parametrize(
    ("size", "epsilon", "tone", "words"),
    [
        (10_000_000, "2", "good", "whichever k you choose"),
        (20_000, "1", "good", "Up to about k = "),
        (2000, "0.5", "warn", "The noise is noticeable; above about k = "),
        (300, "0.2", "bad", "The noise is as large as the clusters: raise epsilon."),
    ],
)
def test_a_range_says_up_to_which_k_the_forecast_holds(
    size: int, epsilon: str, tone: str, words: str
) -> None:
    found = accuracy(planned(KRange(1, 32), epsilon, size), None)
    assert found["verdict"]["tone"] == tone
    assert words in found["verdict"]["sentence"]
    assert "fine clusters" in found["basis"]


def test_every_limit_of_k_in_a_verdict_of_a_range_is_where_a_verdict_of_one_k_turns() -> None:
    plan = planned(KRange(1, 32), "0.6")
    words = accuracy(plan, None)["verdict"]["sentence"]
    small = int(words.partition("k = ")[2].partition(" ")[0])
    for k, tone in ((small, "good"), (small + 1, "warn")):
        share = plan.forecast["cluster_share"] * plan.k / k
        radius = plan.forecast["noise_per_radius"] * k / plan.k
        scaled = {**plan.forecast, "cluster_share": share, "noise_per_radius": radius}
        fixed = replace(plan, k=k, k_range=None, forecast=scaled)
        assert accuracy(fixed, None)["verdict"]["tone"] == tone
