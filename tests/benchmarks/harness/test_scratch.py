"""Temporary files lie in memory only where they fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.harness import scratch


def test_files_lie_on_a_disk_where_memory_is_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_MEMORY_NEEDED", 1 << 60)
    assert scratch.scratch() == Path("/tmp")


def test_files_lie_on_a_disk_where_there_is_no_memory_to_hold_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scratch, "_MEMORY", tmp_path / "missing")
    assert scratch.scratch() == Path("/tmp")
