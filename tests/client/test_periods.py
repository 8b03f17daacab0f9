"""Periods in requests: labels, or a range with open ends."""

from __future__ import annotations

from typing import Any

import pytest

from cairn_client.commands.requests import parsed_periods
from cairn_client.periods import periods_as_sent


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("2026-01", ["2026-01"]),
        ("2026-01, 2026-03", ["2026-01", "2026-03"]),
        ("2026-01..2026-03", {"from": "2026-01", "to": "2026-03"}),
        ("2026-02..", {"from": "2026-02"}),
        ("..2026-02", {"to": "2026-02"}),
    ],
)
def test_typed_periods_are_sent_as_labels_or_as_a_range(typed: str, sent: Any) -> None:
    assert periods_as_sent(parsed_periods(typed)) == sent
