"""A process that is told to stop twice, at the worst moment, stops."""

import subprocess
import sys

_STOPPED_WHILE_THE_EVENT_IS_LOCKED = """
import os, signal, threading
from service.operations.signals import stop_on_signals

stop = threading.Event()
stop_on_signals(stop)
with stop._cond:  # as inside wait() and set(), where a handler that sets the event would wait for ever
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
assert stop.wait(30)
"""


def test_signals_that_come_while_the_event_is_locked_stop_the_process() -> None:
    subprocess.run([sys.executable, "-c", _STOPPED_WHILE_THE_EVENT_IS_LOCKED], check=True, timeout=60)
