"""Bars of ratios with the bar each is held against, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["draw_ratios"]


def draw_ratios(path: Path, title: str, ratios: Sequence[tuple[str, float, float | None]]) -> None:
    """One bar for each (name, ratio, least that is promised), the promise drawn as a line across it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    picture, axes = pyplot.subplots(figsize=(6, 0.6 + 0.55 * len(ratios)), dpi=110)
    for place, (name, ratio, least) in enumerate(reversed(ratios)):
        axes.barh(place, ratio, height=0.6, color="tab:blue")
        axes.text(ratio, place, f" {ratio:.2f}", va="center", fontsize=9)
        axes.text(0, place + 0.36, name, va="bottom", fontsize=8)
        if least is not None:
            axes.plot([least, least], [place - 0.4, place + 0.4], color="tab:red", linewidth=2)
    axes.set_yticks([])
    axes.set_ylim(-0.6, len(ratios) - 0.1)
    axes.set_xlim(0, 1.15 * max(ratio for _, ratio, _ in ratios))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("speed as a share of what stands beside it (red: what is promised)", fontsize=8)
    picture.tight_layout()
    picture.savefig(path)
    pyplot.close(picture)
