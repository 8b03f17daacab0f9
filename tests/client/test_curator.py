"""The curator's story with the Python client, against a real service."""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas
import pytest

from cairn_client import (
    AlreadySealed,
    BadFormat,
    BadRows,
    CannotSeal,
    Client,
    InvalidRequest,
    NotFound,
    Retired,
    Unauthorized,
    ball,
    box,
)
from tests.support.live import Live


def test_a_file_is_streamed_with_progress_to_its_end(live: Live, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("b,note,a\n" + "1.25,something longer to fill the file,2.5\n" * 20_000)
    owned = live.dataset(rows=None)
    told: list[tuple[int, int]] = []
    report = owned.upload(file, progress=lambda sent, total: told.append((sent, total)))
    assert (report.rows, report.ignored_columns) == (20_000, ["note"])
    assert [sent for sent, _ in told] == sorted({sent for sent, _ in told})
    assert told[-1] == (file.stat().st_size, file.stat().st_size)
    assert len(told) > 2


def test_an_array_and_an_open_file_are_uploaded(live: Live, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).uniform(0, 4, size=(50, 2))
    assert live.dataset(rows=None).upload(rows).rows == 50
    np.save(tmp_path / "rows.npy", rows)
    with (tmp_path / "rows.npy").open("rb") as file:
        assert live.dataset(rows=None).upload(file).format == "npy"


def test_a_data_frame_is_uploaded_with_its_types(live: Live) -> None:
    owned = live.curator().create_dataset(
        f"frame-{uuid.uuid4().hex[:8]}",
        columns=["whole", "real", "flag"],
        bounds=box([0, 0, 0], [9, 9, 1]),
        size=3,
        epsilon=1,
        rows_per_person=2,
        id_column="who",
    )
    frame = pandas.DataFrame(
        {
            "flag": [True, False, True],
            "who": pandas.Categorical(["ada", "ada", "eve"]),
            "note": ["a, b", 'say "x"', ""],
            "real": np.array([0.1, 1e-7, 8.5], dtype=np.float32),
            "whole": pandas.array([1, 2, 3], dtype="Int64"),
        },
        index=[7, 8, 9],
    )
    report = owned.upload(frame)
    assert (report.rows, report.clipped_rows, report.ignored_columns) == (3, 0, ["note"])


def test_a_missing_value_of_a_data_frame_is_named(live: Live) -> None:
    frame = pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "b": [1.0, 2.0]})
    with pytest.raises(BadRows, match="line 2: a is"):
        live.dataset(rows=None).upload(frame)


def test_a_list_of_rows_is_uploaded_and_what_is_no_table_is_refused(live: Live) -> None:
    assert live.dataset(rows=None).upload([[1.0, 2.0], [3.0, 4.0]]).rows == 2
    with pytest.raises(TypeError, match=r"upload takes a path, .* not this dict"):
        live.dataset(rows=None).upload({"a": [1.0]})


def test_sites_in_a_data_frame_are_read_by_column_name(live: Live) -> None:
    owned = live.dataset()
    swapped = pandas.DataFrame({"b": [1.0, 3.0], "a": [9.0, 9.5], "name": ["x", "y"]})
    assert owned.put_sites("depots", swapped).width == 2  # as b, a they would lie outside the bounds
    with pytest.raises(ValueError, match="lack the columns b"):
        owned.put_sites("depots", swapped[["a"]])


def test_bad_rows_are_named_and_nothing_is_stored(live: Live) -> None:
    owned = live.dataset(rows=None)
    with pytest.raises(BadRows, match="line 3") as refusal:
        owned.upload(b"a,b\n1,2\nx,3\n", kind="text/csv")
    assert refusal.value.lines[0]["line"] == 3
    assert owned.refresh().state == "draft"
    assert owned.upload(b"a,b\n1,2\nx,3\n", kind="text/csv", on_bad_row="drop").bad_rows == 1


def test_a_file_that_lacks_a_column_is_refused(live: Live) -> None:
    with pytest.raises(BadFormat, match="lacks the column b"):
        live.dataset(rows=None).upload(b"a,c\n1,2\n", kind="text/csv")


def test_a_refusal_that_comes_before_the_body_is_read_is_understood(live: Live) -> None:
    sealed = live.dataset()
    with pytest.raises(AlreadySealed):
        sealed.upload(b"a,b\n" + b"1.5,2.5\n" * 2_000_000, kind="text/csv")


def test_rows_are_sealed_at_once_or_after_a_look(live: Live) -> None:
    owned = live.dataset(rows=None)
    with pytest.raises(CannotSeal, match="3 rows, but the size was declared as 400") as refusal:
        owned.upload([[1.0, 2.0]] * 3, seal=True)
    assert [doubt["confirm"] for doubt in refusal.value.doubts] == ["size"]
    report = owned.facts.upload
    assert report is not None
    assert [doubt.confirm for doubt in report.doubts] == ["size"]
    assert owned.edit(size=3).revised == ["size"]
    assert owned.seal().state == "sealed"


def test_a_draft_is_emptied_and_discarded(live: Live) -> None:
    owned = live.dataset(rows=None)
    owned.upload([[1.0, 2.0]])
    owned.throw_away_rows()
    assert owned.facts.upload is None
    owned.discard()
    with pytest.raises(NotFound):
        owned.refresh()


def test_grants_are_given_moved_and_withdrawn(live: Live) -> None:
    owned = live.dataset(cap="1")
    assert (
        owned.grant("analyst", "1.5", "0.00005").cap.remaining.epsilon == owned.grants()[0].cap.total.epsilon
    )
    owned.revoke("analyst")
    assert owned.grants()[0].revoked_at is not None


def test_an_amount_that_is_not_named_keeps_its_value_in_a_grant(live: Live) -> None:
    owned = live.dataset(cap="1")
    moved = owned.grant("analyst", epsilon="1.5").cap.declared
    assert (moved.epsilon, moved.delta) == (Decimal("1.5"), Decimal("0.00005"))
    moved = owned.grant("analyst", delta="0.00002").cap.declared
    assert (moved.epsilon, moved.delta) == (Decimal("1.5"), Decimal("0.00002"))


def test_a_new_grant_needs_an_epsilon_and_has_no_delta_unless_one_is_named(live: Live) -> None:
    owned = live.dataset(rows=None)
    with pytest.raises(ValueError, match="a new grant needs an epsilon"):
        owned.grant("analyst", delta="0.00001")
    assert owned.grant("analyst", "0.5").cap.declared.delta == 0


def test_raising_epsilon_leaves_delta_as_it_is(live: Live) -> None:
    raised = live.dataset(epsilon="2").raise_budget("3").budget.declared
    assert raised.epsilon == 3
    assert raised.delta == Decimal("0.0001")


def test_a_budget_is_raised_and_never_lowered(live: Live) -> None:
    owned = live.dataset(epsilon="2")
    assert owned.raise_budget(3, "0.0001").budget.total.epsilon == 3
    with pytest.raises(InvalidRequest, match="only be raised"):
        owned.raise_budget(1, "0.0001")


def test_the_ledger_verifies_and_the_audit_log_remembers(live: Live) -> None:
    owned = live.dataset()
    report = owned.verify_ledger()
    assert report.ok
    assert [row.kind for row in owned.ledger()] == ["open", "cap"]
    acts = [entry.action for entry in live.curator().audit(owned.name)]
    assert {"create-dataset", "upload", "grant"} <= set(acts)


def test_a_new_principal_s_keys_work_until_they_are_revoked(live: Live) -> None:
    curator = live.curator()
    name = f"person-{uuid.uuid4().hex[:8]}"
    made = curator.add_principal(name)
    assert Client(live.url, made.first_key.key).whoami().name == name
    second = curator.issue_key(name, label="laptop", expires_in_days=1)
    curator.revoke_key(name, made.first_key.id)
    with pytest.raises(Unauthorized):
        Client(live.url, made.first_key.key).whoami()
    theirs = next(each for each in curator.principals() if each.name == name)
    assert {key.id: key.revoked_at is None for key in theirs.keys} == {
        made.first_key.id: False,
        second.id: True,
    }
    curator.disable_principal(name)
    with pytest.raises(Unauthorized):
        Client(live.url, second.key).whoami()


def test_a_retired_dataset_keeps_its_ledger_and_nothing_else(live: Live) -> None:
    owned = live.dataset()
    assert owned.retire().state == "retired"
    assert owned.refresh().state == "retired"
    with pytest.raises(Retired):
        live.analyst().dataset(owned.name).plan(k=2, epsilon="0.1")
    assert owned.ledger()


def test_bounds_of_every_kind_are_understood(live: Live) -> None:
    curator = live.curator()
    tag = uuid.uuid4().hex[:8]
    common = {"size": 100, "epsilon": 1}
    round_one = curator.create_dataset(f"ball-{tag}", bounds=ball(3.0), dimension=4, **common)  # type: ignore[arg-type]  # loose dict
    assert round_one.facts.dimension == 4
    wide = curator.create_dataset(f"box-{tag}", bounds=box(0, 1), dimension=3, **common)  # type: ignore[arg-type]  # loose dict
    assert wide.facts.bounds["box"]["high"] == [1.0, 1.0, 1.0]


def test_public_sites_are_stored_and_listed(live: Live) -> None:
    owned = live.dataset()
    assert owned.put_sites("depots", [[1.0, 1.0], [9.0, 3.0]]).count == 2
    owned.put_sites("towns", [[1.0, 1.0], [9.0, 3.0]], "great-circle")
    assert [(each.name, each.kind) for each in owned.sites()] == [
        ("depots", "coordinates"),
        ("towns", "great-circle"),
    ]
