"""Names and texts that look like others are refused when declared; files may hold them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx import Response
from sqlalchemy import select

from service.operations import audit
from service.operations.tables import Dataset
from tests.support.service import House

BUDGET = {"epsilon": "3", "delta": "0.00001"}
HIDDEN = {
    "\u200b": "U+200B (ZERO WIDTH SPACE)",
    "\u202e": "U+202E (RIGHT-TO-LEFT OVERRIDE)",
    "\ufeff": "U+FEFF (ZERO WIDTH NO-BREAK SPACE)",
    "\u00ad": "U+00AD (SOFT HYPHEN)",
    "\x85": "U+0085 (a control character)",
    "\u2028": "U+2028 (LINE SEPARATOR)",
    "\u3164": "U+3164 (HANGUL FILLER)",
}


def table(name: str = "city", level: str = "Zürich") -> dict[str, Any]:
    columns = [{"name": name, "kind": "category", "levels": [level, "north"]}]
    return {"name": "places", "table": columns, "size": 100, "budget": BUDGET}


def problem(answer: Response) -> tuple[str, str]:
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    return error["where"], error["problem"]


@pytest.mark.parametrize("sign", HIDDEN, ids=HIDDEN.get)
def test_an_invisible_character_is_named(house: House, sign: str) -> None:
    text = f"pa{sign}y"
    words = f"must not have the invisible character {HIDDEN[sign]}: remove it from “pa\ufffdy”"
    asked = [
        ("table", table(name=text)),
        ("table", table(level=text)),
        ("description", {**table(), "description": text}),
    ]
    for where, body in asked:
        assert problem(house.carla.post("/v1/datasets", body)) == (where, words)


def test_every_declared_text_is_checked(house: House) -> None:
    house.ready()
    assert house.create("draft").status_code == 201
    job = house.submit("0.1").json()["id"]
    text, words = "Zu\u0308rich", "must be in Unicode's composed form (NFC): write U+00FC"
    changes: dict[str, Any] = {
        "columns": ["a", text], "id_column": text, "table": table(level=text)["table"], "description": text
    }  # fmt: skip
    asked = {where: patched(house, "draft", {where: value}) for where, value in changes.items()}
    grant, note = "/v1/datasets/flowers/grants/ada", f"/v1/jobs/{job}/note"
    asked |= {each: house.carla.put(grant, {"epsilon": "1", each: text}) for each in ("purpose", "permit")}
    asked |= {each: house.ada.put(note, {each: f"the city of {text}"}) for each in ("name", "note")}
    for where, answer in asked.items():
        found, said = problem(answer)
        assert (found, said[: len(words)]) == (where, words)
    assert house.ada.put(note, {"note": "two\nlines\tof Zürich, 東京, مرحبا"}).is_success


def test_a_file_may_compose_names_and_levels_in_either_way(house: House) -> None:
    assert house.carla.post("/v1/datasets", table(name="größe")).status_code == 201
    lines = "\n".join(["gro\u0308ße", *["Zürich", "Zu\u0308rich", "north"] * 40]).encode()
    report = house.check(lines, "places").json()
    assert (report["rows"], report["columns"]) == (120, [])
    sent = house.carla.call("POST", "/v1/previews", content=lines, headers={"Content-Type": "text/csv"})
    (proposed,) = sent.json()["columns"]
    assert (proposed["name"], proposed["levels"]) == ("größe", ["north", "Zürich"])


def test_what_is_stored_already_is_still_read_and_edited(house: House) -> None:
    assert house.carla.post("/v1/datasets", table()).status_code == 201
    with house.database.write() as session:
        dataset = session.scalars(select(Dataset).where(Dataset.name == "places")).one()
        text = json.dumps(dataset.domain).replace("north", "no\\u200brth").replace("city", "ci\\u200bty")
        dataset.domain = json.loads(text)
        audit.record(session, "edit-draft", actor="carla", at=house.clock.now(), dataset_id=dataset.id)
    facts = house.carla.get("/v1/datasets/places").json()
    assert facts["table"][0]["levels"][1] == "no\u200brth"
    assert patched(house, "places", {"size": 200}).status_code == 200
    report = house.check("ci\u200bty\nno\u200brth\nZürich\n".encode(), "places").json()
    assert report["rows"] == 2


def patched(house: House, name: str, changes: dict[str, Any]) -> Response:
    return house.carla.call("PATCH", f"/v1/datasets/{name}", json=changes)
