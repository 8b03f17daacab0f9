"""A sample of `python -m assurance months`: four months by the Python client."""

from __future__ import annotations

from pathlib import Path

from assurance.months import ThroughPython, run
from tests.support.live import Live


def test_balances_of_months_agree_with_those_by_hand(live: Live, tmp_path: Path) -> None:
    with live.curator() as client:
        assert run(ThroughPython(client), client, "four-months", 4, tmp_path) == 1 + 2 + 3 + 4 + 4 * 4
