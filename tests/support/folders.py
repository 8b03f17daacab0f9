"""Puts the temporary folders of tests into memory where there is room: SQLite commits wait for a disk."""

from __future__ import annotations

import os

import pytest

from benchmarks.harness.scratch import scratch

#: What pytest calls the folder that holds those of its runs.
ROOT = "PYTEST_DEBUG_TEMPROOT"


def pytest_configure(config: pytest.Config) -> None:
    """Test processes of pytest-xdist get folders below that of the process which started them."""
    os.environ.setdefault(ROOT, str(scratch()))
