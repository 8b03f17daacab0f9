"""Each test process names the test that it runs in a file of its own, for `tests.support.run` to watch."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

#: The folder that holds these files; without it none are written.
VARIABLE = "CAIRN_TEST_RUN"


def _note() -> Path | None:
    folder = os.environ.get(VARIABLE)
    return Path(folder) / str(os.getpid()) if folder else None


def pytest_sessionstart() -> None:
    if note := _note():
        note.write_text("no test yet")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    if note := _note():
        note.write_text(item.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    if note := _note():
        note.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def lost_tests(folder: Path) -> list[str]:
    """What each process ran that ended before its session did."""
    notes = [path for path in folder.iterdir() if not _alive(int(path.name))]
    # A process may finish and end between the two looks: only what is still there was left.
    return [path.read_text() for path in notes if path.exists()]
