"""The suggested number of clusters: where a gap statistic stops growing."""

import numpy as np
import pytest

from core import Budget, Request, make_plan, run_plan
from core.data import Boolean, Number, Table, TableSource
from core.plan import KRange
from core.postprocessing.synopsis.suggestion import also_fitting, first_near_top, steady_gain, why

#: Gaps of a table of five clusters with numbers and categories, whose rare levels are small groups.
TABLE = [0.0, 0.10, 0.25, 0.44, 0.64, 0.67, 0.70, 0.73, 0.76, 0.79, 0.83, 0.87]


def test_the_first_k_that_is_nearly_as_good_as_the_best_is_suggested() -> None:
    assert first_near_top({1: 0.0, 2: 0.5, 3: 0.79, 4: 0.8, 5: 0.6}, 0.0) == 3


def test_small_steady_gains_of_a_table_do_not_count_as_clusters() -> None:
    gaps = dict(enumerate(TABLE, start=1))
    assert first_near_top(gaps, 0.0) == 12
    assert steady_gain(gaps) == pytest.approx(0.06)
    assert first_near_top(gaps, steady_gain(gaps)) == 5


@pytest.mark.parametrize("steady", [0.0, 0.03, 0.05])
@pytest.mark.parametrize("last", [5, 6, 12, 32])
def test_a_table_of_five_clusters_is_told_whatever_the_range_and_its_rare_levels(
    last: int, steady: float
) -> None:
    """With a fixed gain for each cluster a table whose rare levels gain 0.05 had 28 clusters of 32."""
    gains = np.where(np.arange(1, last) < 5, 0.25, steady)
    gaps = dict(enumerate(np.concatenate([[0.0], gains.cumsum()]).tolist(), start=1))
    assert first_near_top(gaps, steady_gain(gaps)) == 5


@pytest.mark.parametrize(("columns", "told"), [(("size", "smoker"), True), (("size",), False)])
def test_the_reason_tells_that_levels_set_groups_apart(columns: tuple[str, ...], told: bool) -> None:
    """At an epsilon that leaves no noise to speak of."""
    declared = (Number(name="size", low=0, high=100), Boolean(name="smoker"))
    table = Table(declared=declared, size=2000)
    draw = np.random.default_rng(4)
    values = {"size": draw.normal([20, 80], 4, (1000, 2)).ravel(), "smoker": draw.random(2000) < 0.2}
    plan = make_plan(table, Request(KRange(1, 6), Budget.of(100, "0.000001"), columns=columns))
    synopsis = run_plan(plan, TableSource(table, values)).synopsis
    assert synopsis is not None
    assert synopsis.suggested > 1
    assert ("differ in a category or boolean alone" in synopsis.reason) is told


GAPS = {2: 0.0, 3: 0.4, 4: 0.42, 5: 0.43, 6: 0.2}
QUIET = dict.fromkeys(GAPS, 0.001)


def test_the_reason_states_the_gain_with_its_interval() -> None:
    assert "the loss is 33% (31% to 35%) lower than at k = 2" in why(3, GAPS, dict.fromkeys(GAPS, 0.015))
    assert "0%" not in why(2, GAPS, QUIET)


def test_every_k_that_fits_as_well_is_named() -> None:
    assert also_fitting(3, GAPS, QUIET).startswith(
        "more than one k fits: 4 and 5 as well, because they differ"
    )
    assert also_fitting(2, GAPS, QUIET) == ""
    assert also_fitting(2, GAPS, dict.fromkeys(GAPS, 0.41)).endswith("noise hides which is better")
