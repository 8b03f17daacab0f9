"""A job that leaves k open is paid for once, and answers for every k without rows and without the ledger."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, event, func, select

from service.jobs.results import transcripts
from service.operations.tables import DatasetChunk, LedgerEntry, Result, StoredAnswer
from tests.support.service import House, table

RANGE = {"from": 1, "to": 6}


@pytest.fixture(scope="module")
def house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house with a job on its rows that left k open; the rows are gone."""
    folder = tmp_path_factory.mktemp("answers")
    shutil.copy(sqlite_template, folder / "cairn.sqlite3")
    with closing(House(f"sqlite:///{folder / 'cairn.sqlite3'}", folder)) as made:
        made.create("flowers", budget={"epsilon": "100", "delta": "0.01"})
        made.upload(table(200), "flowers")
        made.grant("ada", "flowers", "100", "0.01")
        made.submit("2", k=3)
        run(made)
        answer = made.submit("2", k=RANGE, algorithm="auto")
        assert answer.status_code == 202, answer.text
        run(made)
        with made.database.write() as session:
            session.execute(delete(DatasetChunk))
        yield made


def run(house: House) -> None:
    house.clock.move(1)
    assert house.work()
    house.clock.move(3600)


def entries(house: House) -> int:
    with house.database.read() as session:
        return session.scalar(select(func.count()).select_from(LedgerEntry)) or 0


def opened(house: House) -> str:
    """The id of the job that left k open."""
    found = house.ada.get("/v1/jobs").json()["items"]
    return next(str(job["id"]) for job in found if job["request"]["k"] == RANGE and not job["rehearsal"])


def get(house: House, path: str, **headers: str) -> Any:
    answer = house.ada.get(f"/v1/jobs/{opened(house)}/{path}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def test_the_result_is_that_of_the_suggested_k_and_lists_the_others(house: House) -> None:
    found = get(house, "result").json()
    assert found["range"]["suggested"] == len(found["centres"]) == found["level"]["k"]
    assert [point["k"] for point in found["range"]["curve"]] == [1, 2, 3, 4, 5, 6]
    assert f"k = {found['range']['suggested']}" in found["range"]["reason"]


def test_every_k_is_answered_and_charged_to_nobody(house: House) -> None:
    before = entries(house)
    for k in range(1, 7):
        found = get(house, f"result?k={k}").json()
        assert len(found["centres"]) == len(found["sizes"]) == len(found["level"]["real"]) == k
        assert found["level"]["loss"] == found["range"]["curve"][k - 1]["loss"]
        for low, centre, high in zip(
            found["level"]["centre_low"], found["centres"], found["level"]["centre_high"], strict=True
        ):
            assert (np.array(low) <= centre).all()
            assert (centre <= np.array(high)).all()
    assert entries(house) == before


def test_another_k_takes_one_read_of_its_answer_and_neither_ledger_nor_rows(house: House) -> None:
    """Work is counted, not timed: nothing is derived, and nothing else of the job's answers is loaded."""
    job = opened(house)
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(house.database.engine, "before_cursor_execute", note)
    try:
        assert house.ada.get(f"/v1/jobs/{job}/result?k=5").status_code == 200
    finally:
        event.remove(house.database.engine, "before_cursor_execute", note)
    touched = " ".join(statements)
    assert sum("SELECT answers.payload" in each for each in statements) == 1
    assert "FROM jobs" in touched
    assert "FROM results" in touched
    assert not any(table in touched for table in ("dataset_chunks", "ledger", "accounts", "transcript"))
    assert not any(verb in touched for verb in ("INSERT", "UPDATE", "DELETE"))


def test_tables_and_arrays_have_the_k_that_was_asked_for(house: House) -> None:
    centres = get(house, "result?k=4").json()["centres"]
    array = np.load(io.BytesIO(get(house, "result?k=4", Accept="application/x-npy").content))
    np.testing.assert_array_equal(array, centres)
    lines = get(house, "result?k=4", Accept="text/csv").text.splitlines()
    assert len(lines) == 5
    assert lines[0] == "cluster,a,b,size,size_low,size_high,a_low,a_high,b_low,b_high"


def test_made_up_rows_are_labelled_the_same_each_time_and_inside_the_bounds(house: House) -> None:
    first, more = get(house, "sample?n=20").json(), get(house, "sample?n=50").json()
    assert first["made_up"] is True
    assert len(first["rows"]) == 20
    assert more["rows"][:20] == first["rows"]
    array = np.load(io.BytesIO(get(house, "sample?n=10000", Accept="application/x-npy").content))
    np.testing.assert_array_equal(array[:20], first["rows"])
    assert len(get(house, "sample?n=20", Accept="text/csv").text.splitlines()) == 21


@pytest.mark.parametrize("path", ["result?k=7", "result?k=0", "sample?n=0", "sample?n=10001"])
def test_what_was_not_released_is_not_answered(house: House, path: str) -> None:
    assert house.ada.get(f"/v1/jobs/{opened(house)}/{path}").status_code in (404, 422)


def test_a_rehearsal_runs_on_the_made_up_rows_of_a_release_and_is_free(house: House) -> None:
    """The rows are gone; the mean of one cluster is that of the made-up rows, at an epsilon without noise."""
    job, before = opened(house), entries(house)
    asked: dict[str, Any] = {
        "k": 1,
        "algorithm": "summit",
        "delta": "0.001",
        "rehearsal": True,
        "rehearse_on": job,
    }
    answer = house.submit("50", **asked)
    assert answer.status_code == 202, answer.text
    assert (answer.json()["cost"]["epsilon"], answer.json()["request"]["rehearse_on"]) == ("0", job)
    run(house)
    rehearsed = f"/v1/jobs/{answer.json()['id']}"
    found = house.ada.get(f"{rehearsed}/result").json()
    assert found["rehearsal"] is True
    made_up = np.array(get(house, "sample?n=10000").json()["rows"])
    np.testing.assert_allclose(found["centres"][0], made_up[:1000].mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(found["sizes"], [1000], atol=20)
    assert entries(house) == before
    receipt = house.ada.get(f"{rehearsed}/receipt").json()
    assert receipt["statement"].startswith(f"A rehearsal on the made-up rows of job {job}: it read no data")


def test_a_rehearsal_needs_made_up_rows_that_its_analyst_can_see(house: House) -> None:
    job = opened(house)
    single = house.ada.get("/v1/jobs").json()["items"][-1]["id"]
    assert house.submit(rehearsal=True, rehearse_on=single).status_code == 422
    assert house.submit(rehearse_on=job).status_code == 422
    assert house.submit(rehearsal=True, rehearse_on="0" * 36).status_code == 404
    house.grant("ben", "flowers", "1", "0.01")
    assert house.submit(who=house.ben, rehearsal=True, rehearse_on=job).status_code == 404


def test_everything_shown_is_computed_again_from_the_transcript(house: House) -> None:
    result, receipt = get(house, "result").json(), get(house, "receipt").json()
    again = transcripts.replay(receipt, get(house, "transcript").content)
    assert {name: result[name] for name in again} == again
    assert {"level", "range"} <= again.keys()


def test_a_receipt_names_the_range_and_not_the_number_of_fine_clusters(house: House) -> None:
    receipt = get(house, "receipt").json()
    assert receipt["citation"].startswith(
        "Centres for every k from 1 to 6 (k-means) of the dataset “flowers”"
    )
    assert "none of which is a record" in receipt["explanation"][0]["answer"]


def planned(house: House, who: Any, **changed: Any) -> Any:
    body = {"dataset": "flowers", "k": 3, "epsilon": "1", **changed}
    answer = who.post("/v1/plans", body)
    assert answer.status_code == 200, answer.text
    return answer.json()["earlier"]


def test_a_plan_is_told_what_an_earlier_release_of_the_caller_states(house: House) -> None:
    found = planned(house, house.ada)
    assert (found["job"], found["k"], found["epsilon"]) == (opened(house), 3, "2")
    assert found["sentence"].startswith("Your release at epsilon 2, with what clipping and noise may hide")
    assert 0 <= found["uncertain"] <= 3
    assert planned(house, house.ada, k={"from": 1, "to": 32})["k"] == 6
    level = get(house, "result?k=3").json()["level"]
    ends = (np.array(level["centre_high"]) - level["centre_low"]) / [10, 4]  # of columns 10 and 4 wide
    assert found["uncertain"] == int((np.linalg.norm(ends, axis=1) > np.array(level["spreads"]) / 2).sum())


def test_a_plan_is_told_of_a_release_once_it_is_shown_and_not_before(small_house: House) -> None:
    small_house.create("flowers", budget={"epsilon": "100", "delta": "0.01"})
    small_house.upload(table(200), "flowers")
    small_house.grant("ada", "flowers", "100", "0.01")
    assert small_house.submit("2", k={"from": 1, "to": 3}, algorithm="auto").status_code == 202
    small_house.clock.move(1)
    assert small_house.work()
    assert planned(small_house, small_house.ada) is None
    small_house.clock.move(3600)
    assert planned(small_house, small_house.ada)["k"] == 3


def test_a_plan_is_told_nothing_of_what_others_released_or_of_another_clustering(house: House) -> None:
    house.grant("ben", "flowers", "1", "0.01")
    assert planned(house, house.ben) is None
    assert planned(house, house.carla) is None
    assert planned(house, house.ada, objective="medians") is None


def test_a_single_k_answers_in_the_shape_it_always_had(house: House) -> None:
    job = house.ada.get("/v1/jobs").json()["items"][-1]["id"]  # the oldest
    found = house.ada.get(f"/v1/jobs/{job}/result").json()
    assert not {"level", "range"} & found.keys()
    assert house.ada.get(f"/v1/jobs/{job}/result?k=3").json() == found
    assert house.ada.get(f"/v1/jobs/{job}/sample").status_code == 422


def test_clusters_of_a_single_k_are_merged_without_rows_and_without_the_ledger(house: House) -> None:
    job, before = house.ada.get("/v1/jobs").json()["items"][-1]["id"], entries(house)
    whole = house.ada.get(f"/v1/jobs/{job}/result").json()
    for k in (1, 2):
        found = house.ada.get(f"/v1/jobs/{job}/result?k={k}").json()
        groups = found["merged"]["groups"]
        assert (found["merged"]["of"], len(groups)) == (3, k)
        assert sorted(each for group in groups for each in group) == [0, 1, 2]
        for group, centre, size in zip(groups, found["centres"], found["sizes"], strict=True):
            assert size == pytest.approx(sum(whole["sizes"][each] for each in group))
            parts = np.array([whole["centres"][each] for each in group])
            assert (parts.min(axis=0) <= np.array(centre) + 1e-9).all()
            assert (np.array(centre) - 1e-9 <= parts.max(axis=0)).all()
        largest = max(map(len, groups))
        assert found["noise"]["size"] == pytest.approx(whole["noise"]["size"] * largest**0.5)
        lines = house.ada.get(f"/v1/jobs/{job}/result?k={k}", headers={"Accept": "text/csv"}).text
        assert len(lines.splitlines()) == k + 1
    assert house.ada.get(f"/v1/jobs/{job}/result?k=4").status_code == 422
    assert entries(house) == before


@pytest.mark.parametrize(
    "asked",
    [
        {"k": {"from": 3, "to": 2}, "algorithm": "auto"},
        {"k": {"from": 1, "to": 65}, "algorithm": "auto"},
        {"k": {"from": 1}},
        {"k": RANGE, "objective": "medians", "algorithm": "auto"},
        {"k": RANGE, "algorithm": "sulq"},
    ],
)
def test_a_range_that_cannot_be_served_is_refused_and_costs_nothing(
    house: House, asked: dict[str, Any]
) -> None:
    before = entries(house)
    assert house.submit("1", **asked).status_code == 422
    assert entries(house) == before


def test_an_answer_is_a_bounded_number_of_bytes(house: House) -> None:
    with house.database.read() as session:
        found = session.execute(select(StoredAnswer.k, func.length(StoredAnswer.payload))).all()
    stored = {int(k): int(size) for k, size in found}
    # -2 and -1: the centres and the merges of the job of a single k
    assert sorted(stored) == [-2, -1, 0, 1, 2, 3, 4, 5, 6]
    assert max(size for k, size in stored.items() if k) < 10_000


def shown_centres(house: House, job: str, k: int | None) -> Any:
    query = "" if k is None else f"?k={k}"
    return house.ada.get(f"/v1/jobs/{job}/result{query}").json()["centres"]


def question_about(house: House, job: str, k: int | None, centres: Any) -> int:
    """The status of a plan about clusters that must have these centres, to the last bit."""
    digest = hashlib.sha256(np.array(centres, dtype="<f8").tobytes()).hexdigest()
    named = {"job": job, "k": k, "digest": digest}
    body = {"dataset": "flowers", "kind": "profile", "epsilon": "0.1", "clusterings": [named]}
    return house.carla.post("/v1/plans", body).status_code


def test_a_plan_about_clusters_has_the_centres_that_are_shown(house: House) -> None:
    single = house.ada.get("/v1/jobs").json()["items"][-1]["id"]  # the oldest
    for job, k in ((single, None), (single, 3), (single, 2), (opened(house), None), (opened(house), 4)):
        assert question_about(house, job, k, shown_centres(house, job, k)) == 200
    assert question_about(house, single, 4, [[0, 0]]) == 422
    assert question_about(house, opened(house), 7, [[0, 0]]) == 422


def test_a_plan_about_clusters_reads_arrays_and_the_json_of_earlier_versions_alone(house: House) -> None:
    """The JSON of a result may have half a million numbers, and whoever parses it keeps everybody waiting."""
    job = house.ada.get("/v1/jobs").json()["items"][-1]["id"]
    centres = shown_centres(house, job, None)
    with house.database.write() as session:
        result = session.get_one(Result, job)
        body, result.body = result.body, {}
    assert question_about(house, job, None, centres) == 200
    with house.database.write() as session:
        session.get_one(Result, job).body = body
        arrays = session.get_one(StoredAnswer, (job, -2))
        payload = arrays.payload
        session.delete(arrays)
    assert question_about(house, job, None, centres) == 200
    with house.database.write() as session:
        session.add(StoredAnswer(job_id=job, k=-2, payload=payload))
