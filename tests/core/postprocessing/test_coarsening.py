"""Released clusters are merged into fewer by their centres and sizes, without a draw."""

import numpy as np
import pytest

from core.algorithms import registry
from core.algorithms.base import Clustering
from core.data import ArraySource, Dense
from core.jobs.transcript import Transcript
from core.plan import Request
from core.postprocessing.coarsening import MOST_MERGED, Coarsening
from core.privacy import Budget

BOX = Dense.box(-1, 1, dimension=3, size=6000)
BUDGET = Budget.of(1, "0.000001")


def released(k: int, objective: str = "means") -> Clustering:
    """A release of four tight blobs."""
    draw = np.random.default_rng(4)
    middles = np.array([[0.6, 0, 0], [0, 0.6, 0], [0, 0, 0.6], [-0.5, -0.5, -0.5]])
    rows = middles[np.arange(6000) % 4] + draw.normal(scale=0.05, size=(6000, 3))
    return registry.run(registry.plan(BOX, Request(k, BUDGET, objective)), ArraySource(BOX, rows))


def test_close_centres_are_merged_first_and_weighed_by_their_sizes() -> None:
    centres = np.array([[0.0, 0], [1, 0], [10, 0], [10, 2]])
    found = Coarsening.of(centres, np.array([300.0, 100, 50, 50]), 1.0)
    assert found.owners[2].tolist() == [0, 0, 1, 2]
    assert found.owners[1].tolist() == [0, 0, 1, 1]
    assert found.owners[0].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(found.shares(2) @ centres, [[0.25, 0.0], [10.0, 1.0]])


def test_merges_that_one_look_ahead_gets_wrong_are_settled_again() -> None:
    """Ward joins the two in the middle, then the heavy one to them: the first is closer to the second now."""
    centres = np.array([[0.0], [1.3], [2.3], [3.14]])
    found = Coarsening.of(centres, np.array([100.0, 100, 100, 300]), 1.0)
    assert found.owners[2].tolist() == [0, 1, 1, 2]
    assert found.owners[1].tolist() == [0, 0, 1, 1]


def test_a_size_that_noise_hides_counts_as_large_as_the_noise() -> None:
    centres = np.array([[0.0], [1.0], [50.0]])
    found = Coarsening.of(centres, np.array([-400.0, 30.0, 1000.0]), 30.0)
    np.testing.assert_allclose(found.shares(2) @ centres, [[0.5], [50.0]])


@pytest.mark.parametrize("k", range(1, 12))
def test_every_smaller_k_has_as_many_clusters_none_of_them_empty(k: int) -> None:
    draw = np.random.default_rng(k)
    found = Coarsening.of(draw.normal(size=(12, 40)), draw.uniform(-20, 100, size=12), 10.0)
    assert found.members(k).any(axis=1).all()
    assert found.members(k).sum() == 12


def test_merged_clusters_are_nearly_as_good_as_those_asked_for() -> None:
    """Blobs so far apart that their merges are no matter of chance."""
    fine = released(12)
    assert fine.coarsening is not None
    four = fine.coarsening.shares(4) @ fine.centres
    np.testing.assert_allclose(np.sort(four.max(axis=1)), [-0.5, 0.6, 0.6, 0.6], atol=0.05)


def test_merges_are_computed_again_from_the_transcript() -> None:
    found = released(6)
    again = Transcript.read(b"".join(Transcript.of(found).parts()), BOX).replay()
    assert isinstance(again, Clustering)
    assert found.coarsening is not None
    assert again.coarsening is not None
    np.testing.assert_array_equal(found.coarsening.owners, again.coarsening.owners)
    np.testing.assert_array_equal(found.coarsening.weights, again.coarsening.weights)


@pytest.mark.parametrize(("k", "objective"), [(1, "means"), (MOST_MERGED + 1, "means"), (3, "medians")])
def test_nothing_is_merged_where_means_of_centres_are_of_no_use(k: int, objective: str) -> None:
    assert released(k, objective=objective).coarsening is None
