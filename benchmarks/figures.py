"""The papers' figures, measured again: `python -m benchmarks figures NAME` writes a CSV file and pictures.

A figure is a list of panels; a panel is some clusterings for each of some values of k or epsilon. To add a
paper, write a module of its panels and a command here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import figures_balcan, figures_chaturvedi, figures_jones
from benchmarks.panels import Panel, draw_panels, measure_panels

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The papers' figures, measured again.")

Runs = Annotated[int, typer.Option(help="independent runs of each private algorithm")]
Only = Annotated[str, typer.Option(help="names of panels, separated by commas; all by default")]
Mnist = Annotated[Path | None, typer.Option(help="an .npz file with `pixels`")]
Redraw = Annotated[bool, typer.Option(help="draw the pictures from the CSV file alone")]


def _figure(name: str, panels: Sequence[Panel], runs: int, redraw: bool, only: str = "") -> None:
    if not redraw:
        measure_panels(name, panels, runs, [panel for panel in only.split(",") if panel])
    draw_panels(name, panels)


@app.callback()
def several() -> None:
    """Keep the name of a figure even while there is only one."""


@app.command()
def balcan(runs: Runs = 5, only: Only = "", mnist: Mnist = None, redraw: Redraw = False) -> None:
    """Balcan et al. (2017), Figure 2: loss by k on MNIST and a mixture, and by epsilon at k = 10."""
    _figure("balcan", figures_balcan.panels(mnist), runs, redraw, only)


@app.command()
def chaturvedi(runs: Runs = 5, only: Only = "", mnist: Mnist = None, redraw: Redraw = False) -> None:
    """Chaturvedi et al. (2021), Figure 1: loss by k on MNIST and a mixture."""
    _figure("chaturvedi", figures_chaturvedi.panels(mnist), runs, redraw, only)


@app.command()
def jones(runs: Runs = 5, redraw: Redraw = False) -> None:
    """Jones et al. (2021), who draw none: the cost of 20 facilities by epsilon and by accounting."""
    _figure("jones", figures_jones.panels(), runs, redraw)
