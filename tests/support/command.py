"""The command `cairn` run inside the test's own process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from cairn_client.cli import app


def cairn(*words: str, code: int = 0, stdin: str | None = None) -> Any:
    """Run the command in this process; `code` is the exit status it must have."""
    done = CliRunner().invoke(app, list(words), input=stdin, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def as_json(*words: str) -> Any:
    """What the command prints with `--json`."""
    return json.loads(cairn(*words, "--json").stdout)


def sentence(done: Any) -> str:
    """The one line on standard error."""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("cairn: ")
    assert line.endswith(".")
    assert "Traceback" not in done.output
    return str(line)
