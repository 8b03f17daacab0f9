"""The loss of one release for every k, and of everything beside it, as a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["draw_losses"]

#: Line and colour of each way to get an answer for k.
_STYLES = {
    "one release for every k": ("-", "tab:blue"),
    "a run for this k, whole budget": ("o", "tab:orange"),
    "summit, 1/31 of the budget": ("s--", "tab:green"),
    "sulq, 1/31": ("s--", "tab:red"),
    "diffprivlib, 1/31": ("s--", "tab:purple"),
}
_PEERS = {
    "auto": "summit, 1/31 of the budget",
    "sulq": "sulq, 1/31",
    "diffprivlib": "diffprivlib, 1/31",
}


def draw_losses(rows: Sequence[Mapping[str, str]], peers: Sequence[Mapping[str, str]], path: Path) -> None:
    """A panel for each dataset: mean losses over that of k-means, for each k."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        lines = {"one release for every k": row["loss"], "a run for this k, whole budget": row["direct"]}
        for line, value in lines.items():
            if value:
                found[row["dataset"]][line][int(row["k"])].append(float(value))
    for row in peers:
        found[row["dataset"]][_PEERS[row["peer"]]][int(row["k"])].append(float(row["loss"]))
    columns = 3
    deep = -(-len(found) // columns)
    picture, axes = pyplot.subplots(
        deep, columns, figsize=(4.4 * columns, 3.3 * deep), squeeze=False, dpi=110
    )
    for panel, (dataset, lines_of) in zip(axes.flat, found.items(), strict=False):
        for line, (style, colour) in _STYLES.items():
            places = sorted(lines_of[line])
            means = [np.mean(lines_of[line][k]) for k in places]
            panel.plot(places, means, style, color=colour, markersize=4, label=line)
        panel.axhline(1.05, color="grey", linewidth=0.8, linestyle=":")
        panel.set_yscale("log")
        panel.set_title(dataset, fontsize=10)
        panel.set_xlabel("k", fontsize=8)
        panel.set_ylabel("loss / k-means without privacy", fontsize=8)
        lowest, highest = panel.get_ylim()
        wanted = (1, 2, 5, 10, 20, 50, 100) if highest > 4 else (0.9, 1, 1.05, 1.2, 1.5, 2, 3)
        ticks = [tick for tick in wanted if lowest <= tick <= highest]
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.tick_params(labelsize=8)
    for panel in axes.flat[len(found) :]:
        panel.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="lower center", ncols=3, fontsize=8, frameon=False)
    picture.tight_layout(rect=(0, 0.08, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)
    pyplot.close(picture)
