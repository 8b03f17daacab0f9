"""Reading a receipt: checking its digest, and the noise in the sizes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["digest_of", "is_whole", "size_error"]


def digest_of(receipt: Mapping[str, Any]) -> str:
    """SHA-256 of the receipt without its digest: keys sorted, no spaces, ASCII."""
    rest = {name: value for name, value in receipt.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def is_whole(receipt: Mapping[str, Any]) -> bool:
    """Whether the receipt matches its digest."""
    return receipt.get("digest") == digest_of(receipt)


def size_error(planned: Mapping[str, Any]) -> float | None:
    """The standard deviation of the noise in a size, from a plan or a receipt; None if there are no sizes."""
    for step in reversed(planned.get("steps", [])):
        if step.get("statistic") != "cluster-counts":
            continue
        mechanism = step.get("mechanism", {})
        if mechanism.get("mu"):
            return 1.0 / float(mechanism["mu"])
        if mechanism.get("epsilon"):
            return math.sqrt(2.0) / float(mechanism["epsilon"])
    return None
