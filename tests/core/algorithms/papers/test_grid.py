"""The default grid has as many cells as records and noise allow."""

import pytest

from core.algorithms import registry
from core.algorithms.papers.grid import MOST_CELLS
from core.data import Dense
from core.errors import WorkLimitExceeded
from core.plan import Plan, Request
from core.privacy import Budget


def planned(size: int, columns: int, epsilon: str = "1", **options: int) -> Plan:
    domain = Dense.box(0.0, 1.0, dimension=columns, size=size)
    return registry.plan(domain, Request(4, Budget.of(epsilon), "means", "grid", options))


@pytest.mark.parametrize("size", [1000, 10**7])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "10"])
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 12])
def test_a_default_grid_is_never_too_large(size: int, epsilon: str, columns: int) -> None:
    cells = planned(size, columns, epsilon).parameters["cells"]
    assert cells >= 2
    assert cells**columns <= MOST_CELLS


def test_in_two_columns_the_rule_of_the_paper_holds() -> None:
    assert planned(100_000, 2).parameters["cells"] == 100


@pytest.mark.parametrize(("size", "columns"), [(100_000, 5), (20_000, 8), (50_000, 4)])
def test_cells_hold_several_times_their_noise_on_average(size: int, columns: int) -> None:
    """The paper's rule alone gives these grids five to twenty times as many cells."""
    cells = planned(size, columns).parameters["cells"]
    assert 2 <= size / cells**columns <= 4


def test_a_grid_that_is_too_large_is_refused_with_advice() -> None:
    with pytest.raises(WorkLimitExceeded, match="fewer columns, fewer cells or another algorithm"):
        planned(1000, 3, cells=60)


def test_a_grid_that_records_cannot_fill_is_refused_unless_it_is_asked_for() -> None:
    assert planned(20_000, 14).parameters["cells"] == 2
    with pytest.raises(WorkLimitExceeded, match="noise would outweigh the records; use fewer columns"):
        planned(20_000, 15)
    assert planned(20_000, 15, cells=2).parameters["cells"] == 2
