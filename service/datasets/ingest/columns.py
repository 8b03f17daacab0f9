"""Match a file's columns with those of the dataset."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from service.datasets.ingest.batch import Expected
from service.errors import BadFormat

_NAMED = 10
_MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Matched:
    """Positions in the file of the dataset's columns, of the id column, and the names of other columns."""

    positions: tuple[int, ...]
    person: int | None
    ignored: tuple[str, ...]


def match_columns(names: Sequence[str], expected: Expected) -> Matched:
    """Find the dataset's columns among a file's; BadFormat names what is missing or ambiguous."""
    if len(names) > _MOST_COLUMNS:
        raise BadFormat(f"the file has more than {_MOST_COLUMNS} columns; is the separator a comma?")
    needed = [*expected.columns, *([expected.id_column] if expected.id_column else [])]
    by_name = {name: place for place, name in reversed(list(enumerate(names)))}
    missing = [name for name in needed if name not in by_name]
    if missing and expected.positional:
        return _by_position(names, expected)
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise BadFormat(
            f"the file lacks the columns {', '.join(missing[:_NAMED])}{more}; name every column of the "
            "dataset in the header",
            missing_columns=missing[:_NAMED],
        )
    times = Counter(names)
    double = [name for name in needed if times[name] > 1]
    if double:
        raise BadFormat(f"the file has more than one column named {double[0]}; rename or remove one")
    person = by_name[expected.id_column] if expected.id_column else None
    taken = {by_name[name] for name in needed}
    ignored = tuple(name for place, name in enumerate(names) if place not in taken)
    return Matched(tuple(by_name[name] for name in expected.columns), person, ignored)


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
    return Matched(rest, person, ())
