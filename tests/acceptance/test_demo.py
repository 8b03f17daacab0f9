"""`make run` beside something that already runs: the demo says what it does and breaks nothing."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from benchmarks.harness.processes import ROOT, RunningService, server


def demo(folder: Path, *options: str, **settings: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "CAIRN_PORT"}
    return subprocess.Popen(
        [sys.executable, "-m", "service.cli", "demo", "--directory", str(folder), *options],
        env={**environment, "PYTHONUNBUFFERED": "1", **settings},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "var"


@pytest.fixture(scope="module")
def first(folder: Path) -> Iterator[RunningService]:
    """A demo that is running already."""
    with server("", folder.parent, command=("demo", "--directory", str(folder))) as running:
        yield running


def test_a_second_demo_in_the_same_folder_points_to_the_first(first: RunningService, folder: Path) -> None:
    keys = (folder / "demo-keys.txt").read_text().split()
    second = demo(folder)
    output, _ = second.communicate(timeout=60)
    assert second.returncode == 0, output
    assert "already running" in output
    assert first.address in output
    assert all(key in output for key in keys)
    assert httpx.get(f"{first.address}/readyz").status_code == 200
    first.person(keys[1]).call("GET", "/v1/datasets/visits", expect=200)


def test_a_running_demo_is_not_replaced_by_a_fresh_one(first: RunningService, folder: Path) -> None:
    second = demo(folder, "--fresh")
    output, _ = second.communicate(timeout=60)
    assert second.returncode != 0
    assert "stop it first" in " ".join(output.replace("│", "").split())  # the frame breaks lines
    key = (folder / "demo-keys.txt").read_text().split()[1]
    first.person(key).call("GET", "/v1/datasets/visits", expect=200)


def test_a_taken_port_is_named_and_the_next_free_one_used(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:
        try:
            taken.bind(("127.0.0.1", 8000))
            taken.listen()
        except OSError:
            pass  # somebody else's program has it, which serves as well
        process = demo(tmp_path / "demo")
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Cairn answers at" in line:
                break
        output = "".join(lines)
        try:
            assert re.search(r"Port 8000 is in use by another program; using port 80\d\d instead", output)
            address = re.search(r"Cairn answers at (\S+)", output)
            assert address, output
            assert httpx.get(f"{address[1]}/readyz").status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def test_a_configured_port_that_is_taken_is_refused_with_advice(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = demo(tmp_path / "demo", CAIRN_PORT=str(taken.getsockname()[1]))
        output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "choose a free one with CAIRN_PORT" in " ".join(output.replace("│", " ").split())
