"""How a file is read is a public fact: declared or confirmed, seen by everybody, kept in receipts."""

from __future__ import annotations

from typing import Any

import pytest

from service.operations.database import Database
from service.operations.tables import Dataset
from tests.support.service import House

EXPORT = {"encoding": "windows-1252", "separator": ";", "decimal": ","}
CONTENT = "a;b\n1,5;1\n2;2,5\n".encode("cp1252")


def reading(house: House, **given: Any) -> dict[str, Any]:
    """Edit a draft's reading and return what it is then."""
    answer = house.carla.call("PATCH", "/v1/datasets/flowers", json={"reading": given})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["reading"]
    return found


def test_text_is_read_as_utf8_with_commas_points_and_a_header_unless_declared(small_house: House) -> None:
    made = small_house.create().json()
    assert made["reading"] == {
        "format": 2, "encoding": "utf-8", "separator": ",", "decimal": ".", "thousands": "",
        "quoted_lines": False, "header": True, "confirmed_from_rows": [],
    }  # fmt: skip
    assert not any("file is read" in warning for warning in made["warnings"])


def test_a_reading_from_rows_is_a_public_fact_in_the_audit_log_and_in_receipts(small_house: House) -> None:
    small_house.create(reading={**EXPORT, "confirmed_from_rows": ["decimal"]})
    assert small_house.upload(CONTENT).status_code == 200
    small_house.grant()
    facts = small_house.ada.get("/v1/datasets/flowers").json()
    assert facts["reading"]["confirmed_from_rows"] == ["decimal"]
    assert any("taken from the rows" in warning for warning in facts["warnings"])
    (event,) = (
        event
        for event in small_house.carla.get("/v1/audit").json()["items"]
        if event["action"] == "create-dataset"
    )
    assert event["details"]["reading"] == facts["reading"]
    job = small_house.submit().json()["id"]
    assert small_house.work()
    small_house.clock.move(3600)
    receipt = small_house.ada.get(f"/v1/jobs/{job}/receipt").json()
    assert receipt["reading"] == facts["reading"]
    (answer,) = (
        each["answer"] for each in receipt["explanation"] if "taken from the rows" in each["question"]
    )
    assert answer == "how the file is read (decimal)."


def test_a_fact_from_rows_stays_marked_until_it_is_changed(small_house: House) -> None:
    small_house.create(reading={**EXPORT, "confirmed_from_rows": ["decimal", "encoding"]})
    assert reading(small_house, **EXPORT)["confirmed_from_rows"] == ["decimal", "encoding"]
    assert reading(small_house, **{**EXPORT, "decimal": "."})["confirmed_from_rows"] == ["encoding"]


def test_rows_are_thrown_away_when_they_would_be_read_otherwise(small_house: House) -> None:
    small_house.create(reading=EXPORT)
    small_house.check(CONTENT)
    confirmed = reading(small_house, **EXPORT, confirmed_from_rows=["decimal"])
    assert confirmed["confirmed_from_rows"] == ["decimal"]
    assert small_house.carla.get("/v1/datasets/flowers").json()["upload"] is not None
    reading(small_house, separator=";", decimal=",")
    facts = small_house.carla.get("/v1/datasets/flowers").json()
    assert (facts["upload"], facts["revised"]) == (None, ["reading"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"decimal": ",", "thousands": ","}, "must differ"),
        ({"separator": "::"}, "separator"),
        ({"encoding": "ebcdic"}, "encoding"),
        ({"from_rows": ["decimal"]}, "from_rows"),
    ],
)
def test_a_reading_that_means_nothing_is_refused(
    small_house: House, given: dict[str, Any], words: str
) -> None:
    refused = small_house.create(reading=given)
    assert refused.status_code == 422
    assert words in refused.text


def _forget_reading(database: Database) -> None:
    with database.write() as session:
        dataset = session.query(Dataset).filter_by(name="flowers").one()
        dataset.reading = None


def test_a_dataset_of_an_earlier_version_says_that_its_file_was_read_by_inference(small_house: House) -> None:
    small_house.create()
    small_house.upload(b"a,b\n1,1\n2,2\n")
    _forget_reading(small_house.database)
    facts = small_house.carla.get("/v1/datasets/flowers").json()
    assert facts["reading"]["format"] == 1
    assert any("read by an earlier version" in warning for warning in facts["warnings"])


def test_a_draft_with_rows_of_an_earlier_version_must_be_uploaded_again(small_house: House) -> None:
    small_house.create()
    small_house.check(b"a,b\n1,1\n2,2\n")
    _forget_reading(small_house.database)
    refused = small_house.seal()
    assert refused.status_code == 409
    assert refused.json()["next"] == "Upload the file again."
    small_house.check(b"a,b\n1,1\n2,2\n")
    assert small_house.seal().status_code == 200


def test_declaring_a_reading_deletes_rows_that_an_earlier_version_read(small_house: House) -> None:
    small_house.create()
    small_house.check(b"a,b\n1,1\n2,2\n")
    _forget_reading(small_house.database)
    assert reading(small_house)["format"] == 2
    assert small_house.carla.get("/v1/datasets/flowers").json()["upload"] is None


def test_a_refusal_that_asks_what_was_meant_ends_with_its_question_mark(small_house: House) -> None:
    small_house.create(columns=["amount"], bounds={"box": {"low": [0], "high": [9]}})
    detail = small_house.upload(b"amount;note\n1;2\n").json()["detail"]
    assert "? The file was read as its dataset declares" in detail
