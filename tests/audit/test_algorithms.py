"""Every algorithm of the registry keeps its declared loss, step by step and as a whole; broken twins do not.

False alarms: fewer than 400 bounds, each wrong with probability 1e-9 at most.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assurance.audit.audits import Audit, sample
from assurance.audit.cases import CASES, PAIRS, VARIANTS, Case, UnitCase
from assurance.audit.probes import WHOLE
from assurance.audit.twins import (
    broken_plan,
    exactly,
    half_the_noise,
    skipping_empty,
    unscaled,
)
from core.algorithms import registry
from core.plan import Plan
from core.privacy import Budget
from core.questions import registry as questions
from core.statistics.sums import ResidualSums, SecondMoments
from service.operations.states import Unit
from tests.support.bits import inject_bytes

ALPHA = 1e-9


@pytest.fixture(autouse=True)
def the_same_bits_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a twin is caught must not depend on luck; `make audit` looks at fresh bits."""
    inject_bytes(monkeypatch, 2026)


def audit(case: Case, runs: int, pilot: int, twin: Plan | None = None) -> dict[str, tuple[float, float]]:
    """Steps (and the whole) that were shown to lose more than they declare."""
    draw = np.random.default_rng(2026)
    found = Audit.begin(case.claims, sample(case, pilot, draw, twin), runs)
    found.count(sample(case, runs, draw, twin))
    return found.violations(ALPHA)


def test_every_algorithm_of_the_registry_is_audited() -> None:
    every = {*registry.names(), *questions.names()}
    assert {variant.algorithm for variant in VARIANTS.values()} == every


@pytest.mark.parametrize("name", VARIANTS)
def test_every_step_of_an_algorithm_is_audited(name: str) -> None:
    """Runs are scored, and events chosen and counted; so few of them prove nothing, as those below do."""
    case = CASES[f"{name}, outlier"]
    draw = np.random.default_rng(2026)
    found = Audit.begin(case.claims, sample(case, 2, draw), runs=2)
    found.count(sample(case, 2, draw))
    assert set(found.bounds(ALPHA)) == {WHOLE, *(step.name for step in case.plan.steps)}
    assert found.violations(ALPHA) == {}


#: One of each way to measure that is quick enough to run as often as it takes to catch a broken one.
OFTEN = ("sulq approximate", "sulq pure", "sulq table pure", "gupta pure", "grid pure", "summary pure")


@pytest.mark.parametrize("name", OFTEN)
def test_an_algorithm_keeps_its_declared_loss(name: str) -> None:
    """As many runs as show that exact counts lose more than they declare."""
    assert audit(CASES[f"{name}, outlier"], runs=60, pilot=30) == {}


# --- twins that few runs catch ----------------------------------------------------------------------------

SULQ, PURE_SULQ = CASES["sulq approximate, outlier"], CASES["sulq pure, outlier"]
GRID = Case(replace(VARIANTS["grid pure"], budget=Budget.of(1)), PAIRS["outlier"])


@pytest.mark.parametrize("case", [SULQ, PURE_SULQ], ids=lambda case: case.name)
def test_exact_counts_are_caught(case: Case) -> None:
    caught = audit(case, 60, 30, broken_plan(case.plan, "counts", exactly))
    assert "counts" in caught


@pytest.mark.parametrize("case", [SULQ, PURE_SULQ], ids=lambda case: case.name)
def test_noise_for_a_sensitivity_that_was_not_scaled_is_caught(case: Case) -> None:
    caught = audit(case, 250, 50, broken_plan(case.plan, "sums", unscaled))
    assert "sums" in caught
    assert "counts" not in caught


def test_an_empty_cell_that_is_skipped_is_caught() -> None:
    caught = audit(GRID, 120, 30, broken_plan(GRID.plan, "cells", skipping_empty))
    assert "cells" in caught


@pytest.mark.parametrize(
    ("step", "runs"), [pytest.param("counts", 1200, marks=pytest.mark.audit), ("sums", 600)]
)
def test_half_the_noise_in_one_step_is_caught(step: str, runs: int) -> None:
    caught = audit(SULQ, runs, runs // 5, broken_plan(SULQ.plan, step, half_the_noise))
    assert step in caught
    assert len(set(caught) - {WHOLE}) == 1


# --- wrong questions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "step"),
    [("profile of table pure", "histograms"), ("table approximate", "cells"), ("quantiles pure", "trees")],
)
def test_a_level_that_is_skipped_because_it_is_empty_is_caught(name: str, step: str) -> None:
    case = at_epsilon_one(name)
    assert step in audit(case, 120, 30, broken_plan(case.plan, step, skipping_empty))


def at_epsilon_one(name: str) -> Case:
    delta = VARIANTS[name].budget.delta_text
    return Case(replace(VARIANTS[name], budget=Budget.of(1, delta)), PAIRS["outlier"])


def test_a_profile_with_noise_for_one_histogram_is_caught() -> None:
    """The sensitivity of several histograms is their number."""
    case = at_epsilon_one("profile pure")
    assert "histograms" in audit(case, 800, 100, broken_plan(case.plan, "histograms", unscaled))


# --- units of privacy -------------------------------------------------------------------------------------


def of_unit(unit: Unit, **changes: Any) -> UnitCase:
    return replace(UnitCase.of(replace(VARIANTS["grid pure"], budget=Budget.of(1)), unit), **changes)


@pytest.mark.parametrize("unit", Unit)
def test_all_that_a_unit_protects_loses_what_is_declared(unit: Unit) -> None:
    assert audit(of_unit(unit), runs=120, pilot=30) == {}


def test_noise_for_the_rows_of_one_period_is_caught_where_a_person_is_in_three() -> None:
    case = of_unit(Unit.PERSON, protected=lambda unit, periods, limit: limit)
    assert "cells" in audit(case, runs=150, pilot=30)


def test_noise_for_one_row_is_caught_where_a_person_has_two_in_a_period() -> None:
    case = of_unit(Unit.PERSON_IN_PERIOD, protected=lambda unit, periods, limit: 1)
    assert "cells" in audit(case, runs=600, pilot=80)


# --- a wrong table ----------------------------------------------------------------------------------------

SCALED = CASES["sulq scaled approximate, outlier"]


@pytest.mark.parametrize("pair", ["zero row", "first record", "two rows"])
def test_a_level_nobody_has_and_a_record_of_gaps_cost_what_was_declared(pair: str) -> None:
    for name in ("sulq table pure", "sulq scaled approximate"):
        assert audit(CASES[f"{name}, {pair}"], runs=16, pilot=8) == {}


def test_ranges_that_are_read_off_exact_histograms_are_caught() -> None:
    caught = audit(SCALED, 60, 20, broken_plan(SCALED.plan, "scaling-ranges", exactly))
    assert "scaling-ranges" in caught


# --- a wrong summit ---------------------------------------------------------------------------------------

SUMMIT, PURE_SUMMIT = CASES["summit means approximate, outlier"], CASES["summit means pure, outlier"]


@pytest.mark.parametrize("case", [SUMMIT, PURE_SUMMIT], ids=lambda case: case.name)
def test_a_summit_that_releases_an_exact_size_is_caught(case: Case) -> None:
    caught = audit(case, 30, 12, broken_plan(case.plan, "size", exactly))
    assert "size" in caught


def test_a_summit_that_skips_empty_clusters_is_caught() -> None:
    case = CASES["summit means approximate, first record"]
    caught = audit(case, 30, 12, broken_plan(case.plan, "refine-1-sizes", skipping_empty))
    assert "refine-1-sizes" in caught


def test_a_summit_that_does_not_clip_residuals_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise follows the released radius; sums do not."""
    clipped = ResidualSums.of

    def unclipped(self: ResidualSums, chunk: Any) -> Any:
        return clipped(ResidualSums(self.view, np.full_like(self.radii, 2 * 32767)), chunk)

    monkeypatch.setattr(ResidualSums, "of", unclipped)
    caught = audit(SUMMIT, 40, 12)
    assert any(step.endswith("-sums") for step in caught), caught


def test_a_summit_whose_second_moments_are_not_clipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tight radius is what their noise is scaled to."""
    clipped = SecondMoments.of

    def unclipped(self: SecondMoments, chunk: Any) -> Any:
        return clipped(SecondMoments(self.view, self.centre, 2 * 32767), chunk)

    monkeypatch.setattr(SecondMoments, "of", unclipped)
    assert "moments" in audit(SUMMIT, 80, 15)
