"""The suggested number of clusters: where a gap statistic stops growing."""

from core.postprocessing.synopsis.suggestion import first_near_top

#: Gaps of a table of five clusters with numbers and categories, whose rare levels are small groups.
TABLE = [0.0, 0.10, 0.25, 0.44, 0.64, 0.67, 0.70, 0.73, 0.76, 0.79, 0.83, 0.87]


def test_the_first_k_that_is_nearly_as_good_as_the_best_is_suggested() -> None:
    assert first_near_top({1: 0.0, 2: 0.5, 3: 0.79, 4: 0.8, 5: 0.6}, 0.0) == 3


def test_small_steady_gains_of_a_table_do_not_count_as_clusters() -> None:
    gaps = dict(enumerate(TABLE, start=1))
    assert first_near_top(gaps, 0.0) == 12
    assert first_near_top(gaps, 0.03) == 5
