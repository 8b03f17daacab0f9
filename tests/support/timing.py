"""Print the time that each folder of tests took, at the end of a run."""

from __future__ import annotations

from collections import Counter
from typing import Any


def folder_of(test: str) -> str:
    """The part of the suite that a test belongs to: its folder below `tests`."""
    parts = test.split("::")[0].split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Sum set-up, call and tear-down; with several test processes their times overlap."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    seconds: Counter[str] = Counter()
    for report in reports:
        if hasattr(report, "duration"):
            seconds[folder_of(report.nodeid)] += report.duration
    if seconds:
        terminalreporter.section("seconds of each part, all test processes together")
        for folder, spent in seconds.most_common():
            terminalreporter.write_line(f"{spent:8.1f}  {folder}")
