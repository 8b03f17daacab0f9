"""A notebook, executed by a real kernel against a real service: the bar, the table, the plot."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.live import Live

CELLS = (
    """
    from cairn_client import Client
    result = Client().dataset("visits").cluster(k=3, epsilon=1, rehearsal=True)
    """,
    "result",
    "result.plot()",
)


@pytest.fixture
def outputs(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What each cell shows, after the command that executes notebooks."""
    monkeypatch.setenv("CAIRN_URL", live.url)
    monkeypatch.setenv("CAIRN_KEY", live.analyst_key)
    monkeypatch.setenv("HOME", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    path = tmp_path / "notebook.ipynb"
    nbformat.write(notebook, path)
    execute = [sys.executable, "-c", "from nbclient.cli import main; main()", "--inplace", str(path)]
    done = subprocess.run(execute, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [cell.outputs for cell in nbformat.read(path, as_version=4).cells]


def test_a_notebook_shows_the_bar_the_table_and_the_plot(outputs: list[list[Any]]) -> None:
    waiting, table, plot = outputs
    (bar,) = waiting  # one output that was replaced, not one for each time the job was looked at
    assert bar["data"]["text/html"] == '<progress value="1.000" max="1"></progress> visits: succeeded'
    (shown,) = table
    assert "<th>minutes</th>" in shown["data"]["text/html"]
    (drawn,) = plot
    assert base64.b64decode(drawn["data"]["image/png"]).startswith(b"\x89PNG")
