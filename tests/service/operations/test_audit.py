"""Acts of the audit log in sentences."""

from __future__ import annotations

from typing import Any

import pytest

from service.operations import audit
from service.operations.database import Database
from tests.support.service import START


@pytest.mark.parametrize(
    ("action", "details", "words"),
    [
        ("retire", {"withdrawn_jobs": 2}, "retired the dataset and deleted its rows"),
        (
            "grant",
            {"analyst": "ada", "epsilon": "1", "delta": "0", "kinds": ["cluster", "profile"]},
            "granted ada a cap of epsilon 1, delta 0, for cluster, profile",
        ),
        ("edit-draft", {"changed": [], "reading": None}, "changed the description of the draft"),
        (
            "create-dataset",
            {
                "epsilon": "1",
                "delta": "0",
                "confirmed_from_rows": {"age": ["low", "high"]},
                "reading": {"confirmed_from_rows": ["decimal"]},
            },
            "created the dataset with epsilon 1, delta 0; confirmed as public, though taken from rows: "
            "low, high of age; how the file is read (decimal)",
        ),
    ],
)
def test_an_act_is_a_sentence(action: str, details: dict[str, Any], words: str) -> None:
    assert audit.in_words(action, details) == words


def test_an_act_without_words_is_not_recorded(database: Database) -> None:
    with pytest.raises(KeyError), database.write() as session:
        audit.record(session, "unheard-of", actor="carla", at=START)
