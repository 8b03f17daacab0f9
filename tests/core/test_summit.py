"""The house algorithm: what it plans, what it measures, and that it finds what is there."""

import numpy as np
import numpy.typing as npt
import pytest

from core.algorithms import registry
from core.algorithms.summit import Summit
from core.domain import Dense
from core.errors import EpsilonTooSmall
from core.plan import Plan, Request
from core.privacy import Budget
from core.probe import Probe
from core.source import ArraySource, DataSource
from core.statistics import ClusterCounts, NormHistogram, ResidualSums, SecondMoments, Statistic

APPROXIMATE = Budget.of(1, "0.000001")
PURE = Budget.of(1)
BUDGETS = pytest.mark.parametrize("budget", [APPROXIMATE, PURE], ids=["approximate", "pure"])


def blobs(count: int, width: int, seed: int = 1) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Three tight blobs on the axes of a box from -20 to 20, and their middles."""
    draw = np.random.default_rng(seed)
    middles = 10.0 * np.eye(3, width)
    return middles[draw.integers(0, 3, count)] + draw.normal(size=(count, width)) * 0.5, middles


def plan_for(domain: Dense, k: int = 3, budget: Budget = APPROXIMATE, objective: str = "means") -> Plan:
    return registry.plan(domain, Request(k, budget, objective, "summit"))


class WatchedProbe(Probe):
    """A probe that remembers the statistics it was asked for."""

    def __init__(self, plan: Plan, source: DataSource) -> None:
        super().__init__(plan, source)
        self.seen: list[tuple[str, Statistic]] = []

    def measure(self, step_name: str, statistic: Statistic) -> npt.NDArray[np.int64]:
        self.seen.append((step_name, statistic))
        return super().measure(step_name, statistic)


def watched(count: int, width: int, budget: Budget = APPROXIMATE, k: int = 3) -> WatchedProbe:
    domain = Dense.box(-20, 20, dimension=width, size=max(count, 1000))
    plan = plan_for(domain, k, budget)
    probe = WatchedProbe(plan, ArraySource(domain, blobs(count, width)[0]))
    Summit().run(plan, probe)
    return probe


def loss(rows: npt.NDArray[np.float64], centres: npt.NDArray[np.float64]) -> float:
    distances = ((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return float(distances.min(axis=1).sum())


@BUDGETS
@pytest.mark.parametrize("objective", ["means", "medians"])
def test_blobs_are_found_almost_as_well_as_without_privacy(budget: Budget, objective: str) -> None:
    rows, middles = blobs(10_000, 3)
    domain = Dense.ball(24, dimension=3, size=10_000)
    plan = plan_for(domain, 3, budget, objective)
    found = registry.run(plan, ArraySource(domain, rows))
    assert loss(rows, found.centres) < 1.05 * loss(rows, middles)
    assert found.sizes is not None
    assert np.abs(found.sizes.sum() - 10_000) < 500


@BUDGETS
@pytest.mark.parametrize("width", [1, 3, 40])
def test_a_plan_spends_the_whole_budget_and_no_more(budget: Budget, width: int) -> None:
    plan = plan_for(Dense.box(0, 1, dimension=width, size=50_000), 5, budget)
    assert plan.composition.within(budget)
    smaller = Budget.at_most(0.99 * budget.epsilon, budget.delta)
    assert not plan.composition.within(smaller)


def test_more_rows_per_person_mean_more_noise() -> None:
    one, four = (
        plan_for(Dense.box(0, 1, dimension=3, size=50_000, rows_per_person=m)).step("size").mechanism
        for m in (1, 4)
    )
    assert four.loss.mu == pytest.approx(one.loss.mu / 4, rel=1e-6)  # type: ignore[union-attr]


def test_a_budget_that_tells_nothing_is_refused_before_a_plan_exists() -> None:
    domain = Dense.box(0, 1, dimension=3, size=1000)
    with pytest.raises(EpsilonTooSmall, match="larger epsilon"):
        plan_for(domain, 3, Budget.of("0.0001", "0.000001"))
    with pytest.raises(EpsilonTooSmall):
        plan_for(domain, 3, Budget.of("0.0001"))


@BUDGETS
@pytest.mark.parametrize("count", [0, 2, 3000])
def test_every_planned_round_is_measured_for_every_centre_whatever_the_rows(
    budget: Budget, count: int
) -> None:
    probe = watched(count, 3, budget)
    for step in probe.plan.steps:
        measured = [statistic for name, statistic in probe.seen if name == step.name]
        if step.name != "tree":
            assert len(measured) == step.repeats
        if step.name.startswith("refine"):
            assert all(statistic.shape[0] == 3 for statistic in measured)


def test_noise_of_sums_follows_the_radius_that_clips_them() -> None:
    for name, statistic in watched(3000, 3).seen:
        if isinstance(statistic, ResidualSums):
            scales = statistic.sensitivity.scales[:, 0]
            assert np.array_equal(scales, statistic.radii * 2.0**15), name


def test_centres_and_sizes_of_a_round_are_about_the_same_centres() -> None:
    probe = watched(3000, 3)
    rounds = [s for _, s in probe.seen if isinstance(s, (NormHistogram, ResidualSums, ClusterCounts))]
    for spread, sums, sizes in zip(rounds[1::3], rounds[2::3], rounds[3::3], strict=True):
        assert spread.view.digest == sums.view.digest == sizes.view.digest


def test_second_moments_are_clipped_more_tightly_than_rows() -> None:
    (moments,) = (s for _, s in watched(3000, 3).seen if isinstance(s, SecondMoments))
    assert moments.radius < 0.6 * 32767


def test_auto_means_summit_for_dense_rows_and_says_why() -> None:
    domain = Dense.box(0, 1, dimension=3, size=1000)
    for objective in ("means", "medians"):
        plan = registry.plan(domain, Request(3, APPROXIMATE, objective))
        assert plan.algorithm == "summit"
        assert objective in plan.reason
