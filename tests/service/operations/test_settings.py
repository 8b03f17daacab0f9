"""Settings from the environment: what is wrong with one is said in a sentence."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from service.cli import app


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"CAIRN_PORT": "a-secret"}, "Wrong setting: CAIRN_PORT: Input should be a valid integer"),
        (
            {"CAIRN_MODE": "production", "CAIRN_METRICS_TOKEN": "a-secret"},
            "Wrong setting: production mode refuses a guessable CAIRN_METRICS_TOKEN",
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
