"""How epsilon, k and the number of records trade off: `python -m benchmarks choosing`, for docs/choosing.md.

Rows lie about `k` centres in a box; the private loss is divided by the loss of the true centres, so that 1.00
is as good as knowing them.
"""

from __future__ import annotations

import statistics
from typing import Annotated

import numpy as np
import typer

from benchmarks.baselines import loss
from benchmarks.measuring import print_table
from core.algorithms import registry
from core.data import ArraySource, Dense
from core.plan import Request
from core.privacy import Budget, default_delta

__all__ = ["main"]

SIZES = (1_000, 10_000, 100_000)
EPSILONS = ("0.1", "0.3", "1", "3")


def ratio(size: int, k: int, epsilon: str, columns: int, seed: int) -> float:
    """The loss of one private clustering over that of the true centres; rows anew for every seed."""
    draw = np.random.default_rng(seed)
    centres = draw.uniform(0.15, 0.85, size=(k, columns))
    rows = centres[draw.integers(k, size=size)] + draw.normal(scale=0.04, size=(size, columns))
    rows = np.clip(rows, 0.0, 1.0)
    domain = Dense.box(0.0, 1.0, dimension=columns, size=size)
    budget = Budget.at_most(epsilon, default_delta(size))
    plan = registry.plan(domain, Request(k, budget))
    found = registry.run(plan, ArraySource(domain, rows))
    return loss(rows, found.centres, "means") / loss(rows, centres, "means")


def main(
    columns: Annotated[int, typer.Option(help="Columns of the rows.")] = 4,
    runs: Annotated[int, typer.Option(help="Datasets per cell; the median and the worst count.")] = 5,
) -> None:
    """Print the loss over that of the true centres, by records, k and epsilon."""
    table = []
    for size in SIZES:
        for k in (3, 10, 30):
            row: dict[str, object] = {"records": f"{size:,}", "k": k}
            for epsilon in EPSILONS:
                found = [ratio(size, k, epsilon, columns, seed) for seed in range(runs)]
                row[f"epsilon {epsilon}"] = f"{statistics.median(found):.2f} ({max(found):.2f})"
            table.append(row)
    print_table("loss over that of the true centres: median (worst)", table)
