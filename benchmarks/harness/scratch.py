"""Where tests and benchmarks put files that need not outlive a power cut: in memory, where there is room."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil

#: Files in memory, on Linux. A disk is asked at every commit to have written it, and takes milliseconds.
_MEMORY = Path("/dev/shm")
_MEMORY_NEEDED = 4 << 30


def scratch() -> Path:
    """A folder for temporary files; its path is short, as that of a socket must be."""
    if not os.access(_MEMORY, os.W_OK | os.X_OK) or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return Path("/tmp")
    free = min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available)
    return _MEMORY if free > _MEMORY_NEEDED else Path("/tmp")
