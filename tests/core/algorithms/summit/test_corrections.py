"""Rounds for few records: what their sizes come to."""

import numpy as np
import pytest

from core.algorithms.summit.corrections import WeighedRound


def test_records_of_clusters_that_noise_made_up_go_to_the_others() -> None:
    found = WeighedRound(
        centres=np.zeros((3, 2)),
        moves=np.zeros((3, 2)),
        errors=np.ones(3),
        sizes=np.array([100.0, 60.0, 40.0]),
        chances=np.array([1.0, 1.0, 0.0]),
        radii=np.ones(3, dtype=np.int64),
    )
    assert found.expected == pytest.approx([125.0, 75.0, 0.0])
