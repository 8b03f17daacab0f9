"""Signals that are received by a thread instead of by a handler.

A handler interrupts the main thread anywhere, also while it holds the lock of an event. Were the handler to
set that event, or a second signal to interrupt the first handler, both would wait for each other.
"""

import signal
import socket
import threading
from collections.abc import Callable


def on_signals(act: Callable[[int], None]) -> None:
    """Call `act` in a thread for every signal that has a handler, until the process ends."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.detach())  # gets the number of each signal, whoever handles it

    def listen() -> None:
        while number := reader.recv(1):
            act(number[0])

    threading.Thread(target=listen, daemon=True, name="signals").start()


def stop_on_signals(stop: threading.Event) -> None:
    """Set the event on SIGTERM and SIGINT, however often they come."""
    orders = (signal.SIGTERM, signal.SIGINT)
    on_signals(lambda number: stop.set() if number in orders else None)
    for order in orders:
        signal.signal(order, lambda _number, _frame: None)
