"""Public rows of the same kind as a dataset's records, which jobs may learn from (see `public_rows.md`)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from core.arrays import Floats
from core.data.dense import Dense
from core.data.domain import Domain, Stored
from core.data.sites import digest_of
from core.errors import InvalidRequest

#: Fewest public rows from which jobs may learn.
LEAST_PUBLIC_ROWS = 20
#: Most public rows of a dataset.
MOST_PUBLIC_ROWS = 10_000
#: Values in all of them together; they are stored as doubles.
MOST_PUBLIC_VALUES = 1 << 22


@dataclass(frozen=True)
class PublicRowFacts:
    """The facts of public rows that a plan needs; the digest names the rows."""

    count: int
    digest: str

    @property
    def facts(self) -> Self:
        return self

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Checked public rows in the data's units; `read_public_rows` makes them."""

    numbers: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def facts(self) -> PublicRowFacts:
        """Count and SHA-256 of the numbers as little-endian doubles, row by row."""
        return PublicRowFacts(len(self), digest_of(self.numbers))

    def encoded(self, domain: Domain) -> Floats:
        """The rows in encoded units, clipped to the bounds as records are."""
        if not isinstance(domain, Dense):
            raise ValueError("public rows are for dense columns")
        return domain.encode(self.numbers).astype(np.float64)


def read_public_rows(domain: Domain | Stored, values: Any) -> PublicRows:
    """Check rows that a caller says are public; a refusal says what is wrong with them."""
    if not isinstance(domain, Dense):
        raise _refuse("they are for datasets with dense columns of numbers")
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2 or table.shape[1:] != (domain.dimension,):
        raise _refuse(f"give rows of {domain.dimension} numbers each, one for each column")
    if not np.isfinite(table).all():
        raise _refuse("every number must be finite; leave rows with missing values out")
    if not LEAST_PUBLIC_ROWS <= len(table) <= MOST_PUBLIC_ROWS:
        raise _refuse(f"give between {LEAST_PUBLIC_ROWS} and {MOST_PUBLIC_ROWS} rows")
    if table.size > MOST_PUBLIC_VALUES:
        raise _refuse(
            f"at most {MOST_PUBLIC_VALUES // domain.dimension} rows are possible, each having "
            f"{domain.dimension} columns"
        )
    return PublicRows(table)


def _refuse(message: str) -> InvalidRequest:
    return InvalidRequest(f"public rows: {message}", parameter="public_rows")
