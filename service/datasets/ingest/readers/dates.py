"""The order of year, month and day in a text file, detected in its first lines and stated in the report."""

from collections.abc import Iterable, Mapping, Sequence

from core.data import Date, DateTime, Table
from core.data.tables.reading import LOCAL_DATE
from service.datasets.ingest.findings import quoted
from service.errors import BadFormat

_WORDS = {"dmy": "day, month, year", "mdy": "month, day, year"}


def find_orders(table: Table, samples: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the order of each column of dates that declares none and is not in ISO 8601."""
    found = {}
    for column in table.stored:
        if isinstance(column, Date | DateTime) and column.order is None:
            order = _order(column.name, samples[column.name])
            if order is not None:
                found[column.name] = order
    return found


def in_words(orders: Mapping[str, str]) -> tuple[str, ...]:
    """Say which orders were recognised."""
    return tuple(f"{name} as {_WORDS[order]}" for name, order in orders.items())


def _order(name: str, texts: Iterable[str]) -> str | None:
    local = [
        text.strip() for text in texts if (found := LOCAL_DATE.match(text.strip())) and len(found[1]) < 4
    ]
    pairs = [(int(found[1]), int(found[2])) for text in local if (found := LOCAL_DATE.match(text))]
    if not pairs:
        return None
    day_first, month_first = any(a > 12 for a, _ in pairs), any(b > 12 for _, b in pairs)
    if day_first != month_first:
        return "dmy" if day_first else "mdy"
    if all("." in text for text in local):
        return "dmy"
    raise BadFormat(
        f"column {name}: the first lines do not show whether {quoted(local[0])} begins with the day or the "
        "month; declare the column's order of day, month and year: dmy or mdy"
    )
