"""Uploads that are made to do damage are refused in a sentence; memory, disk and time stay bounded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from assurance.fuzz.files import (
    ARROW,
    BOMBS,
    CSV,
    GOOD,
    HOSTILE,
    LONG_TEXTS,
    MIB,
    as_arrow,
    as_parquet,
    damaged,
)
from core.data import Dense
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.arrow_sizes import unpacked_sizes
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.readers.columns import match_columns
from service.datasets.ingest.spool import Spool
from service.operations.settings import Settings
from tests.support.service import House

DOMAIN = Dense.box([0, 0], [10, 4], ["a", "b"], size=1000)
LIMITS = Settings(chunk_bytes=MIB, max_upload_bytes=64 * MIB)


@pytest.fixture(scope="module")
def bounded(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service that takes uploads of at most 8 MiB."""
    folder = tmp_path_factory.mktemp("bounded")
    (folder / "cairn.sqlite3").write_bytes(sqlite_template.read_bytes())
    made = House(f"sqlite:///{folder / 'cairn.sqlite3'}", folder, max_upload_bytes=8 * MIB)
    yield made
    made.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_refused_in_a_sentence(bounded: House, name: str) -> None:
    kind, content, facts = HOSTILE[name]
    dataset = f"hostile-{list(HOSTILE).index(name)}"
    assert bounded.create(dataset, **facts).status_code == 201
    answer = bounded.upload(content, dataset, kind)
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] in ("/problems/bad-format", "/problems/bad-rows")
    assert bounded.carla.get(f"/v1/datasets/{dataset}").json()["state"] == "draft"


@pytest.mark.parametrize("name", BOMBS)
def test_little_file_that_unpacks_to_a_lot_is_too_large(bounded: House, name: str) -> None:
    kind, content, facts = BOMBS[name]
    assert len(content) < MIB
    dataset = f"bomb-{list(BOMBS).index(name)}"
    assert bounded.create(dataset, **facts).status_code == 201
    answer = bounded.upload(content, dataset, kind)
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")


@pytest.mark.parametrize("name", GOOD)
def test_damaged_file_never_makes_the_service_stumble(bounded: House, name: str) -> None:
    kind, content, facts = GOOD[name]
    dataset = name.replace(" ", "-")
    assert bounded.create(dataset, **facts).status_code == 201
    assert bounded.upload(content, dataset, kind).status_code == 200
    chance = random.Random(7)
    wrong, draft = [], ""
    for number in range(40):
        if not draft:
            draft = f"{dataset}-{number}"
            assert bounded.create(draft, **facts).status_code == 201
        sent = damaged(content, chance)
        answer = bounded.upload(sent, draft, kind)
        if answer.status_code == 200:  # the damage did not matter; the next file needs another draft
            draft = ""
        elif answer.status_code not in (413, 415, 422):
            wrong.append((answer.status_code, sent))
    assert wrong == []


@pytest.mark.parametrize("run", range(5))
def test_rows_after_a_bad_one_are_all_there(run: int) -> None:
    # The fast reader, given up at the bad row, goes on reading ahead for a while in a thread of its own.
    spool = Spool(None, 64 * MIB)
    spool.write(b"a,b,c\nx\n" + (b"1,2," + b"c" * 1020 + b"\n") * (4 * 1024))
    encoded = encode(Upload(spool, CSV, Expected(DOMAIN), LIMITS, True))
    assert (encoded.chunk_file.rows, encoded.found.bad_rows) == (4 * 1024, 1)
    encoded.close()
    spool.close()


def test_two_readers_of_one_file_do_not_move_each_other() -> None:
    spool = Spool(None, MIB)
    spool.write(b"0123456789")
    one, two = spool.open(), spool.open()
    assert one.read(4) == b"0123"
    assert two.read(2) == b"01"
    spool.close()
    assert one.read() == b"456789"
    assert two.seek(-1, 2) == 9
    assert two.read(1 << 60) == b"9"
    one.close()
    two.close()


@pytest.mark.both_databases
def test_a_long_text_in_a_typed_file_is_an_unknown_level_of_its_record_alone(bounded: House) -> None:
    kind, content, facts = LONG_TEXTS
    assert bounded.create("long-texts", **facts).status_code == 201
    answer = bounded.check(content, "long-texts", kind)
    assert answer.status_code == 200, answer.text
    (column,) = [each for each in answer.json()["columns"] if each["name"] == "b"]
    assert (column["unknown"], len(column["examples"][0])) == (3, 40)


def test_names_that_are_no_text_are_shown_as_such(house: House) -> None:
    for number, (kind, content) in enumerate(
        [
            (CSV, b"a,b,\xff\x01\n1,1,1\n"),
            ("application/parquet", as_parquet({"a": [1.0], "b": [1.0], "\0\x7f" + "n" * 1000: [1]})),
        ]
    ):
        house.create(f"names-{number}", reading={"encoding": "latin-1"})
        answer = house.upload(content, f"names-{number}", kind)
        assert answer.status_code == 200, answer.text
        (ignored,) = answer.json()["ignored_columns"]
        assert ignored.startswith(("\ufffd\ufffd", "ÿ\ufffd"))
        assert len(ignored) <= 128


def test_compressed_arrow_of_either_form_is_read(bounded: House) -> None:
    rows = np.arange(3000) % 4
    for number, (form, packing) in enumerate([(True, "lz4"), (False, "zstd"), (True, None)]):
        content = as_arrow({"b": rows, "extra": ["x"] * 3000, "a": rows}, file_form=form, compression=packing)
        bounded.create(f"packed-{number}")
        answer = bounded.upload(content, f"packed-{number}", ARROW)
        assert (answer.status_code, answer.json().get("rows")) == (200, 3000)


def test_sizes_of_batches_are_read_off_before_they_are_unpacked() -> None:
    million = np.zeros(1_000_000)
    content = as_arrow({"a": million, "b": million}, compression="zstd")
    assert len(content) < 10_000
    assert sum(unpacked_sizes(pa.py_buffer(content))) >= 16_000_000
    assert sum(unpacked_sizes(pa.py_buffer(as_arrow({"a": million})))) == 0


def test_many_columns_are_matched_in_one_go() -> None:
    # Counting each name among all of them took minutes.
    names = [f"c{place}" for place in range(100_000)]
    domain = Dense.box(0, 1, names, size=10)
    assert match_columns(names, Expected(domain)).positions[-1] == 99_999
