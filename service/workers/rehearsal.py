"""Rows for rehearsals: drawn inside the public bounds, or made up by an earlier release; never records."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from core.data import (
    UNITS,
    ArraySource,
    DataSource,
    Dense,
    Geometry,
    Ids,
    SparseSource,
    Stored,
    Table,
    TableSource,
)
from service.jobs.results.answers import MadeUpRows

_ENTRIES_PER_ROW = 16


def synthetic_source(domain: Stored, k: int, most_rows: int) -> DataSource:
    """Draw synthetic rows in k groups inside the bounds: the public size of them, up to a limit."""
    # No noise and no data: a generator seeded by the operating system suffices for synthetic rows.
    generator = np.random.default_rng()
    rows = min(domain.size, most_rows)
    if isinstance(domain, Ids):
        return ArraySource(domain, generator.integers(0, domain.count, rows))
    if isinstance(domain, Dense):
        return ArraySource(domain, _dense(domain, k, rows, generator))
    if isinstance(domain, Table):
        return TableSource.of_codes(domain, _codes(domain, k, rows, generator))
    entries = min(_ENTRIES_PER_ROW, domain.dimension)
    columns = generator.integers(0, domain.dimension, rows * entries)
    values = generator.random(rows * entries) * domain.radius / np.sqrt(entries)
    pointer = np.arange(0, rows * entries + 1, entries)
    return SparseSource(domain, sp.csr_array((values, columns, pointer), shape=(rows, domain.dimension)))


def made_up_source(domain: Stored, k: int, most_rows: int, released: MadeUpRows) -> DataSource:
    """Repeat the made-up rows of a release until there are as many as in any other rehearsal.

    Columns of a table that the release did not cluster on are drawn as in any other rehearsal.
    """
    count = min(domain.size, most_rows)
    rows = released.rows[np.arange(count) % len(released.rows)]
    if isinstance(domain, Dense):
        return ArraySource(domain, domain.decode(rows))
    assert isinstance(domain, Table)
    assert isinstance(released.domain, Geometry)
    codes = _codes(domain, k, count, np.random.default_rng())
    places = [column.name for column in domain.stored]
    codes[:, [places.index(name) for name in released.domain.chosen]] = rows
    return TableSource.of_codes(domain, codes)


def _dense(domain: Dense, k: int, rows: int, generator: np.random.Generator) -> Any:
    """Draw groups around uniform centres; `decode` brings every point inside the bounds."""
    spread = UNITS / np.sqrt(domain.dimension)
    centres = generator.uniform(-spread, spread, (k, domain.dimension))
    around = generator.normal(0, spread / 20, (rows, domain.dimension))
    return domain.decode(centres[generator.integers(0, k, rows)] + around)


def _codes(table: Table, k: int, rows: int, generator: np.random.Generator) -> Any:
    """Draw groups of rows of codes: around uniform steps, and mostly of one level."""
    group = generator.integers(0, k, rows)
    columns = []
    for column in table.stored:
        middles = generator.integers(0, column.codes, k)[group]
        around = np.rint(generator.normal(middles, column.codes / 40))
        columns.append(np.clip(around, 0, column.codes - 1))
    return np.stack(columns, axis=1)
