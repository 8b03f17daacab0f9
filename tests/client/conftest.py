"""Fixtures for tests of the command `cairn`: who is signed in, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live import Live


@pytest.fixture
def place(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, signed in as the analyst, with a configuration of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CAIRN_URL", live.url)
    monkeypatch.setenv("CAIRN_KEY", live.analyst_key)
    return tmp_path


@pytest.fixture
def as_curator(live: Live, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed in as the curator instead."""
    monkeypatch.setenv("CAIRN_KEY", live.curator_key)
