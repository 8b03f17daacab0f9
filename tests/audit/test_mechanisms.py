"""Every mechanism keeps its declared loss on the neighbours that tell most, and an audit shows how nearly.

False alarms: 14 bounds, each wrong with probability 1e-8 at most.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest

from assurance.audit.audits import Audit
from assurance.audit.mechanisms import MECHANISMS, MechanismCase, loop
from assurance.audit.probes import WHOLE
from assurance.audit.twins import SkipsEmptyCells, fresh_coins, half_the_noise
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.threshold import Threshold
from core.probe import Probe
from tests.support.bits import inject_bytes

ALPHA = 1e-8
PILOT, RUNS = 800, 4_000

#: What an audit of so few draws must find, as a share of what is declared: it would miss little.
LEAST = {
    "GaussianNoise, a sum": 0.6,
    "LaplaceNoise, a sum": 0.6,
    "L2Noise, one column": 0.6,
    "L2Noise, three columns": 0.5,
    "Choice, all scores but one rise": 0.4,
    "Threshold, Laplace": 0.5,
    "Coverage, pure": 0.25,
}


@pytest.fixture(autouse=True)
def the_same_bits_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a twin is caught must not depend on luck; `make audit` looks at fresh bits."""
    inject_bytes(monkeypatch, 2026)


def audit(case: MechanismCase, twin: Any = None, runs: int = RUNS, pilot: int = PILOT) -> Audit:
    draw = np.random.default_rng(2026)
    found = Audit.begin(case.claims, case.sample(pilot, draw, twin), runs)
    found.count(case.sample(runs, draw, twin))
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_keeps_its_declared_loss(name: str) -> None:
    case = MECHANISMS[name]
    found = audit(case, None, RUNS // case.draws_each, PILOT // case.draws_each)
    assert found.violations(ALPHA) == {}
    assert found.bounds(ALPHA)[WHOLE] >= LEAST.get(name, 0.0) * case.claims[WHOLE].limit


@pytest.mark.parametrize("name", [name for name in LEAST if not name.startswith(("Choice", "Coverage"))])
def test_half_the_noise_is_caught(name: str) -> None:
    case = MECHANISMS[name]
    assert audit(case, half_the_noise(case.declared)).violations(ALPHA)


def test_a_threshold_that_skips_empty_cells_is_caught() -> None:
    case = MECHANISMS["Threshold, Laplace"]
    assert isinstance(case.declared, Threshold)
    assert audit(case, SkipsEmptyCells(**dataclasses.asdict(case.declared))).violations(ALPHA)


def test_a_choice_that_forgets_that_scores_move_both_ways_is_caught() -> None:
    case = MECHANISMS["Choice, one rises and others fall"]
    assert audit(case, half_the_noise(case.declared)).violations(ALPHA)


@pytest.mark.audit
def test_coins_tossed_anew_in_every_round_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in exact probabilities, and in `make test`: tests/core/coverage/test_loop_law.py."""
    case = loop("two sites", CoverageChoice(2.0), 3, site=1, count=2)
    monkeypatch.setattr(Probe, "_cover", fresh_coins)
    assert audit(case, runs=10_000, pilot=3_000).violations(ALPHA)
