"""Public rows with the client and with the command, against a real service."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cairn_client import BadFormat
from tests.support.command import as_json, cairn
from tests.support.live import Live


def test_public_rows_are_attached_from_an_array_and_detached(live: Live) -> None:
    owned = live.dataset()
    rows = np.random.default_rng(1).uniform([0, 0], [10, 4], size=(30, 2))
    facts = owned.set_public_rows(rows).public_rows
    assert facts is not None
    assert facts.rows == 30
    assert live.analyst().dataset(owned.name).facts.public_rows == facts
    with pytest.raises(BadFormat, match="between 20 and"):
        owned.set_public_rows(rows[:5])
    mine = live.analyst().dataset(owned.name)
    asked = mine.plan(2, "0.1", public_rows=False)
    assert asked.plan["inputs"].keys() == {"domain"}
    owned.remove_public_rows()
    assert owned.facts.public_rows is None


@pytest.mark.usefixtures("place", "as_curator")
def test_public_rows_are_attached_on_the_command_line_after_a_question(live: Live, place: Path) -> None:
    owned = live.dataset()
    (place / "open.csv").write_text("a,b\n" + "1,2\n3,1\n" * 20)
    assert "has no public rows" in cairn("dataset", "public-rows", owned.name).stdout
    cairn("dataset", "public-rows", owned.name, "open.csv", code=1)
    assert owned.refresh().public_rows is None
    made = as_json("dataset", "public-rows", owned.name, "open.csv", "--yes")
    assert made["public_rows"]["rows"] == 40
    assert "40 rows, SHA-256" in cairn("dataset", "show", owned.name).stdout
    assert "has no public rows" in cairn("dataset", "public-rows", owned.name, "--remove").stdout
