"""Public sites are checked before use."""

import json
import math
from typing import Any

import pytest

from core.algorithms import registry
from core.data import ArraySource, Dense, Ids, Sparse, choose_sites, read_sites
from core.errors import InvalidRequest, PlanViolation
from core.plan import Plan, Request
from core.privacy import Budget

PLANE = Dense.box([0, 0], [10, 10], size=100)

NAMED = Ids(count=3, size=100)

MATRIX = [[0, 1, 2], [1, 0, 4], [2, 4, 0]]


def coordinates(*points: list[float], metric: str = "euclidean") -> dict[str, Any]:
    return {"kind": "coordinates", "metric": metric, "points": list(points)}


REFUSED = [
    (PLANE, None, 1, "give a set"),
    (PLANE, {"kind": "places"}, 1, "kind must be"),
    (PLANE, {**coordinates([1, 1]), "colour": "red"}, 1, "colour"),
    (PLANE, coordinates([1, 1], [2, 2]), 3, "2 sites cannot hold k = 3"),
    (PLANE, coordinates([1, 1], [2, 2], [1, 1]), 1, "points 0 and 2 are the same"),
    (PLANE, coordinates([0.0, 1], [-0.0, 1]), 1, "are the same"),
    (PLANE, coordinates([1, 1], [2, 11]), 1, "point 1 lies outside"),
    (PLANE, coordinates([1, 1, 1]), 1, "2 coordinates"),
    (PLANE, coordinates([1, 1], [2]), 1, "same length"),
    (PLANE, coordinates([1, math.nan]), 1, "finite"),
    (PLANE, coordinates([1, 1], metric="manhattan"), 1, "metric must be"),
    (PLANE, {"kind": "distances", "matrix": MATRIX}, 1, "site numbers"),
    (Dense.box(0, 1, dimension=3, size=9), coordinates([0, 0, 0], metric="great-circle"), 1, "two columns"),
    (Dense.box([0, 0], [99, 9], size=9), coordinates([0, 0], metric="great-circle"), 1, "-90..90"),
    (Sparse(dimension=2, radius=1.0, size=9), coordinates([0, 0]), 1, "dense columns"),
    (NAMED, coordinates([1, 1]), 1, "dense columns"),
    (NAMED, {"kind": "distances", "matrix": [[0, 1, 2], [1, 0, 4]]}, 1, "square"),
    (NAMED, {"kind": "distances", "matrix": [[0, 1], [1, 0]]}, 1, "one row for each of the 3"),
    (NAMED, {"kind": "distances", "matrix": [[0, 1, 2], [1, 0, 4], [2, 5, 0]]}, 1, "symmetric"),
    (NAMED, {"kind": "distances", "matrix": [[1, 1, 2], [1, 0, 4], [2, 4, 0]]}, 1, "zero from a site"),
    (NAMED, {"kind": "distances", "matrix": [[0, 0, 0], [0, 0, 0], [0, 0, 0]]}, 1, "lie apart"),
]


@pytest.mark.parametrize(("domain", "given", "k", "words"), REFUSED, ids=[case[3] for case in REFUSED])
def test_wrong_sites_are_refused_by_name(domain: Any, given: Any, k: int, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refusal:
        choose_sites(domain, given, k)
    assert refusal.value.parameter == "options.sites"


def test_a_digest_names_every_number_of_a_set() -> None:
    sites = read_sites(PLANE, coordinates([1, 1], [2, 3]))
    assert read_sites(PLANE, coordinates([1, 1], [2, 3])).digest == sites.digest
    assert read_sites(PLANE, coordinates([1, 1], [2, 4])).digest != sites.digest


def test_the_facts_of_a_set_plan_as_the_set_itself_does() -> None:
    sites = read_sites(PLANE, coordinates([1, 1], [2, 3], [7, 7]))
    facts = sites.facts(PLANE)
    assert choose_sites(PLANE, facts, 3) is facts
    with pytest.raises(InvalidRequest, match="3 sites cannot hold k = 4"):
        choose_sites(PLANE, facts, 4)
    for algorithm in ("gupta", "jones"):
        whole, named = (
            registry.plan(PLANE, Request(2, Budget.of(1), "medians", algorithm, {"sites": given}))
            for given in (sites, facts)
        )
        assert whole.digest == named.digest


def test_checked_sites_of_another_kind_of_data_are_refused() -> None:
    """Otherwise rows would be looked up in a table that is not theirs, and fail by their contents."""
    matrix = read_sites(NAMED, {"kind": "distances", "matrix": MATRIX})
    with pytest.raises(InvalidRequest, match="site numbers"):
        choose_sites(PLANE, matrix, 1)
    with pytest.raises(InvalidRequest, match="one row for each of the 4"):
        choose_sites(Ids(count=4, size=9), matrix, 1)


def test_a_plan_takes_only_the_inputs_that_it_names() -> None:
    sites, others = (read_sites(PLANE, coordinates([1, 1], [2, last])) for last in (3, 4))
    plan = registry.plan(PLANE, Request(2, Budget.of(1), "medians", "gupta", {"sites": sites}))
    stored = json.loads(json.dumps(plan.to_json()))
    assert "points" not in json.dumps(stored)
    assert Plan.from_json(stored, PLANE, sites).digest == plan.digest
    with pytest.raises(PlanViolation, match="not the public inputs"):
        Plan.from_json(stored, PLANE, others)
    with pytest.raises(PlanViolation, match="not the public inputs"):
        Plan.from_json(stored, Dense.box(0, 11, dimension=2, size=9), sites)
    unread = Plan.from_json(stored, PLANE)
    with pytest.raises(PlanViolation, match="without its sites"):
        registry.run(unread, ArraySource(PLANE, [[1.0, 1.0]]))
