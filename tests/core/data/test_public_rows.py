"""Public rows are checked before use, and plans name them by digest."""

import json
from typing import Any

import numpy as np
import pytest

from core.algorithms import registry
from core.data import ArraySource, Dense, Ids, Sparse, read_public_rows
from core.data.public_rows import MOST_PUBLIC_ROWS
from core.errors import InvalidRequest, PlanViolation
from core.estimators import PrivateKMeans, PrivateKMedians
from core.plan import Plan, Request
from core.privacy import Budget

WIDE = Dense.box(-1, 1, dimension=80, size=10_000)
ROWS = np.random.default_rng(1).uniform(-1, 1, size=(40, 80))

REFUSED = [
    (Sparse(dimension=80, radius=1.0, size=10), ROWS, "dense columns"),
    (Ids(count=80, size=10), ROWS, "dense columns"),
    (WIDE, ROWS[:, :79], "80 numbers each"),
    (WIDE, ROWS[0], "80 numbers each"),
    (WIDE, [["a"] * 80], "80 numbers each"),
    (WIDE, np.where(ROWS > 0.9, np.nan, ROWS), "finite"),
    (WIDE, ROWS[:19], "between 20 and"),
    (WIDE, np.zeros((MOST_PUBLIC_ROWS + 1, 80)), "between 20 and"),
    (Dense.box(-1, 1, dimension=5000, size=10), np.zeros((900, 5000)), "at most 838 rows"),
]


@pytest.mark.parametrize(("domain", "rows", "message"), REFUSED)
def test_public_rows_that_do_not_fit_are_refused(domain: Any, rows: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as refusal:
        read_public_rows(domain, rows)
    assert refusal.value.parameter == "public_rows"


def planned(rows: Any = ROWS, **changes: Any) -> Plan:
    request = {"k": 3, "budget": Budget.of(1, "0.000001"), "algorithm": "summit", **changes}
    return registry.plan(WIDE, Request(**request, public_rows=read_public_rows(WIDE, rows)))


def test_rows_are_clipped_to_the_bounds_like_records() -> None:
    rows = read_public_rows(WIDE, 7 * ROWS)
    np.testing.assert_array_equal(rows.encoded(WIDE), WIDE.encode(7 * ROWS))


def test_a_plan_names_public_rows_by_count_and_digest() -> None:
    plan = planned()
    named = plan.to_json()["inputs"]["public_rows"]
    assert named == {"count": 40, "digest": read_public_rows(WIDE, ROWS.tolist()).facts.digest}
    assert planned(2 * ROWS).digest != plan.digest


def test_a_plan_that_is_read_back_runs_with_its_own_public_rows_only() -> None:
    stored = json.loads(json.dumps(planned().to_json()))
    source = ArraySource(WIDE, ROWS)
    without = Plan.from_json(stored, WIDE)
    assert without.to_json() == stored
    with pytest.raises(PlanViolation, match="without its public rows"):
        registry.run(without, source)
    with pytest.raises(PlanViolation, match="not the public inputs"):
        Plan.from_json(stored, WIDE, public_rows=read_public_rows(WIDE, 2 * ROWS))
    read = Plan.from_json(stored, WIDE, public_rows=read_public_rows(WIDE, ROWS))
    assert registry.run(read, source).centres.shape == (3, 80)


@pytest.mark.parametrize(
    "changes", [{"objective": "medians"}, {"budget": Budget.of(1)}, {"algorithm": "sulq"}], ids=str
)
def test_public_rows_change_no_plan_that_makes_no_use_of_them(changes: dict[str, Any]) -> None:
    request = {"k": 3, "budget": Budget.of(1, "0.000001"), "algorithm": "summit", **changes}
    assert planned(**changes).to_json() == registry.plan(WIDE, Request(**request)).to_json()


def test_estimators_use_them_for_means_of_many_columns_and_name_them_in_the_plan() -> None:
    draw = np.random.default_rng(5)
    rows, public = draw.uniform(-1, 1, size=(300, 70)), draw.uniform(-1, 1, size=(40, 70))
    model = PrivateKMeans(2, bounds=(-1, 1), public_rows=public).fit(rows)
    assert model.plan_.public_rows is not None
    assert len(model.plan_.public_rows) == 40
    medians = PrivateKMedians(2, bounds=(-1, 1), public_rows=public).fit(rows)
    assert medians.plan_.public_rows is None
    with pytest.raises(InvalidRequest, match="70 numbers each"):
        PrivateKMeans(2, bounds=(-1, 1), public_rows=public[:, 1:]).fit(rows)
