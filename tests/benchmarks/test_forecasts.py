"""The comparison of forecasts with what happens."""

import numpy as np

from benchmarks.forecasts import Groups, Setting, groups, measured


def test_a_group_is_found_by_a_centre_nearer_than_half_the_way_to_the_next_group() -> None:
    made = Groups(np.zeros((0, 1)), np.zeros(0, dtype=np.int64), np.array([[0.0], [1.0], [5.0]]))
    assert made.found(np.array([[0.4], [3.2]])).tolist() == [0, -1, 1]


def test_the_smaller_group_has_as_many_records_as_asked_for() -> None:
    made = groups(Setting(500, 3, 4, "1"), 17, np.random.default_rng(0))
    assert np.bincount(made.owners)[0] == 17
    assert len(np.bincount(made.owners)) == 4


def test_a_smaller_group_of_most_records_is_not_run() -> None:
    assert measured(Setting(300, 2, 3, "0.3"), 2.0, 0) is None
