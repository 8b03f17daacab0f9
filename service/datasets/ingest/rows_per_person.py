"""Limit the rows per person; counts are kept on disk, so that memory does not grow with the people."""

import hashlib
import secrets
import sqlite3
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class RowsPerPerson:
    """Filter that keeps the first `most` rows of each person, in the order of the file.

    Which rows of one person are kept does not depend on anybody else's. Names are kept only as keyed
    hashes, in a temporary file without a name that goes with the process.
    """

    def __init__(self, most: int):
        self._most = most
        self._key = secrets.token_bytes(32)
        self._counts = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._counts.execute("PRAGMA journal_mode = OFF")
        self._counts.execute("CREATE TABLE people (name BLOB PRIMARY KEY, rows INTEGER) WITHOUT ROWID")
        self._counts.execute("BEGIN")

    def keep(self, people: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Mark which of the file's next rows are within their person's limit."""
        kept = np.empty(len(people), dtype=bool)
        statement = (
            "INSERT INTO people VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET rows = rows + 1 RETURNING rows"
        )
        for place, person in enumerate(people):
            hashed = hashlib.blake2b(person.encode("utf-8", "surrogateescape"), key=self._key, digest_size=16)
            (count,) = self._counts.execute(statement, (hashed.digest(),)).fetchone()
            kept[place] = count <= self._most
        return kept

    def close(self) -> None:
        """Delete the counts."""
        self._counts.close()
