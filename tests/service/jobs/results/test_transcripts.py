"""Anybody replays a job from its receipt and its transcript; there is no need of rows, or of the service."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sqlalchemy import delete, select, update
from typer.testing import CliRunner

from core.algorithms import registry
from core.errors import InvalidTranscript
from service.cli import app
from service.datasets import access
from service.jobs.results import receipts, transcripts
from service.operations.tables import Dataset, DatasetChunk, Result, TranscriptPart
from tests.support.privacy import example_options
from tests.support.service import House, table

BUDGET = {"epsilon": "1000", "delta": "0.01"}
#: Kinds of datasets; runs on tables are replayed in `tests/audit/test_without_rows.py`.
KINDS = ("dense", "sparse", "ids")
RELEASED = ("centres", "sizes", "noise", "intervals", "draws", "details")


@pytest.fixture(scope="module")
def lasting_house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("replayed")
    shutil.copy(sqlite_template, folder / "cairn.sqlite3")
    with closing(House(f"sqlite:///{folder / 'cairn.sqlite3'}", folder)) as made:
        yield made


def prepare(house: House, kind: str = "dense", name: str = "flowers") -> None:
    if kind == "dense":
        made, sent = house.create(name, budget=BUDGET), house.upload(table(200), name)
    elif kind == "sparse":
        bounds = {"sparse": {"radius": 2.0}}
        made = house.create(name, columns=None, dimension=6, bounds=bounds, budget=BUDGET)
        sent = house.upload(_sparse(), name, "application/x-npz")
    else:
        made = house.create(name, columns=None, bounds={"ids": {"count": 12}}, budget=BUDGET)
        sent = house.upload(b"site\n" + b"".join(b"%d\n" % (i % 12) for i in range(90)), name)
    assert (made.status_code, sent.status_code) == (201, 200), made.text + sent.text
    assert house.grant("ada", name, "1000", "0.01").status_code == 200


def _sparse() -> bytes:
    file = io.BytesIO()
    sp.save_npz(file, sp.csr_array(np.eye(90, 6)))
    return file.getvalue()


def run(house: House, **request: Any) -> str:
    answer = house.submit("1", **request)
    assert answer.status_code == 202, answer.text
    house.clock.move(1)
    assert house.work()
    house.clock.move(3600)
    return str(answer.headers["location"])


def work_for_a_moment(house: House) -> None:
    """Run a job to its end, before its result is shown."""
    held = house.worker.claim()
    assert held is not None
    house.clock.move(0.1)
    assert house.worker.carry_out(held)


def download(house: House, job: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    result, receipt, transcript = (house.ada.get(f"{job}/{part}") for part in PARTS)
    assert [each.status_code for each in (result, receipt, transcript)] == [200] * 3, transcript.text
    return result.json(), receipt.json(), transcript.content


PARTS = ("result", "receipt", "transcript")


def jobs() -> list[tuple[str, str, str]]:
    return [
        (name, objective, kind)
        for name in registry.names()
        for objective in registry.get(name).objectives
        for kind in registry.get(name).domains
        if kind in KINDS
    ]


@pytest.fixture(scope="module")
def finished(lasting_house: House) -> dict[Any, Any]:
    """A job of each kind; afterwards all rows are deleted."""
    house = lasting_house
    found: dict[Any, Any] = {}
    for kind in KINDS:
        prepare(house, kind, kind)
    for algorithm, objective, kind in jobs():
        with house.database.read() as session:
            domain = access.domain_of(session.scalars(select(Dataset).filter_by(name=kind)).one())
        options = example_options(registry.get(algorithm), domain)
        job = run(house, dataset=kind, algorithm=algorithm, objective=objective, options=options)
        found[algorithm, objective, kind] = download(house, job)
    with house.database.write() as session:
        session.execute(delete(DatasetChunk))
    return found


@pytest.mark.parametrize("job", jobs(), ids=" ".join)
def test_every_algorithm_is_replayed_after_its_rows_were_deleted(
    finished: dict[Any, Any], job: tuple[str, str, str], tmp_path: Path
) -> None:
    result, receipt, transcript = finished[job]
    paths = tmp_path / "receipt.json", tmp_path / "transcript"
    paths[0].write_text(json.dumps(receipt, indent=2))
    paths[1].write_bytes(transcript)
    answer = CliRunner().invoke(app, ["replay", *map(str, paths)])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout) == {name: result[name] for name in RELEASED if name in result}


@pytest.fixture(scope="module")
def two_jobs(lasting_house: House) -> list[tuple[dict[str, Any], bytes]]:
    """The receipts and transcripts of two jobs that were asked for alike."""
    prepare(lasting_house)
    return [download(lasting_house, run(lasting_house))[1:] for _ in range(2)]


def test_transcript_of_another_job_is_refused(two_jobs: list[tuple[dict[str, Any], bytes]]) -> None:
    (receipt, own), (_, other) = two_jobs
    assert transcripts.replay(receipt, own)["centres"]
    with pytest.raises(InvalidTranscript, match="another"):
        transcripts.replay(receipt, other)


def test_any_changed_byte_is_noticed(two_jobs: list[tuple[dict[str, Any], bytes]]) -> None:
    receipt, content = two_jobs[0]
    for place in range(0, len(content), max(1, len(content) // 200)):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(InvalidTranscript):
            transcripts.replay(receipt, bytes(changed))


def test_receipt_whose_digest_of_the_transcript_was_changed_is_refused(
    two_jobs: list[tuple[dict[str, Any], bytes]],
) -> None:
    (receipt, _), (other, content) = two_jobs
    with pytest.raises(InvalidTranscript, match="own digest"):
        transcripts.replay({**receipt, "transcript": other["transcript"]}, content)


def test_transcript_of_another_plan_is_refused_even_if_the_receipt_names_it(
    two_jobs: list[tuple[dict[str, Any], bytes]],
) -> None:
    receipt, content = two_jobs[0]
    forged = {**receipt, "plan_digest": "0" * 64}
    forged["digest"] = receipts.digest_of(forged)
    with pytest.raises(InvalidTranscript, match="another plan"):
        transcripts.replay(forged, content)


def test_command_says_why_it_did_not_replay(
    two_jobs: list[tuple[dict[str, Any], bytes]], tmp_path: Path
) -> None:
    paths = tmp_path / "receipt.json", tmp_path / "transcript"
    paths[0].write_text(json.dumps(two_jobs[0][0]))
    paths[1].write_bytes(two_jobs[1][1])
    answer = CliRunner().invoke(app, ["replay", *map(str, paths)])
    assert answer.exit_code == 1
    assert "not the transcript that the receipt names" in answer.output


@pytest.mark.both_databases
def test_transcript_is_streamed_in_parts_on_either_database(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "_PART_BYTES", 100)
    prepare(house)
    job = run(house)
    _, receipt, content = download(house, job)
    assert len(content) == receipt["transcript"]["bytes"] > 1000
    assert transcripts.replay(receipt, content)["centres"]
    with house.database.read() as session:
        longest = max(len(part) for part in session.scalars(select(TranscriptPart.payload)))
    assert longest == 100


def test_transcript_appears_when_the_result_does(small_house: House) -> None:
    prepare(small_house)
    job = small_house.submit("1").headers["location"]
    for state in ("queued", "stored, and not shown yet"):
        answers = [small_house.ada.get(f"{job}/{part}") for part in PARTS]
        assert [each.status_code for each in answers] == [404] * 3, state
        assert len({each.text for each in answers}) == 1
        if state == "queued":
            work_for_a_moment(small_house)
    small_house.clock.move(3600)
    assert [small_house.ada.get(f"{job}/{part}").status_code for part in PARTS] == [200] * 3


def test_job_that_its_curator_ended_leaves_no_transcript(small_house: House) -> None:
    prepare(small_house)
    job = small_house.submit("1").headers["location"]
    work_for_a_moment(small_house)
    assert small_house.carla.post(f"{job}/end").status_code == 200
    with small_house.database.read() as session:
        assert session.scalars(select(TranscriptPart)).all() == []
    small_house.clock.move(3600)
    assert small_house.ada.get(f"{job}/transcript").status_code == 409


def test_result_of_an_earlier_version_says_that_it_has_no_transcript(small_house: House) -> None:
    prepare(small_house)
    job = run(small_house)
    _, receipt, content = download(small_house, job)
    del receipt["transcript"]
    receipt["digest"] = receipts.digest_of(receipt)
    with small_house.database.write() as session:
        session.execute(update(Result).values(receipt=receipt))
        session.execute(delete(TranscriptPart))
    answer = small_house.ada.get(f"{job}/transcript")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")
    assert "no transcript" in answer.json()["detail"]
    with pytest.raises(InvalidTranscript, match="names no transcript"):
        transcripts.replay(receipt, content)


def test_transcript_beyond_the_limit_is_not_stored_and_the_receipt_says_so(
    sqlite_url: str, tmp_path: Path
) -> None:
    with closing(House(sqlite_url, tmp_path, transcript_bytes=1000)) as house:
        prepare(house)
        job = run(house)
        assert house.ada.get(f"{job}/receipt").json()["transcript"] is None
        assert house.ada.get(f"{job}/transcript").status_code == 404
