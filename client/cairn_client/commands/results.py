"""Results of jobs, printed as tables: those of tables in the kinds of their columns."""

from pathlib import Path
from typing import Any

import typer

from cairn_client.commands.printing import hint, print_json, print_table
from cairn_client.findings import Findings
from cairn_client.formatting import about, number, rounded_to_noise
from cairn_client.result import Result

_MOST_COLUMNS = 24
_COLUMNS_AT_ONCE = 6  # of a result in one table, so that it fits a terminal
_INTERVALS_AT_ONCE = 3  # The same, where each number has its interval.
_MOST_SHARES = 3
#: Lines of findings that are printed.
_MOST_LINES = 60


def print_result(found: Result, output: Path | None, as_json: bool) -> None:
    """Print a result as tables or JSON, or write it to a file."""
    if _written(found, f"{len(found.centres)} centres", output, as_json):
        return
    _hint_other_k(found)
    k, width = found.centres.shape
    if width > _MOST_COLUMNS and found.facts.profiles is None:
        typer.echo(f"{k} centres with {width} columns: write them to a file with -o FILE.csv")
        return
    sizes = _sizes(found)
    names, centres = _in_columns(found)
    at_once = _INTERVALS_AT_ONCE if found.intervals else _COLUMNS_AT_ONCE
    for start in range(0, len(names), at_once):
        part = slice(start, start + at_once)
        rows = [[place, *size, *centres[place - 1][part]] for place, size in enumerate(sizes, 1)]
        print_table(["cluster", "size", "95%", *names[part]], rows, "There are no centres.")
    _hint_noise(found)


def _written(found: Result | Findings, what: str, output: Path | None, as_json: bool) -> bool:
    """Write to a file or print as JSON if asked to; otherwise say whether this was a rehearsal."""
    if output is not None:
        found.save(output)
        hint(f"Wrote {what} to {output}.")
    if print_json(found.facts, as_json) or output is not None:
        return True
    if found.facts.rehearsal:
        hint("This was a rehearsal: it read no data and says nothing new about them.")
    return False


def _sizes(found: Result) -> list[tuple[int | None, str | None]]:
    """The size of each cluster, and its interval where one is stated."""
    if found.sizes is None:
        return [(None, None)] * len(found.centres)
    sizes, known = found.sizes.tolist(), found.intervals
    if "size_low" not in known:
        return [(round(size), None) for size in sizes]
    rounded = map(rounded_to_noise, sizes, known["size_low"], known["size_high"])
    return [(round(size), f"{number(round(low))}–{number(round(high))}") for size, low, high in rounded]


def _hint_other_k(found: Result) -> None:
    k = len(found.centres)
    if (merged := found.facts.merged) is not None:
        hint(f"k = {k}, of {merged['of']} clusters that were merged by their centres and sizes.")
    if (open_k := found.facts.range) is None:
        return
    others = f"every k from {open_k['from']} to {open_k['to']} is free: cairn result --k"
    hint(f"Suggested {open_k['reason']}; {others}." if k == open_k["suggested"] else f"k = {k}; {others}.")
    if open_k.get("warning"):
        hint(f"{open_k['warning']}.")


def _hint_noise(found: Result) -> None:
    if (level := found.facts.level) is not None:
        doubtful = [str(place) for place, real in enumerate(level["real"], 1) if not real]
        if doubtful:
            hint(
                f"Noise alone could have made {'clusters' if len(doubtful) > 1 else 'cluster'} "
                f"{', '.join(doubtful)}."
            )
    elif found.size_error is not None:
        hint(f"Sizes are noisy: ±{about(2 * found.size_error)} records in 95 of 100 runs (noise only).")
    elif found.sizes is not None:
        hint("Sizes are noisy; this result does not state by how much.")


def _in_columns(found: Result) -> tuple[list[str], list[list[Any]]]:
    """The columns, and each centre in them: of a table, a category by its largest shares."""
    if found.facts.profiles is None:
        rows, known = found.centres.tolist(), found.intervals
        if "centre_low" not in known:
            return found.columns, rows
        parts = zip(rows, known["centre_low"], known["centre_high"], strict=True)
        return found.columns, [list(map(_estimate, row, low, high)) for row, low, high in parts]
    plain = ("mean", "median", "rate", "shares")
    names = [
        entry["column"] + ("" if entry["measure"] in plain else f" ({entry['measure']})")
        for entry in found.profiles[0]
    ]
    return names, [[_cell(entry) for entry in profile] for profile in found.profiles]


def _cell(entry: dict[str, Any]) -> Any:
    if "shares" not in entry:
        return _estimate(entry["value"], entry.get("value_low"), entry.get("value_high"))
    largest = sorted(entry["shares"].items(), key=lambda each: -each[1])[:_MOST_SHARES]
    low, high = (entry.get(f"shares_{end}") or {} for end in ("low", "high"))
    shown = ((level, share, low.get(level), high.get(level)) for level, share in largest if share >= 0.005)
    return ", ".join(f"{level} {_share(*numbers)}" for level, *numbers in shown)


def _estimate(value: Any, low: Any, high: Any) -> Any:
    """A number rounded to its noise, with its interval where one is known; dates are texts."""
    if low is None:
        return value
    if isinstance(value, str):
        return f"{value} ({low} to {high})"
    middle, low, high = rounded_to_noise(value, low, high)
    return f"{number(middle)} ({number(low)} to {number(high)})"


def _share(share: float, low: float | None, high: float | None) -> str:
    return f"{share:.0%}" if low is None or high is None else f"{share:.0%} ({low:.0%} to {high:.0%})"


def print_findings(found: Findings, output: Path | None, as_json: bool) -> None:
    """Print findings as the service words them or as JSON, or write them to a file."""
    if _written(found, f"the {found.facts.kind}", output, as_json):
        return
    print_view(found.facts.view)


def print_view(view: list[dict[str, Any]]) -> None:
    """Print sentences, tables and histograms as the service words them."""
    for part in view:
        if part["type"] == "sentence":
            hint(part["text"])
            continue
        headings, rows = part_of(part)
        typer.echo(f"\n{part['title']}")
        print_table(headings, rows[:_MOST_LINES], "There is nothing.")
        if len(rows) > _MOST_LINES:
            hint(f"{len(rows) - _MOST_LINES} more lines: write all of them to a file with -o FILE.csv")


def part_of(part: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The headings and cells of a table or of histograms, as text."""
    if part["type"] == "table":
        rows = [[each["text"] if isinstance(each, dict) else each for each in row] for row in part["rows"]]
        return [heading["name"] for heading in part["headings"]], rows
    bars = zip(part["bins"], *(each["bars"] for each in part["series"]), strict=True)
    headings = ["value", *(each["name"] for each in part["series"])]
    return headings, [[name, *map(_bar, row)] for name, *row in bars]


def _bar(bar: dict[str, Any]) -> str:
    count = bar.get("count")
    return str(bar["share"]["text"]) + (f", {count['text']} records" if count else "")
