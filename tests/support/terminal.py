"""A command in a terminal of its own: it believes that a person is there, reading and typing."""

from __future__ import annotations

import os
import pty
import re
import sys

CAIRN = [sys.executable, "-m", "cairn_client.cli"]


def in_terminal(*words: str, typed: str = "") -> str:
    """What a terminal shows when `cairn` runs in it, without colours; `typed` is the answer to `Key:`."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(CAIRN[0], [*CAIRN, *words])
    shown = b""
    if typed:
        while b"Key: " not in shown:  # what is typed before that is thrown away
            shown += os.read(terminal, 1000)
        os.write(terminal, typed.encode())
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how the end of a terminal looks on Linux
            break
        if not piece:
            break
        shown += piece
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown.decode()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
