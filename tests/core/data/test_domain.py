"""Rows become integers inside the ball whatever they were, and bounds never come from data."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.data import UNITS, Dense, Domain, Ids, Sparse, clip_encoded, domain_from_json
from core.errors import InvalidData, InvalidDomain

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
matrices = hnp.arrays(np.float64, st.tuples(st.integers(0, 6), st.just(3)), elements=finite)

BOX = Dense.box([0, -5, 1e6], [1, 5, 2e6], ["age", "weight", "income"], size=1000)
PLAIN = Dense.box([0, -5, 0], [1, 5, 20], size=1000, scaling="none")
BALL = Dense.ball(2.5, [1.0, 2.0, 3.0], size=1000)


def norms(encoded: np.ndarray) -> np.ndarray:
    squares: np.ndarray = (encoded.astype(np.int64) ** 2).sum(axis=1)
    return squares


@given(matrices, st.sampled_from([BOX, PLAIN, BALL]))
def test_every_finite_row_is_encoded_inside_the_ball(rows: np.ndarray, domain: Dense) -> None:
    encoded = domain.encode(rows)
    assert encoded.dtype == np.int16
    assert (norms(encoded) <= UNITS**2).all()


@given(matrices, st.sampled_from([BOX, PLAIN, BALL]))
def test_decoding_gives_back_the_clipped_row_to_within_a_step(rows: np.ndarray, domain: Dense) -> None:
    clipped = domain.decode(domain.encode(rows))
    if domain.low is not None and domain.high is not None:
        expected = np.clip(rows, domain.low, domain.high)
        assert (np.abs(clipped - expected) <= 3 * domain.unit_lengths()).all()
        assert ((clipped >= domain.low) & (clipped <= domain.high)).all()
    else:
        assert domain.radius is not None
        away = np.linalg.norm(clipped - np.array(domain.centre), axis=1)
        assert (away <= domain.radius * (1 + 1e-12)).all()


def test_corners_of_a_box_reach_the_ball_and_do_not_leave_it() -> None:
    for dimension in (1, 2, 3, 7, 100, 784):
        domain = Dense.box(-1, 1, dimension=dimension, size=10)
        corner = domain.encode(np.ones((1, dimension)))
        assert norms(corner)[0] <= UNITS**2
        assert norms(corner)[0] >= (UNITS - dimension) ** 2


def test_encoding_truncates_towards_zero_on_both_sides() -> None:
    domain = Dense.ball(32767.0, dimension=1, size=10)
    assert domain.encode([[1.9], [-1.9], [0.5], [-0.5]]).ravel().tolist() == [1, -1, 0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_are_refused_without_saying_where(bad: float) -> None:
    with pytest.raises(InvalidData, match="missing or infinite"):
        BOX.encode([[0.5, bad, 1.5e6]])
    with pytest.raises(InvalidData, match="missing or infinite"):
        Sparse(dimension=3, radius=1.0, size=5).encode(sp.csr_array([[0.5, bad, 0.0]]))


@pytest.mark.parametrize("rows", [[1.0, 2.0], [[1.0, 2.0]], [["a", "b", "c"]], np.zeros((2, 3), complex)])
def test_rows_of_another_shape_or_type_are_refused(rows: object) -> None:
    with pytest.raises(InvalidData):
        BOX.encode(rows)  # type: ignore[arg-type]  # wrong on purpose


def test_unit_scaling_gives_every_column_the_same_weight_and_none_keeps_the_units() -> None:
    scaled = BOX.encode([[1, 5, 2e6]])[0]
    assert scaled.min() >= scaled.max() - 1
    kept = PLAIN.encode([[1, 5, 20]])[0].astype(float)
    assert kept[1] / kept[0] == pytest.approx(10, rel=0.01)


def test_a_column_left_with_few_steps_is_warned_about_from_bounds_alone() -> None:
    assert (
        Dense.box([0, 0], [1, 1e6], ["tiny", "huge"], size=10, scaling="none").warnings[0].count("tiny") == 1
    )
    assert Dense.box([0, 0], [1, 1e6], size=10).warnings == ()


@given(st.lists(st.lists(finite, min_size=4, max_size=4), max_size=5))
def test_sparse_rows_are_encoded_inside_the_ball(rows: list[list[float]]) -> None:
    matrix = sp.csr_array(np.array(rows).reshape(-1, 4))
    encoded = Sparse(dimension=4, radius=3.0, size=10).encode(matrix)
    assert encoded.dtype == np.int16
    assert (norms(encoded.toarray()) <= UNITS**2).all()


def test_sparse_rows_inside_the_ball_keep_their_values() -> None:
    domain = Sparse(dimension=3, radius=2.0, size=10)
    rows = sp.csr_array(np.array([[0.5, 0, -1.25], [0, 0, 0]]))
    assert np.abs(domain.decode(domain.encode(rows).toarray()) - rows.toarray()).max() <= 2.0 / UNITS


def test_site_numbers_are_clipped_and_must_be_whole() -> None:
    domain = Ids(count=5, size=10)
    assert domain.encode([0, 4, 9, -3]).tolist() == [0, 4, 4, 0]
    with pytest.raises(InvalidData):
        domain.encode([0.5])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dense.box(None, None, dimension=2, size=10),
        lambda: Dense.ball(None, dimension=2, size=10),
        lambda: Dense.box(0, 1, size=10),
        lambda: Dense.box(1, 1, dimension=2, size=10),
        lambda: Dense.box([0, 0], [1], size=10),
        lambda: Dense.box(0, float("inf"), dimension=2, size=10),
        lambda: Dense.box(0, 1, ["a", "a"], size=10),
        lambda: Dense.box(0, 1, dimension=2, size=0),
        lambda: Dense.box(0, 1, dimension=2, size=True),
        lambda: Dense.box(0, 1, dimension=2, size=10, rows_per_person=0),
        lambda: Dense.box(0, 1, dimension=2, size=10, scaling="auto"),
        lambda: Dense.ball(0.0, dimension=2, size=10),
        lambda: Dense.ball(-1.0, dimension=2, size=10),
        lambda: Sparse(dimension=0, radius=1.0, size=10),
        lambda: Sparse(dimension=3, radius=float("nan"), size=10),
        lambda: Ids(count=0, size=10),
    ],
)
def test_public_facts_that_make_no_domain_are_refused(make: object) -> None:
    with pytest.raises(InvalidDomain) as refusal:
        make()  # type: ignore[operator]  # a parameter
    assert refusal.value.parameter


def test_missing_bounds_are_answered_with_what_to_give() -> None:
    with pytest.raises(InvalidDomain, match="without looking at the rows"):
        Dense.box(None, None, dimension=2, size=10)


@pytest.mark.parametrize(
    "domain",
    [BOX, PLAIN, BALL, Sparse(dimension=9, radius=0.5, size=7, rows_per_person=3), Ids(count=4, size=3)],
)
def test_a_domain_survives_json(domain: Domain) -> None:
    again = domain_from_json(domain.to_json())
    assert again == domain
    assert again.fingerprint == domain.fingerprint


def test_domains_that_differ_have_different_fingerprints() -> None:
    assert len({d.fingerprint for d in (BOX, PLAIN, BALL)}) == 3


@given(hnp.arrays(np.int16, st.tuples(st.integers(0, 6), st.integers(1, 5))), st.booleans())
def test_stored_rows_of_any_length_are_clipped_to_the_ball(rows: np.ndarray, sparse: bool) -> None:
    stored = sp.csr_array(rows) if sparse else rows
    clipped = clip_encoded(stored)
    dense = clipped.toarray() if sparse else clipped
    inside = norms(rows) <= UNITS**2
    assert (norms(dense) <= UNITS**2).all()
    assert np.array_equal(dense[inside], rows[inside])
    assert (clipped is stored) == inside.all()


def test_stored_site_numbers_are_clipped_to_the_sites() -> None:
    assert clip_encoded(np.array([-7, 0, 2, 3, 99], dtype=np.int32), 3).tolist() == [0, 0, 2, 2, 2]
