"""How a waiting analyst sees a job go on: a line in a terminal, a bar in a notebook, nothing in a script."""

from __future__ import annotations

import io
import re
import sys
from datetime import UTC, datetime

import pytest

from cairn_client.conversion import read
from cairn_client.progress import NotebookBar, TerminalBar, automatic, in_words
from cairn_client.wire import JobFacts, JobProgress


def job(state: str, measured: int | None = None) -> JobFacts:
    progress = None if measured is None else {"measured": measured, "planned": 10}
    now = datetime(2030, 1, 1, tzinfo=UTC).isoformat()
    return read(
        JobFacts,
        {
            "id": "1",
            "dataset": "<visits>",
            "analyst": "ada",
            "state": state,
            "rehearsal": False,
            "request": {},
            "asked_for": "3 centres",
            "algorithm": "summit",
            "cost": {"epsilon": "1", "delta": "0"},
            "plan_digest": "",
            "phase": "tree" if measured is not None else None,
            "progress": progress,
            "queued_at": now,
            "claimed_at": None,
            "planned_seconds": 6.0,
            "due_at": now if state == "running" else None,
            "finished_at": None,
            "message": None,
            "name": None,
            "note": None,
            "links": {},
        },
    )


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_in_a_terminal_is_written_over_and_ended_once() -> None:
    stream = _Terminal()
    bar = TerminalBar(stream)
    for seen in (job("queued"), job("running", 5), job("succeeded"), None):
        bar(seen)
    lines = stream.getvalue().split("\r")
    assert re.search(r"measurement 6 of 10, result at \d\d:00:00", lines[2])
    assert lines[2].count("#") == 12
    assert lines[3].rstrip().endswith("succeeded")
    assert stream.getvalue().count("\n") == 1


def test_a_shorter_line_wipes_the_longer_one_before_it() -> None:
    stream = _Terminal()
    bar = TerminalBar(stream)
    bar(job("running", 5))
    bar(job("succeeded"))
    first, second = stream.getvalue().split("\r")[1:]
    assert len(second) == len(first)


def test_a_notebook_shows_one_bar_that_is_replaced() -> None:
    shown: list[str] = []

    class Handle:
        def update(self, drawn: str) -> None:
            shown.append(f"again {drawn}")

    def display(drawn: str, display_id: bool) -> Handle:
        assert display_id
        shown.append(drawn)
        return Handle()

    bar = NotebookBar(display, str)
    for seen in (job("running", 5), job("succeeded"), None):
        bar(seen)
    assert [each.startswith("again") for each in shown] == [False, True]
    assert 'value="0.500"' in shown[0]
    assert "&lt;visits&gt;" in shown[0]


def test_a_script_without_a_terminal_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert automatic() is None


def test_a_terminal_gets_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert isinstance(automatic(), TerminalBar)


def test_where_a_job_stands_is_said_in_a_few_words() -> None:
    assert in_words(job("queued")) == "queued"
    assert in_words(job("running")).startswith("running, result at ")
    assert job("running", 3).progress == JobProgress(3, 10)
