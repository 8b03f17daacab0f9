"""Results are sent as they were stored; the helper process converts what is long."""

from __future__ import annotations

import asyncio
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from service.jobs.results import routes, stored
from service.operations.helper import CallerGone, Helper
from tests.support.service import House

FILES = [
    ("result", "text/csv"),
    ("result", "application/x-npy"),
    ("result?k=2", "application/json"),
    ("sample?n=50", "application/json"),
    ("sample?n=50", "text/csv"),
]


@pytest.mark.both_databases
def test_files_of_a_result_are_the_same_whoever_makes_them(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, by the helper, and through a file on disk."""
    house.ready(planned_release=False)
    house.submit(k={"from": 1, "to": 3}, algorithm="auto")
    assert house.work()
    house.clock.move(3600)

    def files() -> list[bytes]:
        found = [
            house.ada.get(f"/v1/jobs/latest/{path}", headers={"Accept": accept}) for path, accept in FILES
        ]
        assert [each.status_code for each in found] == [200] * len(FILES)
        return [each.content for each in found]

    here = files()
    monkeypatch.setattr(routes, "_SHORT", 0)
    monkeypatch.setattr(routes, "_PIECE", 100)
    monkeypatch.setattr(routes, "_if_short", _without_content(routes._if_short))
    assert files() == here
    refused = house.ada.get("/v1/jobs/latest/result?k=9")
    assert refused.status_code == 422
    assert "from 1 to 3" in refused.json()["detail"]


def _without_content(act: Any) -> Any:
    """Fail if a file is made in this process."""

    def checked(*arguments: Any) -> int:
        found = act(*arguments)
        assert isinstance(found, int)
        return found

    return checked


@pytest.mark.both_databases
def test_long_result_is_read_once_and_sent_to_the_letter_from_the_disk(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready(planned_release=False)
    house.submit()
    assert house.work()
    monkeypatch.setattr(routes, "_PIECE", 100)
    statements: list[str] = []
    event.listen(
        house.database.engine, "before_cursor_execute", lambda *found: statements.append(str(found[2]))
    )
    written: list[bytes] = []
    on_disk = routes._on_disk

    def seen(content: bytes, context: Any) -> Any:
        written.append(content)
        return on_disk(content, context)

    monkeypatch.setattr(routes, "_on_disk", seen)
    answer = house.ada.get("/v1/jobs/latest/result")
    assert sum("results.body" in each for each in statements) == 1
    with house.database.read() as session:
        text = stored.text(session, answer.json()["job"])
    assert written == [answer.content]
    assert answer.text == text


def test_clustering_that_would_release_too_much_is_refused_by_the_work_limit(
    sqlite_url: str, tmp_path: Path
) -> None:
    """A bound on k alone would be none: a result has a number for each column of each centre."""
    with closing(House(sqlite_url, tmp_path, max_released_values=1000)) as house:
        house.ready()
        assert house.submit(k=500, rehearsal=True).status_code == 202
        refused = house.submit(k=501, rehearsal=True)
        assert (refused.status_code, refused.json()["type"]) == (422, "/problems/work-limit")
        assert "1,002 coordinates" in refused.json()["detail"]


def test_caller_has_one_turn_at_a_time_and_none_once_gone() -> None:
    """Whoever asks often waits for themselves; what nobody waits for any more is not begun."""
    helper = Helper()
    begun: list[str] = []

    async def ask() -> None:
        leave = asyncio.Event()

        async def here() -> bool:
            begun.append("first")
            await leave.wait()
            return True

        async def gone() -> bool:
            begun.append("second")
            return True

        first = asyncio.create_task(helper.run(1, here, partial(int, 1)))
        second = asyncio.create_task(helper.run(1, gone, partial(int, 2)))
        other = asyncio.create_task(helper.run(2, gone, partial(int, 3)))
        with pytest.raises(CallerGone):
            await other
        assert begun == ["first", "second"]
        leave.set()
        for each in (first, second):
            with pytest.raises(CallerGone):
                await each
        assert begun == ["first", "second", "second"]

    asyncio.run(ask())
    assert helper._pool is None
