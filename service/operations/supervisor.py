"""Keeps worker processes running: starts them, starts lost ones again, and stops them in good order.

It imports none of the numerical libraries, so that workers come up at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from types import FrameType

import structlog

from service.operations.settings import Settings

__all__ = ["supervise"]

log = structlog.get_logger()

_RESTART_SECONDS = 1.0


def supervise(settings: Settings, processes: int, *, stop_with_parent: bool = False) -> None:
    """Keep so many worker processes running until SIGTERM or SIGINT."""
    stop = threading.Event()

    def order_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, order_stop)
    signal.signal(signal.SIGINT, order_stop)
    parent = os.getppid()
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    environment = settings.as_environment() | dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads
    )
    children = [_start(environment) for _ in range(processes)]
    while not stop.wait(_RESTART_SECONDS) and (not stop_with_parent or os.getppid() == parent):
        for place, child in enumerate(children):
            if child.poll() is not None:
                log.warning("a worker process ended; starting another", code=child.returncode)
                children[place] = _start(environment)
    for child in children:
        child.terminate()
    for child in children:
        child.wait()


def _start(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "from service.jobs.worker import main; main()"],
        env=environment,
        start_new_session=True,  # Ctrl-C reaches the supervisor, which stops its workers in good order
    )
