"""The public facts about a dataset, and the one way rows become integers.

A domain is given by the curator before any row is read: columns, bounds, scaling, an order of magnitude
`size` for the number of records, and how many rows one person may own. Nothing in it is ever taken from data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.data.dense import Dense
from core.data.ids import Ids
from core.data.sparse import Sparse
from core.errors import InvalidDomain

Domain = Dense | Sparse | Ids


def domain_from_json(data: Mapping[str, Any]) -> Domain:
    """The domain that `to_json` described."""
    shared = {"size": data["size"], "rows_per_person": data["rows_per_person"]}
    match data["kind"]:
        case "sparse":
            return Sparse(dimension=data["dimension"], radius=data["radius"], **shared)
        case "ids":
            return Ids(count=data["count"], **shared)
        case "dense":
            columns, bounds = data["columns"], data["bounds"]
            if "box" in bounds:
                box = bounds["box"]
                return Dense.box(box["low"], box["high"], columns, scaling=data["scaling"], **shared)
            ball = bounds["ball"]
            return Dense.ball(ball["radius"], ball["centre"], columns=columns, **shared)
    raise InvalidDomain("a domain is dense, sparse or ids", parameter="kind")
