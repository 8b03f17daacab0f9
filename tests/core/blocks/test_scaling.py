"""Private scaling: what it costs, which ranges it finds, and that nothing it does needs rows afterwards."""

import numpy as np
import pytest

from core.algorithms import registry
from core.algorithms.base import Clustering
from core.blocks.scaling import _range
from core.data import Boolean, Number, Table, TableSource
from core.errors import InvalidRequest
from core.jobs.transcript import Transcript
from core.plan import SCALING_SHARE, Request
from core.privacy import Budget
from tests.support.bits import inject_bytes

APPROXIMATE = Budget.of(1, "0.000001")


def table(high: float = 100.0, rows_per_person: int = 1) -> Table:
    declared = (Number(name="x", low=0, high=high), Number(name="y", low=0, high=10), Boolean(name="b"))
    return Table(declared=declared, size=20_000, rows_per_person=rows_per_person)


def source(domain: Table, count: int = 5000) -> TableSource:
    draw = np.random.default_rng(4)
    values = {"x": draw.uniform(2, 4, count), "y": draw.uniform(0, 10, count), "b": draw.random(count) < 0.5}
    return TableSource(domain, values)


@pytest.mark.parametrize("budget", [Budget.of(1), APPROXIMATE], ids=["pure", "approximate"])
@pytest.mark.parametrize("algorithm", ["summit", "sulq", "balcan"])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_scaled_plan_keeps_the_budget_and_measures_ranges_first(
    algorithm: str, budget: Budget, rows: int
) -> None:
    request = Request(3, budget, algorithm=algorithm, scaling="private")
    plan = registry.plan(table(rows_per_person=rows), request)
    assert plan.composition.within(budget)
    assert plan.steps[0].name == "scaling-ranges"
    assert plan.forecast["scaling_share"] == SCALING_SHARE
    assert plan.clustering_budget.epsilon == pytest.approx(1 - SCALING_SHARE)


def test_all_of_the_budget_is_used_where_every_step_is_gaussian() -> None:
    plan = registry.plan(table(), Request(3, APPROXIMATE, scaling="private"))
    alone = registry.plan(table(), Request(3, APPROXIMATE))
    assert plan.composition.mu_squared == pytest.approx(alone.composition.mu_squared, rel=1e-6)


def test_columns_are_scaled_by_the_range_that_was_released(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 8)
    plan = registry.plan(table(), Request(3, APPROXIMATE, scaling="private"))
    found = registry.run(plan, source(table()))
    low, high = found.details["ranges"]["x"]
    assert 1.5 <= low <= 2.5
    assert 3.5 <= high <= 4.5
    assert "b" not in found.details["ranges"], "a boolean has no bounds that could be loose"
    assert found.profiles is not None
    assert all(low <= profile[0]["value"] <= high for profile in found.profiles)


def test_no_rows_at_all_keep_the_declared_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 9)
    plan = registry.plan(table(), Request(3, APPROXIMATE, scaling="private"))
    found = registry.run(plan, source(table(), 0))
    assert found.details["ranges"]["x"] == [0.0, 100.0]


def test_a_scaled_release_is_replayed_from_what_was_released() -> None:
    plan = registry.plan(table(), Request(3, APPROXIMATE, scaling="private"))
    found = registry.run(plan, source(table()))
    content = b"".join(Transcript.of(found).parts())
    again = Transcript.read(content, table()).replay()
    assert isinstance(again, Clustering)
    assert np.array_equal(again.centres, found.centres)
    assert again.profiles == found.profiles


def test_levels_alone_have_nothing_to_scale() -> None:
    with pytest.raises(InvalidRequest, match="numbers, dates and times"):
        registry.plan(table(), Request(3, APPROXIMATE, columns=("b",), scaling="private"))


@pytest.mark.parametrize("codes", [2, 3, 100, 256, 1000, 65535])
def test_a_range_holds_exactly_the_codes_of_its_bins_and_at_least_two(codes: int) -> None:
    bins = np.arange(codes) * 256 // codes
    for first, last in ((0, 255), (0, 0), (255, 255), (17, 40), (128, 128)):
        counts = np.zeros(256)
        counts[[first, last]] = 100.0
        low, high = _range(counts, 1.0, codes)
        assert 0 <= low < high < codes
        inside = np.flatnonzero((bins >= first) & (bins <= last))
        if len(inside) > 1:
            assert (low, high) == (inside[0], inside[-1])


def test_one_frequent_value_does_not_pass_for_the_whole_column() -> None:
    counts = np.full(256, 8.0)  # below the noise
    counts[50] = 300.0
    assert _range(counts, noise=60.0, codes=1024) == (0, 1023)
    counts[:50] = counts[51:] = 0.0
    assert _range(10 * counts, noise=30.0, codes=1024) == (200, 203)
