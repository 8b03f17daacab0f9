"""The names that a user of the library imports from `core`, and that importing it is quick."""

import subprocess
import sys

import numpy as np
import pytest

import core
from core.jobs import kinds


@pytest.mark.parametrize("name", core.__all__)
def test_every_public_name_is_what_it_says(name: str) -> None:
    found = getattr(core, name)
    functions = {"make_plan": kinds.plan, "run_plan": kinds.run}
    assert found is functions.get(name, found)
    assert name in functions or found.__name__ == name


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = core.no_such_name


def test_importing_the_library_loads_nothing_slow() -> None:
    code = "import sys, core; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == "[]"


def test_a_request_is_planned_and_run_by_public_names_alone() -> None:
    domain = core.Dense.box(0, 1, dimension=2, size=100)
    plan = core.make_plan(domain, core.Request(2, core.Budget.of(1)))
    found = core.run_plan(plan, core.ArraySource(domain, np.full((50, 2), 0.5)))
    assert isinstance(found, core.Clustering)
    assert found.centres.shape == (2, 2)
