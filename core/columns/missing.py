"""Missing values in text: the spellings that programs and people use."""

#: Nobody's id is written like this, and no value of a column is.
_NOTHING = ("", "nan", "null", "none", "<na>", "nat")
#: These may be somebody's id (initials, say), but no value of a column.
_NO_VALUE = ("na", "n/a", "#n/a")
#: No spelling is longer, so that most texts need not be compared.
_LONGEST = 4


def is_missing_id(text: str) -> bool:
    """Whether a text without surrounding blanks names nobody."""
    return len(text) <= _LONGEST and text.casefold() in _NOTHING


def is_missing(text: str) -> bool:
    """Whether a text without surrounding blanks marks a missing value of a column."""
    return len(text) <= _LONGEST and text.casefold() in (*_NOTHING, *_NO_VALUE)
