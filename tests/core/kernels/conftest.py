"""Every test of a kernel runs once with numpy and once with each compiled body that this processor runs."""

from collections.abc import Iterator

import pytest

from core.kernels.backend import bodies, computed_by


@pytest.fixture(autouse=True, params=bodies())
def body(request: pytest.FixtureRequest) -> Iterator[str]:
    """The body that computes, by its name."""
    with computed_by(request.param):
        yield request.param
