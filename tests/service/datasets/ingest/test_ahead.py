"""Things made ahead by a thread come in order, faults in their place, and early leavers wait for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Event

import pytest

from service.datasets.ingest.ahead import ahead


def test_things_come_in_order() -> None:
    assert list(ahead(range(100), 3)) == list(range(100))


def test_fault_is_raised_after_what_was_made_before_it() -> None:
    def make() -> Iterator[int]:
        yield 1
        raise ValueError("accident")

    things = ahead(make(), 3)
    assert next(things) == 1
    with pytest.raises(ValueError, match="accident"):
        next(things)


def test_no_more_are_made_than_may_wait() -> None:
    made: list[int] = []
    asked = [Event() for _ in range(10)]

    def make() -> Iterator[int]:
        for number in count():
            made.append(number)
            asked[min(number, 9)].set()
            yield number

    things = ahead(make(), 2)
    assert next(things) == 0
    assert asked[3].wait(10)  # two that wait, and one that finds no room
    assert made == [0, 1, 2, 3]
    things.close()


def test_whoever_leaves_early_does_not_wait_for_what_is_being_made() -> None:
    never, begun, ended = Event(), Event(), Event()

    def make() -> Iterator[int]:
        try:
            yield 1
            begun.set()
            never.wait(30)
            yield 2
        finally:
            ended.set()

    things = ahead(make(), 1)
    assert next(things) == 1
    assert begun.wait(10)
    things.close()
    assert not ended.is_set()
    never.set()
    assert ended.wait(10)


def test_maker_that_waits_for_room_is_let_go() -> None:
    ended = Event()

    def make() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            ended.set()

    things = ahead(make(), 1)
    assert next(things) == 0
    things.close()
    assert ended.wait(10)
