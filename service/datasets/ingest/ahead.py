"""Makes things in a thread of their own, a few of them ahead of whoever uses them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

__all__ = ["ahead"]

Made = TypeVar("Made")


class _End:
    """What comes after the last thing made: nothing, or what went wrong."""

    def __init__(self, fault: BaseException | None = None):
        self.fault = fault


def ahead(things: Iterable[Made], most: int) -> Generator[Made, None, None]:
    """The things in order, of which at most `most` wait to be used; a fault is raised in its place.

    Closed early, it waits for nobody: what is being made is let go when it is done, or fails.
    """
    ready: Queue[Made | _End] = Queue(most)
    unwanted = Event()

    def make() -> None:
        end = _End()
        try:
            for thing in things:
                ready.put(thing)
                del thing  # else it is held while the next one is made
                if unwanted.is_set():
                    return
        except BaseException as fault:
            end = _End(fault)
        ready.put(end)

    Thread(target=make, name="read-ahead", daemon=True).start()
    try:
        while not isinstance(found := ready.get(), _End):
            yield found
            del found
        if found.fault is not None:
            raise found.fault
    finally:
        unwanted.set()
        while not ready.empty():  # whoever waits for room finds it, and then that it is not wanted
            ready.get()
