"""Drafts: a report on the rows before they are sealed, and what can still be changed until then."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from service.operations.tables import AuditEvent, DatasetChunk
from tests.support.service import House, table

ROUGH = b"a,b\n1,1\n,2\n3,abc\n4,x\n5,x\n6,y\n7,z\n99,1\n-3,1\n-4,9\n"


def chunks(house: House) -> int:
    with house.database.read() as session:
        return session.scalar(select(func.count()).select_from(DatasetChunk)) or 0


def facts(house: House, name: str = "flowers") -> dict[str, Any]:
    found: dict[str, Any] = house.carla.get(f"/v1/datasets/{name}").json()
    return found


def test_an_upload_is_reported_by_column_and_seals_nothing(house: House) -> None:
    house.create(size=10)
    report = house.check(ROUGH, on_bad_row="drop").json()
    assert (report["rows"], report["bad_rows"], report["clipped_rows"]) == (4, 6, 3)
    assert report["columns"] == [
        {"name": "a", "missing": 1, "unreadable": 0, "unknown": 0, "below": 2, "above": 1, "examples": []},
        {"name": "b", "missing": 0, "unreadable": 5, "unknown": 0, "below": 0, "above": 1}
        | {"examples": ["abc", "x", "y"]},
    ]
    assert [doubt["confirm"] for doubt in report["doubts"]] == ["left-out", "clipped", "clipped"]
    assert facts(house)["state"] == "draft"
    house.grant()
    refused = house.submit()
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/not-sealed")


def test_sealing_asks_for_the_confirmation_of_every_doubt(house: House) -> None:
    house.create(size=10)
    house.check(ROUGH, on_bad_row="drop")
    refused = house.seal(confirm=["clipped"])
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/cannot-seal")
    assert [doubt["confirm"] for doubt in refused.json()["doubts"]] == ["left-out"]
    assert "6 of 10 rows were left out" in refused.json()["detail"]
    sealed = house.seal(confirm=["clipped", "left-out"])
    assert (sealed.status_code, sealed.json()["state"]) == (200, "sealed")


def test_good_rows_are_sealed_without_questions(house: House) -> None:
    house.create(size=200)
    assert house.check(table(200)).json()["doubts"] == []
    assert house.seal(confirm=[]).status_code == 200


def test_limits_that_rows_do_not_fit_are_named_before_sealing(house: House) -> None:
    house.create(size=200)
    assert not any("operator" in warning for warning in house.check(table(200)).json()["warnings"])
    tight = {"cache_bytes": 100, "job_seconds": 0.5}
    house.app.state.context.settings = house.settings.model_copy(update=tight)
    found = [warning for warning in house.check(table(200)).json()["warnings"] if "operator" in warning]
    assert "each pass over them reads the database" in found[0]
    assert "planned to take 0.75 seconds, but jobs may take 0.5" in found[1]


@pytest.mark.parametrize(
    ("size", "doubted"), [(1000, True), (601, True), (600, False), (67, False), (66, True)]
)
def test_a_size_wrong_by_more_than_a_factor_of_three_is_doubted(
    small_house: House, size: int, doubted: bool
) -> None:
    small_house.create(size=size)
    report = small_house.check(table(200)).json()
    assert [doubt["confirm"] for doubt in report["doubts"]] == ["size"] * doubted


def test_rows_outside_a_ball_are_doubted(small_house: House) -> None:
    small_house.create(size=4, columns=None, dimension=2, bounds={"ball": {"radius": 1}})
    report = small_house.check(b"x,y\n0,0\n5,5\n0,1\n1,0\n").json()
    assert [doubt["confirm"] for doubt in report["doubts"]] == ["clipped"]


@pytest.mark.parametrize("content", [b"a,b\n", b"a,b\nx,y\n", None])
def test_a_dataset_without_rows_is_never_sealed(house: House, content: bytes | None) -> None:
    house.create()
    if content is not None:
        assert house.check(content, on_bad_row="drop").json()["rows"] == 0
    refused = house.seal()
    assert (refused.status_code, refused.json()["doubts"]) == (409, [])
    assert "no rows to seal" in refused.json()["detail"]


def test_rows_of_another_report_are_not_sealed_and_a_lost_answer_may_be_asked_for_again(house: House) -> None:
    house.create(size=200)
    first = house.check(table(200)).json()["sha256"]
    second = house.check(table(201)).json()["sha256"]
    seal = "/v1/datasets/flowers/seal"
    assert house.carla.post(seal, {"sha256": first}).json()["type"] == "/problems/cannot-seal"
    for _ in range(2):
        assert house.carla.post(seal, {"sha256": second}).status_code == 200
    assert house.carla.post(seal, {"sha256": first}).json()["type"] == "/problems/already-sealed"
    assert house.carla.post(seal, {}).json()["type"] == "/problems/already-sealed"


@pytest.mark.both_databases
def test_another_upload_replaces_the_rows_of_a_draft(house: House) -> None:
    house.create(size=10)
    house.check(table(10))
    assert house.check(table(7)).json()["rows"] == 7
    house.seal()
    with house.database.read() as session:
        assert session.scalars(select(DatasetChunk.rows)).all() == [7]


def test_rows_of_a_draft_are_thrown_away_with_their_report(house: House) -> None:
    house.create()
    house.check(ROUGH, on_bad_row="drop")
    assert house.carla.delete("/v1/datasets/flowers/data").status_code == 204
    assert (facts(house)["upload"], chunks(house)) == (None, 0)
    assert house.upload(table(5)).status_code == 200
    assert house.carla.delete("/v1/datasets/flowers/data").json()["type"] == "/problems/already-sealed"


def test_a_discarded_draft_gives_its_name_up(house: House) -> None:
    house.create()
    house.grant()
    house.check(table(5))
    assert house.carla.delete("/v1/datasets/flowers").status_code == 204
    assert chunks(house) == 0
    for person in (house.carla, house.ada):
        assert person.get("/v1/datasets/flowers").status_code == 404
        assert person.get("/v1/datasets").json()["items"] == []
    assert house.create(size=3).status_code == 201
    assert house.ada.get("/v1/datasets/flowers").status_code == 404  # its grants went with it
    assert house.upload(table(5)).status_code == 200
    assert house.carla.delete("/v1/datasets/flowers").json()["type"] == "/problems/already-sealed"


def test_a_new_size_keeps_the_rows_and_new_bounds_throw_them_away(house: House) -> None:
    house.create(size=10_000)
    house.check(table(100))
    kept = house.carla.call("PATCH", "/v1/datasets/flowers", json={"size": 100}).json()
    assert (kept["size"], kept["upload"]["rows"], kept["upload"]["doubts"]) == (100, 100, [])
    bounds = {"box": {"low": [0, 0], "high": [9, 4]}}
    gone = house.carla.call("PATCH", "/v1/datasets/flowers", json={"bounds": bounds}).json()
    assert (gone["bounds"], gone["upload"], chunks(house)) == (bounds, None, 0)
    assert (gone["columns"], gone["size"]) == (["a", "b"], 100)


@pytest.mark.parametrize("look", ["nothing", "report", "refusal"])
def test_what_is_changed_after_a_look_at_the_rows_is_marked_for_everybody(house: House, look: str) -> None:
    house.create(size=10)
    if look == "report":
        house.check(table(10))
    if look == "refusal":
        assert house.check(ROUGH).status_code == 422
    bounds = {"box": {"low": [0, 0], "high": [9, 4]}}
    house.carla.call("PATCH", "/v1/datasets/flowers", json={"bounds": bounds, "description": "flowers"})
    house.upload(table(10))
    house.grant()
    marked = [] if look == "nothing" else ["bounds"]
    seen = house.ada.get("/v1/datasets/flowers").json()
    assert seen["revised"] == marked
    assert any("after a look at the rows: bounds" in words for words in seen["warnings"]) == bool(marked)
    job = house.submit().json()["id"]
    assert house.work()
    house.clock.move(3600)
    assert house.ada.get(f"/v1/jobs/{job}/receipt").json()["revised_after_a_look"] == marked
    with house.database.read() as session:
        sealed = session.scalars(select(AuditEvent).where(AuditEvent.action == "seal")).one()
    assert sealed.details == {"revised_after_a_look": marked}


def test_a_draft_is_edited_as_it_could_have_been_created(small_house: House) -> None:
    small_house.create()
    patch = "/v1/datasets/flowers"
    for wrong in (
        {"columns": ["a"]},
        {"rows_per_person": 2},
        {"id_column": "a"},
        {"size": 0},
        {"budget": {"epsilon": "9"}},
        {"bounds": {"box": {"low": [0, 0], "high": [10, 4]}, "ball": {"radius": 1}}},
    ):
        assert small_house.carla.call("PATCH", patch, json=wrong).status_code == 422, wrong
    changed = small_house.carla.call("PATCH", patch, json={"rows_per_person": 2, "id_column": "who"}).json()
    assert (changed["rows_per_person"], changed["privacy_unit"]) == (2, "person")
    sparse = {"bounds": {"sparse": {"radius": 2.0}}, "dimension": 6, "id_column": None, "rows_per_person": 1}
    assert small_house.create("words", columns=None, **sparse).status_code == 201
    words = small_house.carla.call("PATCH", "/v1/datasets/words", json={"dimension": 7}).json()
    assert (words["dimension"], words["bounds"]) == (7, {"sparse": {"radius": 2.0}})


def test_an_upload_for_facts_that_were_edited_meanwhile_is_refused(small_house: House) -> None:
    from service.datasets import drafts
    from service.datasets.ingest.readers.batch import Expected
    from service.errors import InvalidRequest
    from service.operations.tables import Dataset

    small_house.create()
    with small_house.database.read() as session:
        dataset = session.scalars(select(Dataset)).one()
    expected = Expected.of(dataset)
    small_house.carla.call("PATCH", "/v1/datasets/flowers", json={"bounds": {"box": {"low": 0, "high": 1}}})
    now = small_house.clock.now()
    with (
        pytest.raises(InvalidRequest, match="edited during the upload"),
        small_house.database.write() as session,
    ):
        drafts.store_rows(
            session, drafts.Place(dataset.id), expected, [], {"format": "csv"}, actor="carla", at=now
        )


def test_copies_of_values_are_in_no_log_and_gone_when_the_dataset_is_sealed(
    house: House, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    house.create()
    secret = b"a,b\n1,1\n2,patient-4711\n"
    assert "patient-4711" in house.check(secret).text  # refused, to the owner
    assert "patient-4711" in house.check(secret, on_bad_row="drop").text
    assert "patient-4711" in str(facts(house)["upload"])
    house.grant()
    assert house.ada.get("/v1/datasets/flowers").json()["upload"] is None
    assert house.seal().status_code == 200
    assert "patient-4711" not in str(facts(house))
    said = capsys.readouterr()
    assert "patient-4711" not in caplog.text + said.out + said.err
    assert "patient-4711" not in house.carla.get("/v1/audit").text


@pytest.mark.both_databases
def test_rows_that_nobody_seals_are_deleted_after_some_days(house: House) -> None:
    house.create("sealed")
    house.upload(table(3), "sealed")
    house.create()
    house.check(table(5))
    house.clock.move(6 * 86400)
    house.worker._delete_old()
    assert facts(house)["upload"]["rows"] == 5
    house.clock.move(2 * 86400)
    house.worker._next_deletion = 0.0
    house.worker._delete_old()
    assert facts(house)["upload"] is None
    assert (facts(house)["state"], chunks(house)) == ("draft", 1)
