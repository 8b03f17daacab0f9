"""Measure every statistic through every view on thousands of rows, and compare with the totals that are kept.

    python -m tests.contracts.totals          compare with `golden/totals.jsonl`
    python -m tests.contracts.totals --write  write that file again

Totals are exact integers of rows, centres and matrices that are integers themselves: no BLAS, LAPACK or libm
decides them, so that they are the same on every machine and for every body of the kernels.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from core.kernels.cache import clear_cache
from core.statistics.base import Statistic
from tests.support.rows import SPARSE, chunk_of
from tests.support.statistics import STATISTICS

KEPT = Path(__file__).parent / "golden" / "totals.jsonl"

#: More than any kernel takes at once, and no multiple of a power of two.
_ROWS = 40_003


def _rows() -> np.ndarray:
    """Rows in the ball: some spread, some close together, some alike, some at the ends of an axis."""
    draw = np.random.default_rng(21)
    rows = draw.integers(-18_000, 18_001, size=(_ROWS, 3))
    rows[::3] //= 64
    rows[::7] = rows[0]
    rows[::11] = [0, -32_767, 0]
    return rows


def totals() -> Iterator[tuple[str, str]]:
    """For each statistic its kind with a digest of its parameters, and a digest of its total."""
    rows = _rows()
    for statistic in STATISTICS:
        clear_cache()
        yield f"{statistic.kind} {statistic.digest[:16]}", _digest(statistic, rows)


def _digest(statistic: Statistic, rows: np.ndarray) -> str:
    total = np.asarray(statistic.of(chunk_of(rows, statistic.domain == SPARSE.fingerprint)), dtype="<i8")
    return hashlib.sha256(f"{total.shape} ".encode() + np.ascontiguousarray(total).tobytes()).hexdigest()[:32]


def golden_totals() -> dict[str, str]:
    """The totals that are kept, by statistic."""
    records = (json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines())
    return {kept["statistic"]: kept["total"] for kept in records}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true")
    found = dict(totals())
    if parser.parse_args().write:
        lines = (json.dumps({"statistic": name, "total": total}) for name, total in found.items())
        KEPT.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return 0
    kept = golden_totals()
    different = [name for name in {**kept, **found} if kept.get(name) != found.get(name)]
    sys.stdout.writelines(f"{name} changed\n" for name in different)
    sys.stdout.write(f"{len(found)} totals compared, {len(different)} of them changed\n")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
