"""Which regime a request gets, and that a stored plan is carried out by the one it was made for."""

import json

import numpy as np
import pytest

from core.algorithms import registry
from core.algorithms.summit import regime_for
from core.algorithms.summit.along_axes import AlongAxes
from core.algorithms.summit.base import Regime
from core.algorithms.summit.exploring import Exploring
from core.algorithms.summit.few_records import FewRecords
from core.algorithms.summit.open_k import OpenK
from core.algorithms.summit.public_rows import WithPublicRows
from core.algorithms.summit.pure import PureEpsilon
from core.algorithms.summit.sketch import Sketch
from core.algorithms.summit.summit import REGIMES, regime_of
from core.data import Dense, Sparse, read_public_rows
from core.plan import KRange, Plan, Request
from core.privacy import Budget

PURE, APPROXIMATE = Budget.of(1), Budget.of(1, "0.000001")


def box(width: int, size: int = 10_000) -> Dense:
    return Dense.box(0, 1, dimension=width, size=size)


def with_public_rows(domain: Dense, k: int) -> Request:
    rows = np.random.default_rng(1).uniform(size=(100, domain.dimension))
    return Request(k, APPROXIMATE, public_rows=read_public_rows(domain, rows))


CASES: dict[str, tuple[Dense | Sparse, Request, type[Regime]]] = {
    "enough records": (box(4), Request(3, APPROXIMATE), Exploring),
    "one column": (box(1), Request(3, APPROXIMATE), Exploring),
    "columns that vary": (box(200), Request(3, APPROXIMATE), Exploring),
    "medians of few records": (box(4, 1000), Request(10, APPROXIMATE, "medians"), Exploring),
    "few records": (box(4, 1000), Request(10, APPROXIMATE), FewRecords),
    "few records in two columns": (box(2, 1000), Request(10, APPROXIMATE), FewRecords),
    "few records in many columns": (box(300, 3000), Request(60, APPROXIMATE), AlongAxes),
    "a range": (box(4), Request(KRange(1, 8), APPROXIMATE), OpenK),
    "a range of many records": (box(4, 10**6), Request(KRange(1, 8), APPROXIMATE), OpenK),
    "a range under pure epsilon": (box(4), Request(KRange(1, 8), PURE), OpenK),
    "a range in too many columns": (box(3000), Request(KRange(1, 8), APPROXIMATE), OpenK),
    "pure epsilon": (box(4), Request(3, PURE), PureEpsilon),
    "pure epsilon, few records": (box(10, 300), Request(3, PURE), PureEpsilon),
    "pure epsilon in many columns": (box(100, 3000), Request(3, PURE), Sketch),
    "too many columns": (box(3000), Request(3, APPROXIMATE), Sketch),
    "sparse rows": (Sparse(dimension=5000, radius=1.0, size=10_000), Request(3, APPROXIMATE), Sketch),
    "public rows": (box(100), with_public_rows(box(100), 3), WithPublicRows),
    "public rows, few records": (box(300, 3000), with_public_rows(box(300, 3000), 60), WithPublicRows),
    "public rows in few columns": (box(4), with_public_rows(box(4), 3), Exploring),
}
EVERY = pytest.mark.parametrize("case", CASES)


@EVERY
def test_public_numbers_choose_the_regime(case: str) -> None:
    domain, request, kind = CASES[case]
    assert type(regime_for(domain, request)) is kind


@EVERY
def test_a_stored_plan_is_carried_out_by_the_regime_it_was_made_for(case: str) -> None:
    domain, request, _ = CASES[case]
    plan = registry.plan(domain, request)
    stored = Plan.from_json(json.loads(json.dumps(plan.to_json())), domain)
    assert regime_of(stored) == regime_for(domain, request)
    steps = [step for block in regime_of(stored).blocks(stored) for step in block.steps()]
    assert steps == list(plan.steps)


def test_every_regime_is_reached() -> None:
    assert {kind for _, _, kind in CASES.values()} == set(REGIMES)


def test_a_plan_that_an_earlier_version_stored_is_read_as_its_regime() -> None:
    """The parameters of a plan for few records, as versions with one schedule for all regimes wrote them."""
    stored = {
        "sketch": 0,
        "moments": True,
        "radius_share": 0.06,
        "subspace_share": 0.05,
        "tree_share": 0.35,
        "explore_share": 0.0,
        "refine_shares": [0.125, 0.1625, 0.2125],
        "tree_axes": 4,
        "tree_depth": 0,
        "tree_levels": 0,
        "explore_rounds": 0,
        "explore_centres": 15,
        "few_records": True,
        "frequencies": 1000,
    }
    regime = FewRecords.from_json(stored)
    assert regime.to_json() == stored
    assert list(regime.to_json()) == list(stored)
    assert regime.frequencies == 1000
