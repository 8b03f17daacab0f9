"""Public facts that every kind of domain has, and checks of what a curator declares."""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from core.errors import InvalidDomain

#: Sums of per-record contributions below 2^33 stay in int64 up to this many records.
MAX_RECORDS = 1 << 30
LARGEST_DIMENSION = 1_000_000


def whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidDomain(f"{name} must be a whole number", parameter=name)
    if not least <= value <= most:
        raise InvalidDomain(f"{name} must be between {least} and {most}", parameter=name)
    return int(value)


def numbers(value: Any, dimension: int | None, name: str) -> tuple[float, ...]:
    array = np.asarray(value, dtype=np.float64) if value is not None else np.zeros(0)
    if array.ndim == 0 and dimension is not None:
        array = np.full(dimension, float(array))
    if array.ndim != 1 or (dimension is not None and len(array) != dimension):
        raise InvalidDomain(f"{name} must be one number, or one per column", parameter=name)
    if not np.all(np.isfinite(array)) or np.any(np.abs(array) > 1e100):
        raise InvalidDomain(f"{name} must be finite and at most 1e100", parameter=name)
    return tuple(array.tolist())


def positive(value: Any, name: str) -> float:
    (number,) = numbers([value], 1, name)
    if not number > 0:
        raise InvalidDomain(f"{name} must be greater than zero", parameter=name)
    return number


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """Facts that every kind of domain has."""

    kind: ClassVar[str]
    size: int  # order of magnitude of the number of records
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        whole(self.size, "size", 1, MAX_RECORDS)
        whole(self.rows_per_person, "rows_per_person", 1, 10_000)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the domain, by which views and receipts refer to it."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}

    @property
    def warnings(self) -> tuple[str, ...]:
        return ()
