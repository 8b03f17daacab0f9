"""Fault points do nothing unless a test arms one, and every point is really passed somewhere."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.operations import faults

ROOT = Path(__file__).parents[3]


def passing(point: str, **environment: str) -> int:
    """How a process ends that passes a point three times."""
    code = f"from service.operations import faults\nfor _ in range(3): faults.reach({point!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **environment}, check=False
    )
    return done.returncode


def test_points_are_inert_unless_armed() -> None:
    assert passing("claim.charged") == 0
    assert passing("claim.charged", CAIRN_TEST_FAULT="claim.locked:kill:0:") == 0


def test_armed_point_kills_the_process_at_the_time_that_was_ordered() -> None:
    assert passing("claim.charged", CAIRN_TEST_FAULT="claim.charged:kill:2:") == -signal.SIGKILL
    assert passing("claim.charged", CAIRN_TEST_FAULT="claim.charged:kill:3:") == 0


def test_production_mode_reads_no_order() -> None:
    assert passing("claim.charged", CAIRN_TEST_FAULT="claim.charged:kill:0:", CAIRN_MODE="production") == 0


def test_fault_with_a_ticket_happens_once_among_processes(tmp_path: Path) -> None:
    ticket = tmp_path / "ticket"
    ticket.touch()
    order = f"claim.charged:kill:0:{ticket}"
    ends = [passing("claim.charged", CAIRN_TEST_FAULT=order) for _ in range(2)]
    assert ends == [-signal.SIGKILL, 0]


def test_unknown_point_is_refused() -> None:
    with pytest.raises(ValueError, match="names no fault point"):
        faults.arm("nowhere:kill:0:")


def test_every_point_is_passed_at_one_place() -> None:
    passed = [
        point
        for path in sorted((ROOT / "service").rglob("*.py"))
        for point in re.findall(r'faults\.reach\("([a-z.]+)"\)', path.read_text())
    ]
    assert sorted(passed) == sorted(faults.POINTS)
