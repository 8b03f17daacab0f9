"""Results of jobs at a terminal: tables of centres, of a table in the kinds of its columns."""

from pathlib import Path
from typing import Any

import typer

from cairn_client.commands.printing import hint, print_json, print_table
from cairn_client.formatting import about
from cairn_client.result import Result

_MOST_COLUMNS = 24
_COLUMNS_AT_ONCE = 6  # of a result in one table, so that it fits a terminal
_MOST_SHARES = 3


def print_result(found: Result, output: Path | None, as_json: bool) -> None:
    """Print a result as tables or JSON, or write it to a file."""
    if output is not None:
        found.save(output)
        hint(f"Wrote {len(found.centres)} centres to {output}.")
    if print_json(found.facts, as_json):
        return
    if output is not None:
        return
    if found.facts.rehearsal:
        hint("This was a rehearsal on synthetic rows; it says nothing about the data.")
    k, width = found.centres.shape
    if (open_k := found.facts.range) is not None:
        others = f"every k from {open_k['from']} to {open_k['to']} is free: cairn result --k"
        hint(
            f"Suggested {open_k['reason']}; {others}." if k == open_k["suggested"] else f"k = {k}; {others}."
        )
    if width > _MOST_COLUMNS and found.facts.profiles is None:
        typer.echo(f"{k} centres with {width} columns: write them to a file with -o FILE.csv")
        return
    sizes = [None] * k if found.sizes is None else [round(size) for size in found.sizes.tolist()]
    names, centres = (
        (found.columns, found.centres.tolist()) if found.facts.profiles is None else _words(found)
    )
    for start in range(0, len(names), _COLUMNS_AT_ONCE):
        part = slice(start, start + _COLUMNS_AT_ONCE)
        rows = [[number, size, *centres[number - 1][part]] for number, size in enumerate(sizes, 1)]
        print_table(["cluster", "size", *names[part]], rows, "There are no centres.")
    if found.sizes is not None and found.size_error is None:
        hint("Sizes are noisy; this result does not state by how much.")
    elif found.size_error is not None:
        hint(f"Sizes are noisy: ±{about(2 * found.size_error)} records in 95 of 100 runs.")


def _words(found: Result) -> tuple[list[str], list[list[Any]]]:
    """The columns of a table and each centre in them, a category by its largest shares."""
    plain = ("mean", "median", "rate", "shares")
    names = [
        entry["column"] + ("" if entry["measure"] in plain else f" ({entry['measure']})")
        for entry in found.profiles[0]
    ]
    return names, [[_cell(entry) for entry in profile] for profile in found.profiles]


def _cell(entry: dict[str, Any]) -> Any:
    if "shares" not in entry:
        return entry["value"]
    largest = sorted(entry["shares"].items(), key=lambda each: -each[1])[:_MOST_SHARES]
    return ", ".join(f"{level} {share:.0%}" for level, share in largest if share >= 0.005)
