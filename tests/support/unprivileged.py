"""Start PostgreSQL as an ordinary user, make a database, stop: run as root, this becomes that user first."""

from __future__ import annotations

import os
import tempfile

from benchmarks.harness.postgres import Server, binaries, unprivileged_user


def main() -> None:
    tempfile.gettempdir()
    programs = binaries()  # this user may read the package, if it is root; the other one may not
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(unprivileged_user())
    server = Server(programs=programs)
    assert server.user is None
    try:
        server.create()
    finally:
        server.close()


if __name__ == "__main__":
    main()
