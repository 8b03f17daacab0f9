"""Public sites are checked before use."""

import math
from typing import Any

import pytest

from core.data import Dense, Ids, Sparse, read_sites
from core.errors import InvalidRequest

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
        read_sites(domain, given, k)
    assert refusal.value.parameter == "options.sites"


def test_sites_survive_their_json_and_have_a_digest_of_their_own() -> None:
    sites = read_sites(PLANE, coordinates([1, 1], [2, 3]), 2)
    again = read_sites(PLANE, sites.to_json(), 2)
    assert again.digest == sites.digest
    assert read_sites(PLANE, coordinates([1, 1], [2, 4]), 2).digest != sites.digest
