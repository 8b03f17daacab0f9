"""Make a SQLite file and a PostgreSQL dump with a bit of everything, by the service of this tree.

`python -m tests.legacy.make revision-0019` writes a folder of that name. What is there stays as it is: make
another folder when a change of tables or formats adds something that the older ones cannot hold.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sqlalchemy import create_engine

import migrations
from benchmarks.harness.postgres import Server
from tests.legacy.contents import fill
from tests.legacy.snapshot import Stored, folders
from tests.support.service import House


def main(target: str) -> None:
    if not target.startswith("revision-") or target in folders():
        sys.exit("name a new folder, such as revision-0019: kept databases are never written anew")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/cairn.sqlite3"
        _make(target, "sqlite", url, Path(folder), lambda: _sqlite_file(folder))
    server = Server()
    try:
        name = server.create()
        with tempfile.TemporaryDirectory() as folder:
            dump = partial(_postgresql_dump, server, name)
            _make(target, "postgresql", server.url(name), Path(folder), dump)
    finally:
        server.close()


def _make(target: str, kind: str, url: str, folder: Path, dump: Callable[[], bytes]) -> None:
    engine = create_engine(url)
    migrations.upgrade(engine)
    engine.dispose()
    house = House(url, folder, chunk_bytes=4096)
    fill(house)
    Stored.write(target, kind, dump(), house)
    house.close()
    sys.stdout.write(f"{kind} written\n")


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
    main(*sys.argv[1:2] or [""])
