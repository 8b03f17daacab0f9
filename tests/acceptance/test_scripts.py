"""Back-up, restore and rotation of the password, as the scripts do them, on a real PostgreSQL.

The programs in the containers run on this machine instead: a stand-in for `docker` starts `pg_dump` and the
others against the test's server, and does what `docker compose run secrets` would in a folder of the test.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import yaml
from sqlalchemy import text

import migrations
from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import free_port
from service.operations import signing
from service.operations.database import Database
from service.operations.settings import Settings

ROOT = Path(__file__).parent.parent.parent

DOCKER = """#!{python}
import os, sys
verb, *words = [word for word in sys.argv[2:] if word not in ("--profile", "cluster")]
with open("{folder}/calls", "a") as calls:
    print(verb, *words[:1], file=calls)
if verb == "exec":
    service, program, *rest = [word for word in words if word != "-T"]
    assert service == "postgres"
    environment = dict(os.environ, PGHOST="{socket}", PGPORT="{port}")
    os.execve(os.path.join("{binaries}", program), [program, *rest], environment)
if verb == "run" and "worker" in words:
    command = words[words.index("worker") + 1:]
    os.execvp("sh", ["sh", *(word.replace("/var/lib/cairn/", "{folder}/") for word in command)])
if verb == "run":
    program = words[words.index("secrets") + 1].replace("/run/", "{folder}/")
    os.execv(sys.executable, [sys.executable, "-c", program])
if verb == "ps":
    print("api", "postgres", "worker", sep="\\n")
"""


@dataclass
class Deployment:
    """A database called cairn on a server that asks for a password, and a `docker` that reaches it."""

    server: Server
    folder: Path

    @property
    def settings(self) -> Settings:
        return Settings(
            database_url=f"postgresql+psycopg://cairn@127.0.0.1:{self.server.port}/cairn",
            database_password_file=self.folder / "cairn" / "database-password",
        )

    def run(self, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        command = [str(ROOT / "deploy" / script), *map(str, arguments)]
        return subprocess.run(
            command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )

    def write(self, name: str) -> None:
        """Leave a mark in the database."""
        with psycopg.connect(self.server.dsn("cairn"), autocommit=True) as connection:
            connection.execute("INSERT INTO marks VALUES (%s)", [name])

    def marks(self, database: str = "cairn") -> list[str]:
        with psycopg.connect(self.server.dsn(database)) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM marks ORDER BY name")]

    def databases(self) -> list[str]:
        with psycopg.connect(self.server.dsn("postgres")) as connection:
            found = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'cairn%'")
            return sorted(name for (name,) in found)

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


def new_keys(folder: Path) -> None:
    """Make the keys that the service `secrets` makes on a new machine."""
    (folder / "signing-key.pem").unlink(missing_ok=True)
    signing.make(folder / "signing-key.pem")
    (folder / "metrics-token").write_text(secrets.token_urlsafe(32))


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    server = Server(port=free_port())
    facts = {"python": sys.executable, "folder": tmp_path, "socket": server.directory, "port": server.port}
    (tmp_path / "docker").write_text(DOCKER.format(**facts, binaries=server.bin))
    (tmp_path / "docker").chmod(0o755)
    (tmp_path / "cairn").mkdir()
    (tmp_path / "cairn" / "database-password").write_text("the-first-password")
    new_keys(tmp_path / "cairn")
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE cairn")
        connection.execute("ALTER ROLE cairn PASSWORD 'the-first-password'")
    database = Database(server.url("cairn"))
    migrations.upgrade(database.engine)
    database.dispose()
    with psycopg.connect(server.dsn("cairn"), autocommit=True) as connection:
        connection.execute("CREATE TABLE marks (name text)")
    yield Deployment(server, tmp_path)
    server.close()


def can_connect(address: str) -> bool:
    database = Database(address)
    try:
        with database.engine.connect() as connection:
            return connection.execute(text("SELECT 1")).scalar() == 1
    except Exception:
        return False
    finally:
        database.dispose()


def test_a_back_up_is_restored_and_what_it_replaces_is_kept(deployment: Deployment, tmp_path: Path) -> None:
    deployment.write("before")
    made = deployment.run("backup.sh", tmp_path / "cairn.dump")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "cairn.dump").stat().st_mode & 0o777 == 0o600
    deployment.write("spent afterwards")
    (tmp_path / "ledgers").mkdir()
    (tmp_path / "ledgers" / "heads.jsonl").write_text("signed afterwards")
    done = deployment.run("restore.sh", tmp_path / "cairn.dump")
    assert done.returncode == 0, done.stderr
    (heads,) = (tmp_path / "ledgers").iterdir()
    assert (heads.read_text(), heads.name in done.stdout) == ("signed afterwards", True)
    assert heads.name != "heads.jsonl", "every verification would report the back-up"
    assert deployment.marks() == ["before"]
    database = Database(deployment.server.url("cairn"))
    with database.engine.connect() as connection:
        assert migrations.is_current(connection)
    database.dispose()
    (kept,) = [name for name in deployment.databases() if name != "cairn"]
    assert kept in done.stdout
    assert deployment.marks(kept) == ["before", "spent afterwards"]
    calls = [call for call in deployment.calls() if not call.startswith(("run", "exec"))]
    assert calls[0] == "stop api"


def test_keys_are_restored_on_another_machine_and_old_signatures_verify(
    deployment: Deployment, tmp_path: Path
) -> None:
    folder, kept = tmp_path / "cairn", tmp_path / "elsewhere.keys"
    signature = signing.load(folder / "signing-key.pem").sign("receipt", "a digest")
    token = (folder / "metrics-token").read_text()
    assert deployment.run("backup.sh", tmp_path / "cairn.dump", kept).returncode == 0
    assert kept.stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE KEY" not in (tmp_path / "cairn.dump").read_bytes()
    new_keys(folder)
    signed_meanwhile = signing.load(folder / "signing-key.pem").sign("receipt", "another digest")
    done = deployment.run("restore.sh", tmp_path / "cairn.dump", kept)
    assert done.returncode == 0, done.stderr
    keys = signing.load(folder / "signing-key.pem")
    assert keys.current == signature["key"]
    assert keys.verifies("receipt", "a digest", signature)
    assert keys.verifies("receipt", "another digest", signed_meanwhile)
    assert (folder / "metrics-token").read_text() == token
    assert (folder / "signing-key.pem").stat().st_mode & 0o777 == 0o400


def test_a_restore_on_the_same_machine_keeps_a_key_that_was_rotated_since(
    deployment: Deployment, tmp_path: Path
) -> None:
    """Somebody may have read the earlier one."""
    assert deployment.run("backup.sh", tmp_path / "cairn.dump").returncode == 0
    rotated = signing.rotate(tmp_path / "cairn" / "signing-key.pem").current
    assert deployment.run("restore.sh", tmp_path / "cairn.dump").returncode == 0
    assert signing.load(tmp_path / "cairn" / "signing-key.pem").current == rotated


def test_a_restore_without_the_keys_changes_nothing(deployment: Deployment, tmp_path: Path) -> None:
    assert deployment.run("backup.sh", tmp_path / "cairn.dump").returncode == 0
    (tmp_path / "cairn.dump.keys").unlink()
    deployment.write("afterwards")
    done = deployment.run("restore.sh", tmp_path / "cairn.dump")
    assert done.returncode == 1
    assert "cairn.dump.keys is missing" in done.stderr
    assert deployment.marks() == ["afterwards"]


def run_daily_backup(deployment: Deployment, folder: Path) -> str:
    """Run the service `backup` of the compose file until it waits for the next day; what it said."""
    (program,) = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["backup"]["command"]
    folder.mkdir(exist_ok=True)
    moved = {
        "$$": "$",
        "/var/lib/postgresql/data": str(folder),
        "/run/": f"{deployment.folder}/",
        "-h postgres": f"-h {deployment.server.directory} -p {deployment.server.port}",
        'sleep "$CAIRN_DAY_SECONDS"': "exit",
    }
    for here, there in moved.items():
        assert here in program
        program = program.replace(here, there)
    environment = {
        **os.environ,
        "PATH": f"{deployment.server.bin}:{os.environ['PATH']}",
        "CAIRN_BACKUP_COUNT": "2",
    }
    done = subprocess.run(
        ["sh", "-euc", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def test_the_daily_back_up_keeps_the_newest_and_can_be_restored(
    deployment: Deployment, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for day in (1, 2, 3):
        for suffix in ("", ".sha256"):
            (folder / f"cairn-2020010{day}T000000Z.dump{suffix}").write_text("old")
    deployment.write("before")
    said = run_daily_backup(deployment, folder)
    kept = sorted(path.name for path in folder.glob("*.dump"))
    assert kept[0] == "cairn-20200103T000000Z.dump"
    assert said == f"backed up to {kept[1]}\n"
    assert len(list(folder.iterdir())) == 4
    deployment.run("backup.sh", tmp_path / "other.dump", tmp_path / "keys")
    deployment.write("afterwards")
    done = deployment.run("restore.sh", folder / kept[1], tmp_path / "keys")
    assert done.returncode == 0, done.stderr
    assert deployment.marks() == ["before"]


def test_a_daily_back_up_that_fails_keeps_the_others_and_goes_on(
    deployment: Deployment, tmp_path: Path
) -> None:
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / "cairn-20200101T000000Z.dump").write_text("old")
    deployment.server.stop()
    assert "the back-up failed; the next is tried tomorrow" in run_daily_backup(
        deployment, tmp_path / "backups"
    )
    assert [path.name for path in (tmp_path / "backups").glob("*.dump")] == ["cairn-20200101T000000Z.dump"]


def test_a_damaged_back_up_changes_nothing(deployment: Deployment, tmp_path: Path) -> None:
    deployment.write("before")
    assert deployment.run("backup.sh", tmp_path / "cairn.dump").returncode == 0
    whole = (tmp_path / "cairn.dump").read_bytes()
    (tmp_path / "cairn.dump").write_bytes(whole[: len(whole) * 3 // 4])
    deployment.write("afterwards")
    assert deployment.run("restore.sh", tmp_path / "cairn.dump").returncode != 0
    assert deployment.marks() == ["afterwards", "before"]


def test_a_back_up_that_fails_leaves_the_last_one_alone(deployment: Deployment, tmp_path: Path) -> None:
    (tmp_path / "cairn.dump").write_text("the last one")
    deployment.server.stop()
    assert deployment.run("backup.sh", tmp_path / "cairn.dump").returncode != 0
    assert (tmp_path / "cairn.dump").read_text() == "the last one"
    assert [path.name for path in tmp_path.glob("cairn.dump*")] == ["cairn.dump"]


def test_the_password_is_changed_in_the_database_and_in_its_file(deployment: Deployment) -> None:
    before = deployment.settings.database_address()
    assert can_connect(before)
    done = deployment.run("rotate-password.sh")
    assert done.returncode == 0, done.stderr
    after = deployment.settings.database_address()
    assert can_connect(after)
    assert not can_connect(before)
    file = deployment.folder / "cairn" / "database-password"
    assert file.stat().st_mode & 0o777 == 0o440
    assert file.read_text() not in done.stdout + done.stderr
    assert [call for call in deployment.calls() if call.startswith("restart")] == [
        "restart api",
        "restart worker",
    ]


def test_a_rotation_that_was_interrupted_is_completed_by_the_next(deployment: Deployment) -> None:
    """The database has a new password, and the file has not."""
    with psycopg.connect(deployment.server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("ALTER ROLE cairn PASSWORD 'half-way'")
    assert not can_connect(deployment.settings.database_address())
    assert deployment.run("rotate-password.sh").returncode == 0
    assert can_connect(deployment.settings.database_address())
