"""A notebook, executed by a real kernel against a real service: the bar, the table, the plot."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.markdown import ROOT
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
def signed_in(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory; the environment has the service and the analyst's key."""
    monkeypatch.setenv("CAIRN_URL", live.url)
    monkeypatch.setenv("CAIRN_KEY", live.analyst_key)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def executed(path: Path) -> list[list[Any]]:
    """What each code cell shows, after the command that executes notebooks."""
    execute = [sys.executable, "-c", "from nbclient.cli import main; main()", "--inplace", str(path)]
    done = subprocess.run(execute, cwd=path.parent, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    cells = nbformat.read(path, as_version=4).cells
    return [cell.outputs for cell in cells if cell.cell_type == "code"]


def is_picture(output: Any) -> bool:
    return base64.b64decode(output["data"].get("image/png", "")).startswith(b"\x89PNG")


def test_a_notebook_shows_the_bar_the_table_and_the_plot(signed_in: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbformat.write(notebook, signed_in / "notebook.ipynb")
    waiting, table, plot = executed(signed_in / "notebook.ipynb")
    (bar,) = waiting  # one output that was replaced, not one for each time the job was looked at
    assert bar["data"]["text/html"] == '<progress value="1.000" max="1"></progress> visits: succeeded'
    (shown,) = table
    assert "<th>minutes</th>" in shown["data"]["text/html"]
    (drawn,) = plot
    assert is_picture(drawn)


def test_the_notebook_about_choosing_k_runs_and_draws_its_pictures(live: Live, signed_in: Path) -> None:
    owned = live.dataset(cap="1")
    text = (ROOT / "examples" / "choosing_k.ipynb").read_text()
    (signed_in / "choosing_k.ipynb").write_text(text.replace("visits", owned.name))
    shown = [output for cell in executed(signed_in / "choosing_k.ipynb") for output in cell]
    assert sum(is_picture(output) for output in shown if "data" in output) == 2
    charges = [entry for entry in owned.ledger() if entry.kind == "charge"]
    assert [str(entry.amount.epsilon) for entry in charges] == ["1"]
