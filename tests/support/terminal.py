"""A command in a terminal of its own: it believes that a person is there, reading and typing."""

from __future__ import annotations

import os
import pty
import re
import sys

CAIRN = [sys.executable, "-m", "cairn_client.cli"]


def in_terminal(*words: str, typed: str = "", prompt: str = "Key: ") -> str:
    """What a terminal shows when `cairn` runs in it, without colours; lines of `typed` answer prompts."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(CAIRN[0], [*CAIRN, *words])
    shown, answers = b"", typed.encode().splitlines(keepends=True)
    prompts = len(answers)
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how the end of a terminal looks on Linux
            break
        if not piece:
            break
        shown += piece
        while answers and shown.count(prompt.encode()) > prompts - len(answers):
            os.write(terminal, answers.pop(0))  # not earlier: what is typed before a prompt is thrown away
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown.decode()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
