"""Interruption of a rehearsal that gives way to a real job: an exception in the main thread, wherever it is.

A rehearsal reads no rows and keeps nothing but its result, so it can be dropped at any moment and run again.
The exception is raised between two steps of the interpreter; a call into compiled code ends first.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(BaseException):
    """The rehearsal gives way. No `Exception`, so that no algorithm takes it for a failure of its own."""


class Interruption:
    """Lets other threads interrupt the main thread while that allows it."""

    def __init__(self) -> None:
        self._allowed = self._installed = False

    def install(self) -> None:
        """Take over the signal that interrupts; from the main thread."""
        signal.signal(signal.SIGUSR1, self._interrupt)
        self._installed = True

    def ask(self) -> None:
        """Interrupt the main thread, if it allows that now."""
        main = threading.main_thread().ident
        if self._installed and main is not None:
            signal.pthread_kill(main, signal.SIGUSR1)

    @contextmanager
    def allowed(self, allowed: bool) -> Iterator[None]:
        """Allow interruptions of what runs in this block."""
        self._allowed = allowed
        try:
            yield
        finally:
            self._allowed = False

    def _interrupt(self, _number: int, _frame: object) -> None:
        if self._allowed:
            self._allowed = False
            raise Interrupted
