"""A plan exists only within its budget, and its receipt re-computes to the same loss."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import Dense
from core.errors import InvalidRequest, PlanViolation, WorkLimitExceeded
from core.mechanisms.base import Mechanism
from core.mechanisms.choice import Choice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.plan import Plan, Request, Step, Work
from core.privacy import Budget
from core.privacy.losses import Pure
from core.privacy.sensitivity import Sensitivity
from core.privacy.shares import Shares
from core.statistics.base import Statistic
from core.statistics.scores import BOUNDED_BY_ENTRY, NetLosses, SetLosses, SwapLosses
from tests.support.privacy import epsilon_at
from tests.support.statistics import STATISTICS


def make_plan(steps: list[Step], budget: Budget, rows_per_person: int = 1) -> Plan:
    domain = Dense.box(0, 1, dimension=2, size=100, rows_per_person=rows_per_person)
    return Plan("test", "means", 2, domain, budget, tuple(steps))


mechanisms = st.one_of(
    st.builds(GaussianNoise, st.floats(0.001, 0.5)),
    st.builds(LaplaceNoise, st.floats(0.001, 0.5)),
    st.builds(L2Noise, st.floats(0.001, 0.5)),
    st.builds(Choice, st.floats(0.001, 0.5)),
)


@given(
    st.lists(st.tuples(mechanisms, st.integers(1, 5)), min_size=1, max_size=6),
    st.integers(1, 4),
)
def test_a_receipt_recomputes_to_the_same_loss(
    parts: list[tuple[GaussianNoise | LaplaceNoise | L2Noise | Choice, int]], rows: int
) -> None:
    steps = [Step(f"s{i}", mechanism, "count", repeats) for i, (mechanism, repeats) in enumerate(parts)]
    plan = make_plan(steps, Budget.of(1000, "0.001"), rows)
    receipt = json.loads(json.dumps(plan.to_json()))
    again = Plan.from_json(receipt, plan.stored)
    assert again.composition == plan.composition
    assert again.digest == plan.digest
    assert (again.rho_units, again.approximate_delta_units) == (plan.rho_units, plan.approximate_delta_units)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=8), st.booleans(), st.integers(1, 3))
def test_composed_parts_never_exceed_the_whole_and_one_more_is_refused(
    weights: list[int], pure: bool, rows: int
) -> None:
    budget = Budget.of("0.7") if pure else Budget.of("0.7", "0.000001")
    shares = Shares(budget, rows)
    steps = []
    for i, weight in enumerate(weights):
        loss = shares.noise(weight / sum(weights))
        noise = LaplaceNoise(loss.epsilon) if isinstance(loss, Pure) else GaussianNoise(loss.mu)
        steps.append(Step(f"s{i}", noise, "count"))
    plan = make_plan(steps, budget, rows)
    assert epsilon_at(plan.composition, budget.delta) <= budget.epsilon * (1 + 1e-8)
    extra = Step("extra", steps[0].mechanism, "count")
    with pytest.raises(PlanViolation, match="more than its budget"):
        make_plan([*steps, extra], budget, rows)


def rounded_laplace(epsilon: float) -> dict[int, float]:
    """The exact law of round(L), L Laplace of scale 1/epsilon, far enough into the tails."""

    def side(z: int) -> float:
        return -0.5 * math.exp(-epsilon * (z - 0.5)) * math.expm1(-epsilon)

    return {z: side(abs(z)) if z else -math.expm1(-epsilon / 2) for z in range(-60, 61)}


def test_rows_per_person_protects_that_many_rows_on_an_enumerable_instance() -> None:
    """A noisy count, enumerated: neighbours that differ by one person's m rows stay within epsilon."""
    for rows, pure_epsilon in itertools.product((1, 2, 5), (0.5, 1.0)):
        budget = Budget.of(pure_epsilon)
        loss = Shares(budget, rows).noise(1.0)
        assert isinstance(loss, Pure)
        plan = make_plan([Step("count", LaplaceNoise(loss.epsilon), "count")], budget, rows)
        mechanism = plan.step("count").mechanism
        assert isinstance(mechanism, LaplaceNoise)
        law = rounded_laplace(mechanism.epsilon)
        ratios = [abs(math.log(law[z] / law[z - rows])) for z in range(-40, 41)]
        assert max(ratios) <= pure_epsilon
        assert max(ratios) >= 0.99 * pure_epsilon
        if rows > 1:
            unprotected = rounded_laplace(pure_epsilon)
            wrong = [abs(math.log(unprotected[z] / unprotected[z - rows])) for z in range(-40, 41)]
            assert max(wrong) > 1.9 * pure_epsilon


def test_a_plan_says_whom_it_protects() -> None:
    step = Step("count", LaplaceNoise(0.1), "count")
    assert make_plan([step], Budget.of(1)).to_json()["privacy"]["unit"] == "row"
    assert make_plan([step], Budget.of(1), 2).to_json()["privacy"]["unit"] == "person"


def test_two_steps_cannot_share_a_name() -> None:
    step = Step("count", LaplaceNoise(0.1), "count")
    with pytest.raises(PlanViolation, match="same name"):
        make_plan([step, step], Budget.of(1))


@pytest.mark.parametrize("mechanism", [GaussianNoise(0.1), LaplaceNoise(0.1), L2Noise(0.1)])
@pytest.mark.parametrize("scores", [SwapLosses, SetLosses, NetLosses])
def test_noise_on_scores_of_swaps_sets_and_nets_is_refused(
    mechanism: Mechanism, scores: type[Statistic]
) -> None:
    """One record moves all of them at once, by up to 1e10 each: no norm over entries is bounded."""
    with pytest.raises(PlanViolation, match="no finite"):
        Step("scores", mechanism, scores.kind)
    assert Step("scores", Choice(0.1), scores.kind).mechanism == Choice(0.1)
    with pytest.raises(PlanViolation, match="no finite"):
        Step("counts", mechanism, "count", alternative=scores.kind)


def test_a_statistic_without_a_finite_sensitivity_is_known_to_plans() -> None:
    for statistic in STATISTICS:
        declared = statistic.sensitivity
        assert math.isfinite(declared.linf)
        unbounded = not (math.isfinite(declared.l1) and math.isfinite(declared.l2))
        assert unbounded == (statistic.kind in BOUNDED_BY_ENTRY), statistic.kind


def test_noise_is_never_drawn_for_a_statistic_without_a_bound() -> None:
    unbounded = Sensitivity(l1=math.inf, l2=math.inf)
    for mechanism in (GaussianNoise(0.1), LaplaceNoise(0.1), L2Noise(0.1)):
        with pytest.raises(ValueError, match="bounded"):
            mechanism.release(np.zeros((1, 2), dtype=np.int64), unbounded)


def test_a_plan_holds_only_json() -> None:
    domain = Dense.box(0, 1, dimension=2, size=100)
    step = Step("count", LaplaceNoise(0.1), "count")
    for value in (np.zeros(2), math.nan):
        with pytest.raises((TypeError, ValueError)):
            Plan("test", "means", 2, domain, Budget.of(1), (step,), {"value": value})


@pytest.mark.parametrize("k", [0, -1, 10_001, True, 2.0, "3"])
def test_a_request_needs_a_sensible_k(k: object) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        Request(k, Budget.of(1))  # type: ignore[arg-type]  # wrong on purpose
    assert refusal.value.parameter == "k"


def test_work_beyond_the_limit_is_refused_with_both_numbers() -> None:
    with pytest.raises(WorkLimitExceeded, match=r"2\.0e\+12 operations; the limit is 1\.0e\+12"):
        Work(2e12, 0).require_within(Work(1e12, 1e9))
