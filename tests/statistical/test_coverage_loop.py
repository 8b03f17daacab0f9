"""The coverage loop whole: coins, rounds and sampler together have the law that the proof is about."""

import numpy as np
import pytest
from scipy.stats import chisquare

from core.coverage.loop import CoverageLoop
from core.data import ArraySource
from core.mechanisms.coverage_choice import CoverageChoice
from core.plan import Plan, Step
from core.privacy import Budget
from core.probe import Probe
from tests.core.coverage.test_loop_law import DOMAIN, System, Table, plain_law, sampled
from tests.support.bits import inject_bytes

RUNS = 1_500


def test_picks_through_the_probe_have_the_enumerated_law(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = (frozenset({0, 1}), frozenset({1, 2, 3}), frozenset({3}))
    system = System((sets, (frozenset({0, 2}), frozenset({0, 1, 2, 3}))), (2, 1))
    mechanism = CoverageChoice(0.8)
    dataset = frozenset({0, 1, 3})
    law = sampled(lambda kept: plain_law(system, kept, mechanism.eta), dataset, mechanism)
    plan = Plan("x", "medians", 1, DOMAIN, Budget.of(1), (Step("cover", mechanism, CoverageLoop.kind, 3),))
    source = ArraySource(DOMAIN, np.array(sorted(dataset)), chunk_rows=2)
    inject_bytes(monkeypatch, 77)
    found = dict.fromkeys(law, 0)
    for _ in range(RUNS):
        picks = Probe(plan, source).measure("cover", CoverageLoop(Table(system), system.rounds))
        found[tuple(picks.tolist())] += 1
    expected = np.array([law[picks] * RUNS for picks in found])
    assert expected.min() > 5
    # Chi-square with 17 degrees of freedom; false-alarm rate 1e-7 for fresh bits, none for these.
    assert chisquare(list(found.values()), expected).pvalue > 1e-7
