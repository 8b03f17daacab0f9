"""What this process may use of the machine: processors and memory, as its container limits them.

Read from Linux's control groups, version 2 or 1. Elsewhere, and without a limit, it is what the machine has.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path

#: Values above this are version 1's way of saying that there is no limit.
_NO_LIMIT = 1 << 60


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the most memory that the processes of this container may hold in all."""
    limits = [int(text) for text in _values(root, "memory", "memory.max", "memory.limit_in_bytes")]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([limit for limit in limits if limit < _NO_LIMIT], default=machine)


def processors(root: Path = Path("/")) -> int:
    """Return how many processors this process may use: its cpuset, and its quota of time rounded up."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [float(quota) / float(period) for quota, period in _cpu_quotas(root) if float(quota) > 0]
    return max(1, min([allowed, *map(math.ceil, quotas)]))


def memory_kills(root: Path = Path("/")) -> int:
    """Return how many processes of this container the kernel has killed because memory ran out."""
    for folder in _folders(root, "memory"):
        for name in ("memory.events.local", "memory.events", "memory.oom_control"):
            facts = dict(line.split(maxsplit=1) for line in _read(folder / name).splitlines())
            if "oom_kill" in facts:
                return int(facts["oom_kill"])
    return 0


def _cpu_quotas(root: Path) -> Iterator[tuple[str, str]]:
    for folder in _folders(root, "cpu"):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if quota not in ("", "max"):
            yield quota, period


def _values(root: Path, controller: str, *names: str) -> Iterator[str]:
    for folder in _folders(root, controller):
        for name in names:
            if (text := _read(folder / name)) not in ("", "max"):
                yield text


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield this process's control group and those above it, whose limits hold as well.

    A container may see its own group at the top of the mounted tree, and yet its path on the host.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controller if names else "")
        inner = top / path.strip("/")
        yield from (folder for folder in (inner, *inner.parents) if folder == top or top in folder.parents)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
