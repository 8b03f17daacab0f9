"""Settings from the environment: what is wrong with one is said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli import app
from service.operations.settings import Settings


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"CAIRN_PORT": "a-secret"}, "Wrong setting: CAIRN_PORT: Input should be a valid integer"),
        (
            {"CAIRN_MODE": "production", "CAIRN_METRICS_TOKEN": "a-secret"},
            "Wrong setting: production mode refuses a guessable CAIRN_METRICS_TOKEN",
        ),
        (
            {"CAIRN_MODE": "production", "CAIRN_CLUSTER": "tcp://a-secret:8786"},
            "Wrong setting: production mode refuses a cluster without TLS",
        ),
    ],
)
@pytest.mark.parametrize("command", ["serve", "worker", "health"])
def test_a_wrong_setting_ends_every_command_with_a_sentence_that_hides_its_value(
    command: str, settings: dict[str, str], sentence: str
) -> None:
    done = CliRunner().invoke(app, [command], env=settings)
    assert done.exit_code == 1
    assert done.stderr.startswith(sentence)
    assert "a-secret" not in done.output


def test_a_kubernetes_service_named_cairn_does_not_change_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_PORT", "tcp://10.96.0.12:80")
    monkeypatch.setenv("CAIRN_PORT_80_TCP_ADDR", "10.96.0.12")
    monkeypatch.setenv("CAIRN_SERVICE_HOST", "10.96.0.12")
    assert Settings().port == 8000


@pytest.mark.parametrize("command", ["bootstrap", "prune", "serve --no-migrate", "worker"])
def test_a_database_that_is_not_migrated_ends_a_command_with_a_sentence(command: str, tmp_path: Path) -> None:
    settings = {
        "CAIRN_DATABASE_URL": f"sqlite:///{tmp_path / 'empty.sqlite3'}",
        "CAIRN_RETENTION_DAYS": "30",
    }
    done = CliRunner().invoke(app, command.split(), env=settings)
    assert done.exit_code == 1
    assert done.stderr == (
        "The database of this service is not ready: its tables are missing or of an earlier version; "
        "run `cairn-server migrate`.\n"
    )


def test_a_folder_that_cannot_be_made_ends_the_service_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = {
        "CAIRN_DATABASE_URL": f"sqlite:///{tmp_path / 'cairn.sqlite3'}",
        "CAIRN_SPOOL_DIRECTORY": str(tmp_path / "file" / "spool"),
    }
    done = CliRunner().invoke(app, ["serve", "--workers", "0"], env=settings)
    assert done.exit_code == 1
    assert done.stderr.endswith(f"Cannot use {tmp_path / 'file' / 'spool'}: Not a directory.\n")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"CAIRN_DATABASE_URL": "nonsense a-secret"}, "Wrong setting: CAIRN_DATABASE_URL"),
        ({"CAIRN_DATABASE_PASSWORD_FILE": "/nowhere/password"}, "Cannot use /nowhere/password: No such file"),
        (
            {"CAIRN_DATABASE_URL": "postgresql+psycopg://cairn:a-secret@127.0.0.1:1/cairn"},
            "The database does not answer: connection failed",
        ),
    ],
)
def test_a_database_that_cannot_be_used_ends_a_command_with_a_sentence(
    settings: dict[str, str], sentence: str
) -> None:
    done = CliRunner().invoke(app, ["migrate"], env=settings)
    assert done.exit_code == 1
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == 1
    assert "a-secret" not in done.output
