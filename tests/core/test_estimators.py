"""The estimators keep scikit-learn's conventions, refuse bad requests and release only what was planned."""

import pickle
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from core.algorithms import registry
from core.data import ArraySource, ChunkLoader, Dense, Domain, Sparse
from core.errors import (
    EpsilonTooSmall,
    InvalidBudget,
    InvalidData,
    InvalidDomain,
    InvalidRequest,
    UnknownAlgorithm,
)
from core.estimators import PrivateKMeans, PrivateKMedians
from core.plan import Request
from core.privacy import default_delta
from tests.support.bits import inject_bytes

Estimator = type[PrivateKMeans] | type[PrivateKMedians]
BOTH = pytest.mark.parametrize("estimator", [PrivateKMeans, PrivateKMedians])

# Where the conventions of non-private estimators would break the promise, or ask for the impossible.
EXPECTED_FAILURES = {
    "check_estimators_empty_data_messages": (
        "asks for an error when there are no rows; their number is private, so none behave like any number"
    ),
    "check_fit_idempotent": "asks two fits to agree; each fit draws fresh noise, and no seed is accepted",
}


def blobs(count: int = 3000, width: int = 2) -> npt.NDArray[np.float64]:
    """Three tight, equal clusters about -60, 0 and 60 on the diagonal."""
    draw = np.random.default_rng(1)
    middles = np.repeat([[-60.0], [0.0], [60.0]], width, axis=1)
    return middles[np.arange(count) % 3] + draw.normal(size=(count, width))


def farthest_from_the_middles(centres: npt.NDArray[np.float64]) -> float:
    return float(np.abs(np.sort(centres[:, 0]) - [-60, 0, 60]).max())


# --- conventions --------------------------------------------------------------------------------------------


@BOTH
def test_scikit_learns_own_checks_pass_but_for_those_that_privacy_forbids(estimator: Estimator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings of scikit-learn's own
        checks = check_estimator(
            estimator(bounds=(-100, 100)),
            expected_failed_checks=EXPECTED_FAILURES,
            on_fail=None,
            on_skip=None,
        )
    assert [check["check_name"] for check in checks if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in checks) >= 30


@BOTH
def test_parameters_are_kept_as_given_until_fit(estimator: Estimator) -> None:
    bounds: Any = [np.zeros(2), np.ones(2)]
    model = estimator(-3, epsilon="much", bounds=bounds, size_bound=1e9, algorithm=7)  # type: ignore[arg-type]  # wrong on purpose
    assert model.get_params()["n_clusters"] == -3
    assert model.bounds is bounds
    assert model.set_params(epsilon=2.0).epsilon == 2.0


def test_a_clone_is_unfitted_and_shares_the_executor() -> None:
    with ThreadPoolExecutor(2) as executor:
        model = PrivateKMeans(3, bounds=(-100, 100), executor=executor).fit(blobs())
        copy = clone(model)
        assert copy.executor is executor
        assert copy.get_params() == model.get_params()
        with pytest.raises(NotFittedError):
            copy.predict(blobs())
        assert copy.fit(blobs()).cluster_centers_.shape == (3, 2)


def test_works_at_the_end_of_a_pipeline() -> None:
    model = make_pipeline(FunctionTransformer(np.cbrt), PrivateKMeans(3, bounds=(-5, 5), size_bound=3000))
    labels = model.fit(blobs()).predict(blobs())
    assert labels.shape == (3000,)
    assert model.set_params(privatekmeans__n_clusters=2).fit(blobs())[-1].cluster_centers_.shape == (2, 2)


def test_a_fitted_estimator_pickles() -> None:
    model = PrivateKMeans(3, bounds=(-100, 100)).fit(blobs())
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(blobs()), model.predict(blobs()))


@BOTH
def test_nothing_is_kept_that_was_not_released(estimator: Estimator) -> None:
    model = estimator(3, bounds=(-100, 100)).fit(pd.DataFrame(blobs(), columns=["left", "right"]))
    learned = {name for name in vars(model) if name.endswith("_")}
    released = {"cluster_centers_", "cluster_sizes_", "synopsis_", "plan_", "privacy_"}
    assert learned == released | {"n_features_in_", "feature_names_in_"}
    assert model.plan_.domain.columns == ("left", "right")
    for forbidden in ("labels_", "inertia_", "fit_predict", "score", "random_state"):
        assert not hasattr(model, forbidden)


# --- what can be fitted -------------------------------------------------------------------------------------


@BOTH
def test_centres_lie_where_the_rows_do(estimator: Estimator) -> None:
    """The noise in each centre is below 1; the chance that one is off by 20 is far below 1e-6."""
    model = estimator(3, epsilon=8.0, bounds=(-100, 100), size_bound=3000).fit(blobs())
    assert farthest_from_the_middles(model.cluster_centers_) < 20
    assert model.cluster_sizes_ is not None
    assert abs(model.cluster_sizes_.sum() - 3000) < 300
    assert len(set(model.predict(blobs(9)))) == 3


def test_arrays_memory_maps_lists_frames_and_sources_give_the_same_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = blobs(600)
    np.save(tmp_path / "rows.npy", rows)
    domain = Dense.box(-100, 100, dimension=2, size=600)
    kinds = [
        rows,
        np.load(tmp_path / "rows.npy", mmap_mode="r"),
        np.asfortranarray(rows),
        rows.tolist(),
        pd.DataFrame(rows, columns=["x0", "x1"]),
    ]
    released = []
    for kind in kinds:
        inject_bytes(monkeypatch, 3)
        released.append(PrivateKMeans(3, bounds=(-100, 100), size_bound=600).fit(kind).cluster_centers_)
    inject_bytes(monkeypatch, 3)
    released.append(PrivateKMeans(3).fit(ArraySource(domain, rows)).cluster_centers_)
    assert all(np.array_equal(released[0], other) for other in released[1:])


def test_an_executor_changes_nothing_that_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    released = []
    domain = Dense.box(-100, 100, dimension=2, size=600)
    with ThreadPoolExecutor(2) as executor:
        for chosen in (None, executor):
            inject_bytes(monkeypatch, 4)
            source = ArraySource(domain, blobs(600), chunk_rows=100)
            released.append(PrivateKMeans(3, executor=chosen).fit(source).cluster_centers_)
    alone, spread = released
    assert np.array_equal(alone, spread)


def test_integers_and_booleans_are_numbers() -> None:
    for rows in (np.eye(4, dtype=np.uint8), np.eye(4, dtype=bool), np.eye(4, dtype=np.float32)):
        model = PrivateKMeans(2, bounds=(0, 1)).fit(rows)
        assert model.cluster_centers_.dtype == np.float64
        assert model.predict(rows).dtype == np.int32


@pytest.mark.parametrize("limits", [{"radius": 4.0}, {"bounds": (-2, 2)}])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_rows_are_fitted_and_predicted_without_a_dense_copy(limits: Any, kind: Any) -> None:
    rows = kind(np.eye(4)[np.arange(200) % 4])
    model = PrivateKMeans(2, size_bound=200, **limits).fit(rows)
    assert isinstance(model.plan_.domain, Sparse)
    assert model.plan_.domain.radius == pytest.approx(4.0)
    assert model.predict(rows).shape == (200,)


def test_a_ball_may_have_a_centre() -> None:
    centre = np.array([10, 20])
    model = PrivateKMeans(3, radius=100, center=centre, size_bound=3000, epsilon=8).fit(blobs() + centre)
    assert farthest_from_the_middles(model.cluster_centers_ - centre) < 20


# --- predict ------------------------------------------------------------------------------------------------


def test_predict_measures_distance_in_the_geometry_of_the_fit() -> None:
    """A step of 10 in a column that spans 1000 is nothing beside a step of 0.4 in one that spans 1."""
    model = PrivateKMeans(2, bounds=([0, 0], [1, 1000])).fit(np.zeros((5, 2)))
    model.cluster_centers_ = np.array([[0.1, 500.0], [0.9, 510.0]])
    assert model.predict([[0.1, 510.0], [0.9, 500.0]]).tolist() == [0, 1]
    plain = PrivateKMeans(2, bounds=([0, 0], [1, 1000]), scaling="none")
    with pytest.warns(UserWarning, match="distinct values"):
        plain.fit(np.zeros((5, 2)))
    plain.cluster_centers_ = model.cluster_centers_
    assert plain.predict([[0.1, 510.0], [0.9, 500.0]]).tolist() == [1, 0]


def test_predict_takes_sparse_rows_after_a_dense_fit_and_dense_ones_after_a_sparse_fit() -> None:
    rows = np.eye(4)[np.arange(100) % 4]
    dense = PrivateKMeans(2, bounds=(0, 1)).fit(rows)
    sparse = PrivateKMeans(2, bounds=(0, 1)).fit(sp.csr_array(rows))
    assert np.array_equal(dense.predict(rows), dense.predict(sp.csr_array(rows)))
    assert np.array_equal(sparse.predict(rows), sparse.predict(sp.csr_array(rows)))


def test_transform_gives_distances_in_the_geometry_of_the_fit() -> None:
    model = PrivateKMeans(2, bounds=([0, 0], [1, 1000])).fit(np.zeros((5, 2)))
    model.cluster_centers_ = np.array([[0.0, 0.0], [1.0, 1000.0]])
    distances = model.transform([[0.0, 0.0], [0.5, 500.0], [1.0, 0.0]])
    corner = np.sqrt(8)  # both columns are two half-widths wide
    expected = [[0, corner], [corner / 2, corner / 2], [2, 2]]
    assert np.allclose(distances, expected, atol=1e-3)
    assert model.get_feature_names_out().tolist() == ["privatekmeans0", "privatekmeans1"]


@pytest.mark.parametrize("limits", [{"radius": 150.0}, {"bounds": (-100, 100)}])
def test_the_smallest_distance_of_transform_is_that_to_the_predicted_centre(limits: Any) -> None:
    for rows in (blobs(300), sp.csr_array(blobs(300))):
        model = PrivateKMeans(3, size_bound=300, epsilon=8, **limits).fit(rows)
        assert np.array_equal(model.transform(rows).argmin(axis=1), model.predict(rows))


# --- the promise --------------------------------------------------------------------------------------------


def test_the_default_delta_follows_the_public_size_alone() -> None:
    for size_bound, assumed in ((None, 100_000), (10**8, 10**8)):
        model = PrivateKMeans(2, bounds=(-100, 100), size_bound=size_bound).fit(blobs(30))
        assert model.privacy_.delta == pytest.approx(default_delta(assumed), rel=1e-9)
        assert model.plan_.domain.size == assumed


def test_the_guarantee_reads_as_a_sentence() -> None:
    approximate = PrivateKMeans(2, epsilon=0.5, delta=1e-7, bounds=(-100, 100)).fit(blobs(30)).privacy_
    assert str(approximate).startswith("differential privacy for each row, added or removed: epsilon = 0.5,")
    assert (approximate.epsilon, approximate.delta, approximate.unit) == (0.5, 1e-7, "row")
    assert 0 < approximate.rho < 0.5**2
    pure = PrivateKMeans(2, delta=0, bounds=(-100, 100)).fit(blobs(30)).privacy_
    assert "epsilon = 1 (pure)" in str(pure)
    assert pure.delta == 0
    domain = Dense.box(-100, 100, dimension=2, size=1000, rows_per_person=4)
    people = PrivateKMeans(2).fit(ArraySource(domain, blobs(30))).privacy_
    assert (people.unit, people.rows_per_person) == ("person", 4)
    assert "each person with up to 4 rows" in str(people)


def test_people_with_several_rows_are_protected_as_people() -> None:
    model = PrivateKMeans(2, bounds=(-100, 100), rows_per_person=4).fit(blobs(30))
    assert (model.privacy_.unit, model.privacy_.rows_per_person) == ("person", 4)
    per_row = PrivateKMeans(2, bounds=(-100, 100)).fit(blobs(30))
    assert model.plan_.digest != per_row.plan_.digest


def kept_rows(monkeypatch: pytest.MonkeyPatch, groups: Any, most: int) -> list[float]:
    """The first column of the rows that reach the measurements, one after the other."""
    seen: list[float] = []

    def remember(domain: Domain, rows: Any) -> ArraySource:
        seen.extend(np.asarray(rows)[:, 0].tolist())
        return ArraySource(domain, rows)  # type: ignore[arg-type]  # dense rows here

    monkeypatch.setattr("core.estimators._source", remember)
    rows = np.arange(len(groups), dtype=float)[:, None]
    PrivateKMeans(2, bounds=(0, 100), rows_per_person=most).fit(rows, groups=groups)
    return seen


@pytest.mark.parametrize(
    "groups",
    [
        [7, 3, 7, 7, 3, 9],
        ["g", "c", "g", "g", "c", "i"],
        [7, "c", 7, 7, "c", 9.5],
        pd.Series(["g", "c", "g", "g", "c", "i"], dtype="string"),
    ],
)
def test_of_each_person_only_the_first_rows_are_used(monkeypatch: pytest.MonkeyPatch, groups: Any) -> None:
    assert kept_rows(monkeypatch, groups, 1) == [0, 1, 5]
    assert kept_rows(monkeypatch, groups, 2) == [0, 1, 2, 4, 5]
    assert kept_rows(monkeypatch, groups, 3) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_a_row_without_a_person_is_refused(missing: Any) -> None:
    """Otherwise all of them would count as one person, or each as a person of its own."""
    with pytest.raises(InvalidData, match="missing entries"):
        PrivateKMeans(2, bounds=(0, 1)).fit(np.eye(3), groups=np.array([1, missing, 2], dtype=object))


def test_groups_of_another_length_are_refused() -> None:
    with pytest.raises(InvalidData, match="one entry for each of the 3 rows"):
        PrivateKMeans(2, bounds=(0, 1)).fit(np.eye(3), groups=[1, 2])


def test_bounds_of_a_frame_go_by_the_names_of_its_columns() -> None:
    frame = pd.DataFrame({"age": [30.0, 40.0], "income": [1000.0, 2000.0]})
    model = PrivateKMeans(2, bounds={"income": (0, 5000), "age": (0, 120)}).fit(frame)
    domain = model.plan_.domain
    assert isinstance(domain, Dense)
    assert (domain.columns, domain.low, domain.high) == (("age", "income"), (0, 0), (120, 5000))


@pytest.mark.parametrize(
    ("bounds", "complaint"),
    [
        ({"age": (0, 120)}, "without bounds: income"),
        ({"age": (0, 120), "income": (0, 1), "town": (0, 1)}, "not in the DataFrame: town"),
        ({"age": (0, 120), "income": 5000}, "each column a pair"),
    ],
)
def test_bounds_that_do_not_fit_the_columns_are_refused_by_name(bounds: Any, complaint: str) -> None:
    with pytest.raises(InvalidDomain, match=complaint):
        PrivateKMeans(2, bounds=bounds).fit(pd.DataFrame({"age": [30.0], "income": [1000.0]}))


def test_bounds_by_name_need_names() -> None:
    with pytest.raises(InvalidDomain, match="need a DataFrame"):
        PrivateKMeans(2, bounds={"age": (0, 120)}).fit(np.eye(1))


def test_budgets_of_numpy_are_budgets() -> None:
    epsilon, delta = np.linspace(1.0, 2.0, 3)[1], np.float32(1e-7)
    privacy = PrivateKMeans(np.int64(2), epsilon=epsilon, delta=delta, bounds=(0, 1)).fit(np.eye(2)).privacy_  # type: ignore[arg-type]  # numpy
    assert privacy.epsilon == 1.5
    assert privacy.delta == pytest.approx(1e-7)


ODD_DATA = {
    "no rows": np.zeros((0, 3)),
    "one row": np.full((1, 3), 7.0),
    "fewer rows than clusters": np.arange(6.0).reshape(2, 3),
    "equal rows": np.full((500, 3), -3.0),
    "a constant column": np.column_stack([np.arange(500.0) % 90, np.full(500, 5.0), np.arange(500.0) % 7]),
    "rows outside the bounds": np.full((500, 3), 1e30),
    "rows at a corner": np.full((500, 3), 100.0),
}


@BOTH
@pytest.mark.parametrize("delta", [None, 0], ids=["approximate", "pure"])
@pytest.mark.parametrize("rows", ODD_DATA.values(), ids=list(ODD_DATA))
def test_odd_data_give_k_centres_at_the_same_charge_without_a_word(
    estimator: Estimator, delta: float | None, rows: npt.NDArray[np.float64]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for width in (3, 1):
            model = estimator(5, delta=delta, bounds=(-100, 100), size_bound=1000).fit(rows[:, :width])
            assert model.cluster_centers_.shape == (5, width)
            assert np.abs(model.cluster_centers_).max() <= 100
            domain = Dense.box(-100, 100, dimension=width, size=1000)
            request = Request(5, model.plan_.budget, model.plan_.objective)
            assert model.plan_.digest == registry.plan(domain, request).digest


# --- refusals -----------------------------------------------------------------------------------------------


class Untouchable:
    """A source whose rows must not be asked for."""

    domain: Domain = Dense.box(-100, 100, dimension=2, size=1000)

    def loaders(self) -> Sequence[ChunkLoader]:
        raise AssertionError("a refused request read rows")


@BOTH
@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"n_clusters": 0}, InvalidRequest),
        ({"n_clusters": 2.0}, InvalidRequest),
        ({"n_clusters": True}, InvalidRequest),
        ({"epsilon": 0}, InvalidBudget),
        ({"epsilon": float("nan")}, InvalidBudget),
        ({"epsilon": "1 or so"}, InvalidBudget),
        ({"delta": 1}, InvalidBudget),
        ({"delta": -1e-9}, InvalidBudget),
        ({"epsilon": 1e-7}, EpsilonTooSmall),
        ({"algorithm": "no-such"}, UnknownAlgorithm),
        ({"bounds": (0, 1)}, InvalidDomain),
        ({"radius": 1}, InvalidDomain),
        ({"size_bound": 5}, InvalidDomain),
        ({"rows_per_person": 2}, InvalidDomain),
    ],
    ids=str,
)
def test_bad_requests_are_refused_before_a_row_is_read(
    estimator: Estimator, parameters: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as refusal:
        estimator(**parameters).fit(Untouchable())
    assert isinstance(refusal.value, ValueError)


@BOTH
def test_without_limits_the_refusal_says_what_to_give_and_why_not_to_look(estimator: Estimator) -> None:
    with pytest.raises(ValueError, match=r"bounds=\(low, high\).*radius.*without looking at the rows"):
        estimator().fit(blobs(30))


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"bounds": (0, 1), "radius": 1}, "bounds"),
        ({"bounds": (0, 1), "center": [0, 0]}, "bounds"),
        ({"bounds": 3}, "bounds"),
        ({"bounds": (0, 1, 2)}, "bounds"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": ([0, 0, 0], 1)}, "bounds"),
        ({"bounds": (0, float("inf"))}, "high"),
        ({"radius": -1}, "radius"),
        ({"radius": 1, "center": [0, 0, 0]}, "bounds"),
        ({"bounds": (0, 1), "scaling": "some"}, "scaling"),
        ({"bounds": (0, 1), "size_bound": 0}, "size_bound"),
        ({"bounds": (0, 1), "size_bound": 1e6}, "size_bound"),
    ],
    ids=str,
)
def test_contradictory_limits_are_refused_by_name(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidDomain) as refusal:
        PrivateKMeans(**parameters).fit(blobs(30))
    assert refusal.value.parameter == named


def test_sparse_rows_with_a_centre_are_refused() -> None:
    with pytest.raises(InvalidDomain, match="leave center out"):
        PrivateKMeans(radius=1, center=[1, 0]).fit(sp.csr_array(np.eye(2)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_missing_and_infinite_values_are_refused(bad: float, kind: Any) -> None:
    rows = blobs(30)
    rows[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        PrivateKMeans(2, bounds=(-100, 100)).fit(kind(rows))
    model = PrivateKMeans(2, bounds=(-100, 100)).fit(blobs(30))
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.predict(rows)
