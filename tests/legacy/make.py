"""Make a SQLite file and a PostgreSQL dump by the service of this tree.

`python -m tests.legacy.make revision-0036 periods` writes a folder of that name with such contents.
What is there stays as it is: make another folder, of what the older ones cannot hold, when a change of tables
or formats adds something.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import create_engine

import migrations
from benchmarks.harness.postgres import Server
from tests.legacy.contents import fill, fill_periods
from tests.legacy.snapshot import Stored, folders
from tests.support.service import House

Fill = Callable[[House], None]
#: What fills an empty service, by its name.
CONTENTS: dict[str, Fill] = {"everything": fill, "periods": fill_periods}


def main(target: str = "", contents: str = "") -> None:
    if not target.startswith("revision-") or target in folders() or contents not in CONTENTS:
        sys.exit(
            "name a new folder, for kept databases are never written anew, and what it holds: "
            f"revision-0036 {' or '.join(CONTENTS)}"
        )
    fill_it = CONTENTS[contents]
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/cairn.sqlite3"
        with _house(url, Path(folder)) as house:
            fill_it(house)
            Stored.write(target, "sqlite", _sqlite_file(folder), house)
    server = Server()
    try:
        name = server.create()
        with tempfile.TemporaryDirectory() as folder, _house(server.url(name), Path(folder)) as house:
            fill_it(house)
            Stored.write(target, "postgresql", _postgresql_dump(server, name), house)
    finally:
        server.close()


@contextmanager
def _house(url: str, folder: Path) -> Iterator[House]:
    """A service on a new database, in chunks that are small."""
    engine = create_engine(url)
    migrations.upgrade(engine)
    engine.dispose()
    with closing(House(url, folder, chunk_bytes=4096)) as house:
        yield house


def _sqlite_file(folder: str) -> bytes:
    copy = Path(folder) / "copy"
    with sqlite3.connect(f"{folder}/cairn.sqlite3") as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    return copy.read_bytes()


def _postgresql_dump(server: Server, name: str) -> bytes:
    """Plain SQL with INSERT statements, which any client can execute."""
    command = [str(server.bin / "pg_dump"), "--no-owner", "--no-privileges", "--inserts", server.dsn(name)]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Newer versions of pg_dump write commands for psql, which are no SQL.
    return "".join(line for line in dump.splitlines(True) if not line.startswith("\\")).encode()


if __name__ == "__main__":
    main(*sys.argv[1:3])
