"""One release for every k: what it plans, refuses, measures and derives."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from core.algorithms import registry
from core.algorithms.base import Clustering
from core.algorithms.summit import open_k
from core.data import ArraySource, ChunkLoader, Dense, Sparse
from core.errors import InvalidRequest
from core.estimators import PrivateKMeans
from core.jobs.transcript import Transcript
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.probe import Probe
from tests.support.bits import inject_bytes

APPROXIMATE, PURE = Budget.of(1, "0.000001"), Budget.of(1)
BOX = Dense.box(-1, 1, dimension=3, size=6000)
RANGE = KRange(1, 8)


def blobs(count: int = 6000) -> Any:
    """Four tight blobs."""
    draw = np.random.default_rng(4)
    middles = np.array([[0.6, 0, 0], [0, 0.6, 0], [0, 0, 0.6], [-0.5, -0.5, -0.5]])
    return middles[np.arange(count) % 4] + draw.normal(scale=0.05, size=(count, 3))


def plan_for(k: int | KRange = RANGE, budget: Budget = APPROXIMATE, domain: Any = BOX, **asked: Any) -> Plan:
    return registry.plan(domain, Request(k, budget, **asked))


@cache
def released() -> tuple[Clustering, Probe]:
    """One release, with the same noise in every run of the tests."""
    plan = plan_for()
    probe = Probe(plan, ArraySource(BOX, blobs()))
    with pytest.MonkeyPatch.context() as patch:
        inject_bytes(patch, 1)
        return registry.get("summit").run(plan, probe), probe


def everything(found: Clustering) -> dict[str, Any]:
    synopsis = found.synopsis
    assert synopsis is not None
    levels = {f"{level.k} {name}": value for level in synopsis.levels for name, value in vars(level).items()}
    rest = {name: value for name, value in vars(synopsis).items() if name not in ("levels", "tree", "domain")}
    return {**levels, **rest, "joined": synopsis.tree.joined, "added": synopsis.tree.added}


# --- plans ------------------------------------------------------------------------------------------------


def test_a_range_plans_fine_clusters_and_one_more_histogram() -> None:
    open_plan, single = plan_for(), plan_for(8)
    assert open_plan.k == 16
    assert {step.name for step in open_plan.steps} - {step.name for step in single.steps} == {"pooled"}
    assert open_plan.to_json()["k_range"] == {"from": 1, "to": 8}
    assert "k_range" not in single.to_json()
    assert "pooled_share" not in single.parameters


def test_moves_are_lengthened_only_where_k_is_open_and_noise_is_the_lesser_evil() -> None:
    many = Dense.box(-1, 1, dimension=3, size=10**5)
    assert plan_for(domain=many).parameters["long_moves"] is True
    few = Dense.box(-1, 1, dimension=3, size=600)
    wide = Dense.box(-1, 1, dimension=200, size=10**5)
    others = (plan_for(8, domain=many), plan_for(domain=few), plan_for(domain=wide), plan_for(budget=PURE))
    assert all("long_moves" not in plan.parameters for plan in others)


def test_a_range_spends_no_more_on_second_moments_of_few_columns_than_a_single_k_does() -> None:
    many = Dense.box(-1, 1, dimension=3, size=10**5)
    open_plan, single = plan_for(domain=many), plan_for(8, domain=many)
    assert open_plan.parameters["subspace_share"] < single.parameters["subspace_share"]


def test_a_plan_with_a_range_is_read_back_to_the_letter() -> None:
    plan = plan_for()
    again = Plan.from_json(plan.to_json(), BOX)
    assert again.k_range == RANGE
    assert again.digest == plan.digest


def test_more_records_or_a_larger_budget_carry_more_fine_clusters_up_to_an_eighth_above_the_range() -> None:
    def fine(size: int, epsilon: int) -> int:
        domain = Dense.box(-1, 1, dimension=3, size=size)
        return plan_for(KRange(1, 64), Budget.of(epsilon, "0.000001"), domain).k

    assert fine(1000, 1) == 16 < fine(6000, 1) < fine(9000, 1) < fine(10**6, 1) == 72
    assert fine(6000, 1) < fine(6000, 2)


@pytest.mark.parametrize("ends", [(0, 4), (5, 4), (1, 65), (1, 2.0), (True, 4)])
def test_a_range_that_makes_no_sense_is_refused(ends: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        KRange(*ends)
    assert refused.value.parameter == "k"


@pytest.mark.parametrize(
    ("domain", "asked"),
    [
        (BOX, {"algorithm": "balcan"}),
        (BOX, {"algorithm": "grid", "budget": PURE}),
        (BOX, {"objective": "medians"}),
        (Sparse(dimension=40, radius=1.0, size=1000), {}),
        (Dense.box(-1, 1, dimension=5000, size=1000), {}),
    ],
    ids=["balcan", "grid", "medians", "sparse", "too many columns"],
)
def test_what_cannot_leave_k_open_refuses_a_range_before_a_row_is_read(
    domain: Any, asked: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequest, match="a single k") as refused:
        plan_for(domain=domain, **asked)
    assert refused.value.parameter == "k"


# --- privacy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [np.zeros((0, 3)), blobs(40), blobs()], ids=["none", "few", "many"])
def test_the_number_of_fine_clusters_is_that_of_the_plan_whatever_the_rows(rows: Any) -> None:
    """A number that followed the noisy count would be another one for few rows than for many."""
    plan = plan_for()
    probe = Probe(plan, ArraySource(BOX, rows))
    registry.get("summit").run(plan, probe)
    measured = {r.step: r.values.shape for r in probe.transcript}
    assert measured["refine-3-sizes"] == (plan.k,)
    assert measured["refine-3-sums"] == (plan.k, 3)
    assert 1 < measured["pooled"][0] <= open_k.POOLED_BINS  # fewer if the released radius is small
    assert [r.step for r in probe.transcript][-1] == "pooled"


def test_every_answer_is_a_function_of_released_values_and_recorded_seeds() -> None:
    found = released()[0]
    again = Transcript.read(b"".join(Transcript.of(found).parts()), BOX).replay()
    assert isinstance(again, Clustering)
    first, second = everything(found), everything(again)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(second[name]), err_msg=name)


def test_no_row_is_read_after_the_last_measurement() -> None:
    plan, reads = plan_for(), [0]

    class Counted(ArraySource):
        def loaders(self) -> Sequence[ChunkLoader]:
            reads[0] += 1
            return super().loaders()

    registry.run(plan, Counted(BOX, blobs()), None, None)
    assert reads[0] <= plan.measurements


# --- answers ----------------------------------------------------------------------------------------------


def test_every_k_of_the_range_is_answered() -> None:
    synopsis = released()[0].synopsis
    assert synopsis is not None
    assert [level.k for level in synopsis.levels] == list(range(1, 9))
    for level in synopsis.levels:
        assert level.centres.shape == level.centre_low.shape == level.centre_high.shape == (level.k, 3)
        assert (level.centre_low <= level.centres).all()
        assert (level.centres <= level.centre_high).all()
        assert (level.size_low <= level.sizes).all()
        assert (level.sizes <= level.size_high).all()
        assert level.loss.low <= level.loss.value <= level.loss.high
    with pytest.raises(ValueError, match="from 1 to 8"):
        synopsis.at(9)


def test_what_is_there_is_found_and_its_loss_is_known() -> None:
    """Four blobs far apart; with other noise, 5 clusters are suggested in about 3 of 100 releases."""
    found = released()[0]
    synopsis, rows = found.synopsis, blobs()
    assert synopsis is not None
    assert synopsis.suggested == 4
    assert "k = 4" in synopsis.reason
    assert not synopsis.heavy_tailed
    level = synopsis.at(4)
    true = ((rows[:, None] - level.centres) ** 2).sum(axis=2).min(axis=1).mean()
    assert level.loss.low <= true <= level.loss.high
    assert level.explained > 0.9
    assert level.real.all()
    np.testing.assert_allclose(level.sizes, 1500, atol=400)
    assert (level.spreads < level.apart / 2).all()
    np.testing.assert_array_equal(found.centres, level.centres)


def test_the_tree_joins_all_fine_clusters_each_merge_dearer_than_the_one_before() -> None:
    synopsis = released()[0].synopsis
    assert synopsis is not None
    joined, added = synopsis.tree.joined, synopsis.tree.added
    assert sorted(joined.ravel().tolist()) == list(range(30))  # 16 fine clusters, 15 merges, one root
    assert (np.diff(added) >= -1e-12).all()


def test_made_up_rows_are_the_same_each_time_and_inside_the_bounds() -> None:
    synopsis = released()[0].synopsis
    assert synopsis is not None
    rows = synopsis.sample(1000)
    assert rows.shape == (1000, 3)
    assert (np.abs(rows) <= 1).all()
    np.testing.assert_array_equal(rows[:10], synopsis.sample(10))
    with pytest.raises(ValueError, match="10000 made-up rows"):
        synopsis.sample(10_001)


@pytest.mark.parametrize("rows", [np.zeros((0, 3)), np.zeros((500, 3))], ids=["none", "all equal"])
@pytest.mark.parametrize("budget", [APPROXIMATE, PURE], ids=["approximate", "pure"])
def test_odd_data_are_answered_like_any(rows: Any, budget: Budget) -> None:
    synopsis = registry.run(plan_for(budget=budget), ArraySource(BOX, rows)).synopsis
    assert synopsis is not None
    for level in synopsis.levels:
        numbers = (level.centres, level.centre_low, level.centre_high, level.sizes, level.size_high)
        assert all(np.isfinite(part).all() for part in numbers)
        assert np.isfinite([level.loss.value, level.loss.low, level.loss.high, level.explained]).all()


@pytest.mark.parametrize("width", [1, 20])
def test_one_column_and_many_are_answered_under_pure_epsilon(width: int) -> None:
    domain = Dense.box(-1, 1, dimension=width, size=2000)
    rows = np.random.default_rng(1).normal(scale=0.2, size=(2000, width))
    synopsis = registry.run(plan_for(KRange(2, 4), PURE, domain), ArraySource(domain, rows)).synopsis
    assert synopsis is not None
    assert [level.k for level in synopsis.levels] == [2, 3, 4]


def test_an_estimator_takes_a_range() -> None:
    model = PrivateKMeans((1, 4), epsilon=2.0, bounds=(-1, 1), size_bound=6000).fit(blobs())
    assert model.plan_.k_range == KRange(1, 4)
    assert model.synopsis_ is not None
    level = model.synopsis_.at(model.synopsis_.suggested)
    np.testing.assert_array_equal(model.cluster_centers_, level.centres)
    assert model.predict(blobs()).max() < level.k
