"""Keeps worker processes running: starts them, starts lost ones again, and stops them in good order.

Each process has a health file whose time says when it was last heard of: the supervisor makes and removes
it, the worker touches it, `late_workers` reads it. The module imports none of the numerical libraries, so
that workers come up at once.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import structlog

from service.operations.settings import Settings
from service.operations.signals import stop_on_signals

log = structlog.get_logger()

_RESTART_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1
#: A worker that is silent for this long is stuck; waiting for a lock or for the database takes less.
_SILENT_SECONDS = 120.0


def late_workers(directory: Path) -> list[str]:
    """The names of the worker processes that have not been heard of for too long."""
    heard = {path.name: path.stat().st_mtime for path in directory.glob("worker-*")}
    return sorted(name for name, moment in heard.items() if time.time() - moment > _SILENT_SECONDS)


def worker_environment(settings: Settings, processes: int) -> dict[str, str]:
    """The environment of each of so many worker processes, which share the machine's cores."""
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return settings.as_environment() | dict.fromkeys(names, threads)


def supervise(settings: Settings, processes: int, *, stop_with_parent: bool = False) -> None:
    """Keep so many worker processes running until SIGTERM or SIGINT."""
    stop = threading.Event()
    stop_on_signals(stop)
    parent = os.getppid()
    environment = worker_environment(settings, processes)
    if settings.health_directory:
        settings.health_directory.mkdir(parents=True, exist_ok=True)
        for left in settings.health_directory.glob("worker-*"):
            left.unlink()
    children = [_start(settings, environment, place) for place in range(processes)]
    while not stop.wait(_RESTART_SECONDS) and (not stop_with_parent or os.getppid() == parent):
        for place, child in enumerate(children):
            if child.poll() is not None:
                log.warning("a worker process ended; starting another", code=child.returncode)
                if health := settings.health_file(child.pid):
                    health.unlink(missing_ok=True)
                children[place] = _start(settings, environment, place)
    for child in children:
        child.terminate()
    for child in children:
        child.wait()


def end_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when its parent ends; exit if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(0)


def _start(settings: Settings, environment: dict[str, str], slot: int) -> subprocess.Popen[bytes]:
    # Modules load a fifth faster while nobody looks for garbage; the worker does so once it has begun.
    program = f"import gc; gc.disable(); from service.workers.worker import main; main({os.getpid()}, {slot})"
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        start_new_session=True,  # Ctrl-C reaches the supervisor, which stops its workers in good order
    )
    if health := settings.health_file(child.pid):
        health.touch()
    return child
