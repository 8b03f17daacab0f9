"""Match a file's columns with those of the dataset."""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.columns.reading import composed
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.reports import printable
from service.errors import BadFormat

_NAMED = 10
_MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Matched:
    """Where a file has the dataset's columns and the id column, by the names that the file gives."""

    names: tuple[str, ...]
    positions: tuple[int, ...]
    person: int | None = None

    @property
    def places(self) -> tuple[int, ...]:
        """Positions of the dataset's columns, then of the id column if there is one."""
        return self.positions if self.person is None else (*self.positions, self.person)

    @property
    def columns(self) -> tuple[str, ...]:
        """The file's names of the dataset's columns."""
        return tuple(self.names[place] for place in self.positions)

    @property
    def id_name(self) -> str:
        """The file's name of the id column; empty if there is none."""
        return "" if self.person is None else self.names[self.person]

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of the other columns."""
        taken = set(self.places)
        return tuple(name for place, name in enumerate(self.names) if place not in taken)


def match_columns(names: Sequence[str], expected: Expected) -> Matched:
    """Find the dataset's columns among a file's; BadFormat names what is missing or ambiguous."""
    if len(names) > _MOST_COLUMNS:
        raise BadFormat(f"the file has more than {_MOST_COLUMNS} columns; is the separator a comma?")
    needed = [*expected.columns, *([expected.id_column] if expected.id_column else [])]
    by_name = _matching(names, needed)
    missing = [name for name in needed if name not in by_name]
    if missing and expected.positional:
        return _by_position(names, expected)
    if missing:
        raise BadFormat(_lacking(names, missing), missing_columns=missing[:_NAMED])
    if double := _ambiguous(names, needed):
        raise BadFormat(f"the file has more than one column named {double}; rename or remove one")
    person = by_name[expected.id_column] if expected.id_column else None
    return Matched(tuple(names), tuple(by_name[name] for name in expected.columns), person)


def _ambiguous(names: Sequence[str], needed: Sequence[str]) -> str | None:
    """Return the first column that several of a file's could be."""
    times, alike = Counter(names), Counter(map(_key, names))
    return next((each for each in needed if (times[each] or alike[_key(each)]) > 1), None)


def _key(name: str) -> str:
    """A name whatever its case, its blanks and the form of its letters."""
    return composed(name).strip().casefold()


def _matching(names: Sequence[str], needed: Sequence[str]) -> dict[str, int]:
    """Return the place of each column that the file has: by its name, else by what `_key` leaves of it."""
    exact = {name: place for place, name in reversed(list(enumerate(names)))}
    loose = {_key(name): place for place, name in reversed(list(enumerate(names)))}
    found = {name: exact.get(name, loose.get(_key(name))) for name in needed}
    return {name: place for name, place in found.items() if place is not None}


def _lacking(names: Sequence[str], missing: Sequence[str]) -> str:
    """Say which columns a file lacks, and what it has instead."""
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    named = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing[:_NAMED])}{more}"
    words = f"the file lacks the {named}"
    shown = [printable(name) for name in names[:_NAMED]]
    close = difflib.get_close_matches(missing[0], names[:1000], 1) if len(missing[0]) < 100 else []
    if close:
        return f"{words}; did you mean “{printable(close[0])}” by {missing[0]}?"
    others = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{words}; its first line reads {', '.join(shown)}{others}"


def _by_position(names: Sequence[str], expected: Expected) -> Matched:
    person = None
    if expected.id_column:
        if names.count(expected.id_column) != 1:
            raise BadFormat(
                f"the file must have one column named {expected.id_column}, which tells people apart"
            )
        person = names.index(expected.id_column)
    rest = tuple(place for place in range(len(names)) if place != person)
    if len(rest) != len(expected.columns):
        raise BadFormat(f"the dataset has {len(expected.columns)} columns, but the file has {len(rest)}")
    return Matched(tuple(names), rest, person)
