"""A test process that is lost, however it ends, fails the run soon, and its test is named."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.markdown import ROOT

_SUITE = """
import os, subprocess, sys, time, pytest

@pytest.mark.parametrize("number", range(40))
def test_short(number):
    time.sleep(0.02)

def test_bad():
    if os.environ["END"] == "itself":
        os._exit(0)
    if os.environ["END"] == "with-a-child":  # which keeps the pipe of the test process open
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    with open("pid", "w") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(600)

@pytest.mark.parametrize("number", range(40, 80))
def test_more(number):
    time.sleep(0.02)
"""
_PLUGINS = ("xdist", "tests.support.running", "tests.support.scheduling")


@contextmanager
def suite(folder: Path, end: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run of a small suite whose `test_bad` ends its process, or waits to be killed."""
    (folder / "test_suite.py").write_text(_SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "END": end,
    }
    plugins = [word for name in _PLUGINS for word in ("-p", name)]
    command = [sys.executable, "-m", "tests.support.run", *plugins, *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment, text=True, stdout=pipe, stderr=pipe) as run:
        yield run


def makefile_options() -> tuple[str, ...]:
    """How `make check` distributes tests, with two processes."""
    found = re.search(r"(?m)^DISTRIBUTED := -n \$\(WORKERS\) (.*)$", (ROOT / "Makefile").read_text())
    assert found
    return ("-n", "2", *found[1].split())


@pytest.mark.parametrize("distributed", [False, True])
@pytest.mark.parametrize("end", ["itself", "with-a-child"])
def test_process_that_ends_itself_with_code_0_fails_the_run(
    tmp_path: Path, end: str, distributed: bool
) -> None:
    with suite(tmp_path, end, *(makefile_options() if distributed else ())) as run:
        out, errors = run.communicate(timeout=60)
    assert run.returncode != 0
    assert "FAILED test_suite.py::test_bad: its test process ended" in errors, out + errors


@pytest.mark.parametrize("distributed", [False, True])
def test_process_that_is_killed_fails_the_run(tmp_path: Path, distributed: bool) -> None:
    with suite(tmp_path, "killed", *(makefile_options() if distributed else ())) as run:
        await_condition(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        out, errors = run.communicate(timeout=60)
    assert run.returncode != 0
    assert "FAILED test_suite.py::test_bad: its test process ended" in errors, out + errors


def test_run_without_a_loss_has_the_exit_code_of_pytest(tmp_path: Path) -> None:
    for options, code in ((["-k", "short"], 0), (["-k", "nothing"], 5)):
        with suite(tmp_path, "", *makefile_options(), *options) as run:
            out, errors = run.communicate(timeout=60)
        assert (run.returncode, "FAILED" in errors) == (code, False), out + errors


def await_condition(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
