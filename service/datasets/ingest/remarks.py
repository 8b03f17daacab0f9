"""Remarks on the first lines of a file: what its curator should mend before it is uploaded, in sentences.

Nothing here changes how a record is read. A file with a title, totals or units is read as it is declared, and
each record that does not fit is bad by itself; the remarks say so before anybody is surprised.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from core.columns.cells import Cells
from service.datasets.ingest.readers.text import SEPARATORS
from service.datasets.ingest.reports import quoted
from service.datasets.proposals import Proposal, is_data

_MARKS = tuple(mark.encode() for mark in SEPARATORS)
#: Blanks and the separators of fields that are empty.
_BLANK = b' \r\n"' + b"".join(_MARKS)
_TOTAL = re.compile(
    r"(grand |sub)?totals?|sums?|all|overall|summe|gesamt|insgesamt|total général|totale|totaal|suma|razem",
    re.IGNORECASE,
)
#: A currency before a number, or a unit after it.
_NUMBER_WITH_UNIT = re.compile(
    r"(?P<before>[€$£¥]|EUR|USD|GBP|CHF)?\s?[+-]?\d[\d.,'\u2019\s]*?\s?"
    r"(?P<after>[%‰€$£¥]|[^\W\d_][\w/²³]{0,7})?"
)
#: This share of a column's values must have the same unit for it to be named.
_MOST = 0.8


def without_title(sample: bytes) -> tuple[bytes, str]:
    """Return a sample of text without a title above the names of its columns, and that title.

    A title fills one field, and the next line that is not empty has names in several.
    """
    first, _, below = sample.partition(b"\n")
    title = first.strip(_BLANK)
    if not title or b"\0" in title or any(mark in title for mark in _MARKS):
        return sample, ""
    below = below.lstrip(_BLANK)
    head = below.partition(b"\n")[0].decode("utf-8", "replace").strip()
    fields = max((head.split(mark) for mark in SEPARATORS), key=len)
    is_head = len(fields) > 1 and not any(is_data(field.strip(' "')) for field in fields)
    return (below, title.decode("utf-8", "replace")) if is_head else (sample, "")


def remarks(
    title: str, rows: Sequence[Sequence[str]], found: Sequence[Cells], proposed: Sequence[Proposal]
) -> list[str]:
    """Return what is remarkable about the first lines of a file."""
    return [*_of_title(title), *_of_totals(rows), *_of_columns(found, proposed)]


def repeats_id(found: Sequence[Cells], proposed: Sequence[Proposal]) -> bool:
    """Whether the column that tells people apart holds a value twice."""
    people = (cells for cells, each in zip(found, proposed, strict=True) if each.facts["role"] == "id")
    return any(_times(cells) > 1 for cells in people)


def _times(cells: Cells) -> int:
    return max(Counter(cells.present).values(), default=0)


def _of_title(title: str) -> Iterator[str]:
    if title:
        yield (
            f"The first line, {quoted(title)}, is a title. Delete it, so that the file begins with the names "
            "of its columns. What follows is proposed as if it were gone."
        )


def _of_totals(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for place, row in enumerate(rows):
        first = next((cell for cell in row if cell), "")
        if _TOTAL.fullmatch(first.rstrip(": ")):
            yield (
                f"Row {place + 1} begins with {quoted(first)}: totals are no record. Delete it, or it counts "
                "as one or is left out as a bad row."
            )


def _of_columns(found: Sequence[Cells], proposed: Sequence[Proposal]) -> Iterator[str]:
    for cells, proposal in zip(found, proposed, strict=True):
        name = quoted(cells.name)
        if proposal.facts["role"] == "id" and (times := _times(cells)) > 1:
            yield (
                f"{name} repeats, up to {times} times in these lines: a person has several rows. Enter as "
                "rows per person the most that one person may have; further rows of a person are left out."
            )
        if proposal.facts["kind"] in ("category", "text") and (unit := _unit(cells)):
            yield (
                f"The values of {name} are numbers with {quoted(unit)}, such as {quoted(cells.present[0])}. "
                f"Remove {quoted(unit)} from the file, so that they are read as numbers."
            )


def _unit(cells: Cells) -> str:
    """Return the unit or currency that most values of a column are numbers of, or nothing."""
    matches = filter(None, map(_NUMBER_WITH_UNIT.fullmatch, cells.distinct))
    units = Counter((match["after"] or match["before"] or "").strip() for match in matches)
    unit, times = units.most_common(1)[0] if units else ("", 0)
    return unit if times > 1 and times >= _MOST * len(cells.distinct) else ""
