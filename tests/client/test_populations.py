"""Populations on the command line: created, joined, shared, shown and raised."""

from __future__ import annotations

import uuid

import pytest

from cairn_client.commands.common import ExitCode
from tests.support.command import cairn, sentence
from tests.support.live import Live


@pytest.mark.usefixtures("as_curator")
def test_a_dataset_joins_a_population_and_is_seen_in_it(live: Live) -> None:
    name, owned = f"people-{uuid.uuid4().hex[:8]}", live.dataset()
    cairn("population", "create", name, "--epsilon", "0.5", "--delta", "1e-6", "--accountant", "sum")
    assert "No dataset is in it yet" in cairn("population", "show", name).stderr
    refused = cairn("population", "join", name, owned.name, "--yes", code=ExitCode.REFUSED)
    assert "has no id column" in sentence(refused)
    joined = cairn("population", "join", name, owned.name, "--one-row-per-person", stdin="y\n")
    assert f"{owned.name} is in {name}, which has epsilon 0.5" in joined.stdout
    assert owned.name in cairn("population", "show", name).stdout
    assert name in cairn("population", "list").stdout
    assert name in cairn("dataset", "show", owned.name).stdout
    planned = cairn("plan", owned.name, "-k", "2", "--epsilon", "0.3").stdout
    assert f"It costs one person of the population {name} epsilon 0.3" in " ".join(planned.split())
    asked = ("submit", owned.name, "-k", "2", "--epsilon", "0.6")
    assert f"in the population {name}" in sentence(cairn(*asked, code=ExitCode.BUDGET))
    assert "1" in cairn("population", "budget", name, "--epsilon", "1").stdout
    shared = cairn("population", "share", name, "nobody", code=ExitCode.REFUSED)
    assert "no curator named nobody" in sentence(shared)
