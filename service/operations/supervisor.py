"""Keeps worker processes running: starts them, starts lost ones again, and stops them in good order.

Each process has a health file whose time says when it was last seen: the supervisor makes and removes it, the
worker touches it, `worker_faults` reads it. A process that is lost leaves a file with the reason. The module
imports none of the numerical libraries, so that workers come up at once.
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

from service.operations import machine
from service.operations.settings import MIB, Settings
from service.operations.signals import stop_on_signals

log = structlog.get_logger()

_RESTART_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1
#: Exit code of a worker process that ended because its job met a limit on time or memory.
ENDED_BY_LIMIT = 75
#: A worker that is silent for this long is stuck; waiting for a lock or for the database takes less.
_SILENT_SECONDS = 120.0
#: For this long a lost worker makes the health check fail.
_LOSS_SECONDS = 600.0
_REASONS = {
    "memory": "was killed because the container's memory ran out",
    "killed": "was killed",
    "crashed": "crashed",
}
#: Memory of the supervisor itself.
_OWN_BYTES = 64 * MIB
#: Memory of an API process.
_API_BYTES = 256 * MIB
#: Share of a container's memory that jobs may use: a job is looked at once a second, and grows meanwhile.
_USABLE_SHARE = 0.9


def worker_faults(directory: Path, *, longest_silence: float, losses: bool = True) -> list[str]:
    """Return what is wrong with the workers whose health files are in a folder, each in a sentence.

    A worker that is busy announces when it is heard of again, `longest_silence` seconds ahead at most.
    """
    seen = {path.name: path.stat().st_mtime for path in directory.glob("worker-*")}
    late = sorted(name for name, moment in seen.items() if time.time() - moment > _SILENT_SECONDS)
    faults = [f"{name} is stuck" for name in late]
    ahead = sorted(name for name, moment in seen.items() if moment - time.time() > longest_silence)
    faults += [f"{name} was last seen in the future: the clock of this machine was set" for name in ahead]
    for path in sorted(directory.glob("lost-*")) if losses else ():
        seconds = time.time() - path.stat().st_mtime
        if seconds < _LOSS_SECONDS:
            reason = _REASONS.get(path.read_text(), "was lost")  # the file may not be written yet
            faults.append(f"a worker process {reason} {seconds:.0f} seconds ago")
    return faults


def running_workers(directory: Path) -> int:
    """Return the number of worker processes whose health files are in a folder."""
    return len(list(directory.glob("worker-*")))


def worker_environment(settings: Settings, processes: int, *, with_api: bool = False) -> dict[str, str]:
    """Return the environment of each of the worker processes, which share processors and memory.

    `with_api` leaves room for the API's processes, which run in the same container.
    """
    others = _OWN_BYTES + (settings.api_processes * _API_BYTES if with_api else 0)
    threads = str(max(1, machine.processors() // processes))
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    share = int(_USABLE_SHARE * max(0, machine.memory_bytes() - others) / processes)
    memory = min(settings.max_memory_bytes, max(1, share))
    limits = {
        "CAIRN_MAX_MEMORY_BYTES": str(memory),
        "CAIRN_VIEW_CACHE_BYTES": str(min(settings.view_cache_bytes, memory // 4)),
    }
    return settings.as_environment() | dict.fromkeys(names, threads) | limits


def supervise(settings: Settings, processes: int, *, stop_with_parent: bool = False) -> None:
    """Keep this number of worker processes running until SIGTERM or SIGINT."""
    stop = threading.Event()
    stop_on_signals(stop)
    parent = os.getppid()
    environment = worker_environment(settings, processes, with_api=stop_with_parent)
    if settings.health_directory:
        settings.health_directory.mkdir(parents=True, exist_ok=True)
        for left in [*settings.health_directory.glob("worker-*"), *settings.health_directory.glob("lost-*")]:
            left.unlink()
    children = [_start(settings, environment, place) for place in range(processes)]
    kills = machine.memory_kills()
    while not stop.wait(_RESTART_SECONDS) and (not stop_with_parent or os.getppid() == parent):
        before, kills = kills, machine.memory_kills()
        for place, child in enumerate(children):
            if child.poll() is not None:
                lost = end_reason(child.returncode, out_of_memory=kills > before)
                log.warning("a worker process ended; starting another", code=child.returncode, reason=lost)
                _record_end(settings.health_file(child.pid), place, lost)
                children[place] = _start(settings, environment, place, lost)
    for child in children:
        child.terminate()
    for child in children:
        child.wait()


def _record_end(health: Path | None, slot: int, lost: str) -> None:
    """Remove the health file of a process that has ended, and leave the reason if it was lost."""
    if health is not None:
        health.unlink(missing_ok=True)
        if lost:
            health.with_name(f"lost-{slot}").write_text(lost)


def end_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when its parent ends; exit if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(0)


def end_reason(code: int, *, out_of_memory: bool) -> str:
    """Return why a worker process was lost; empty if it ended in good order, or with its job at a limit."""
    if code in (0, ENDED_BY_LIMIT):
        return ""
    if code == -signal.SIGKILL:
        return "memory" if out_of_memory else "killed"
    return "crashed"


def _start(
    settings: Settings, environment: dict[str, str], slot: int, lost: str = ""
) -> subprocess.Popen[bytes]:
    # Modules load a fifth faster while nobody looks for garbage; the worker does so once it has begun.
    arguments = f"{os.getpid()}, {slot}, {lost!r}"
    program = f"import gc; gc.disable(); from service.workers.worker import main; main({arguments})"
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        start_new_session=True,  # Ctrl-C reaches the supervisor, which stops its workers in good order
    )
    if health := settings.health_file(child.pid):
        health.touch()
    return child
