"""Nothing but released values tells neighbours in a period apart: not a byte, a refusal, a version or a time.

Two datasets differ in one contributor: in one record of one period, in all periods, in the only record of a
period, or in either version of one that is corrected. Runs take longer on one of them. An analyst reads,
plans and asks all along, while the owner tries again and again to seal the correction.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from service.operations.states import DatasetState
from service.operations.tables import Dataset, Period
from service.workers import execution
from tests.fuzz.test_side_channels import CHUNK, Watcher, dense_rows
from tests.support.bits import inject_bytes
from tests.support.service import DOUBTS, House

MONTHS = ("2026-01", "2026-02", "2026-03")
#: Names the second version of the month that is corrected.
CORRECTED = "2026-02"
CORRECTION = f"{CORRECTED} corrected"
#: So many rows each period and the correction have on one side; see `dense_rows`.
ROWS = {"2026-01": CHUNK, CORRECTED: 40, CORRECTION: 50, "2026-03": 1}
#: Those that differ on the other side.
NEIGHBOURS = {
    "one record, across a chunk": {"2026-01": CHUNK + 1},
    "none and one": {"2026-03": 0},
    "an outlier before the correction": {CORRECTED: -41},
    "an outlier in the correction": {CORRECTION: -51},
}
#: A person with a row in every period and version.
EVERYWHERE = "one in every period"
PERSON = {label: count + 1 for label, count in ROWS.items()}
#: Shares of the planned time after which each run ends on one side and on the other.
ENDS = (0.05, 0.8)
#: Those after which the analyst looks again, and the owner tries to seal: also while only one run has ended.
MOMENTS = (0.5, 1.0)
JOB = {"k": 2, "algorithm": "sulq", "delta": "0"}


@pytest.fixture(scope="module")
def house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("periods")
    shutil.copy(sqlite_template, folder / "cairn.sqlite3")
    with closing(House(f"sqlite:///{folder / 'cairn.sqlite3'}", folder, chunk_bytes=4096)) as made:
        yield made


class PeriodWatcher(Watcher):
    """Ada, who writes down what she is told about a dataset with periods, and its owner Carla, who seals."""

    def __init__(self, house: House, dataset: str) -> None:
        super().__init__(house, dataset)
        self.periods = f"/v1/datasets/{dataset}/periods"
        self.jobs: list[str] = []

    def asked(self, epsilon: str, **periods: Any) -> dict[str, Any]:
        return {"dataset": self.dataset, **JOB, "epsilon": epsilon, **periods}

    def submit(self, epsilon: str, **periods: Any) -> int:
        answer = self.ask("POST", "/v1/jobs", json=self.asked(epsilon, **periods))
        if answer.status_code == 202:
            self.jobs.append(answer.headers["location"])
        return int(answer.status_code)

    def look(self) -> None:
        """Read everything, and ask for what does not fit and for a period that is not there."""
        about = f"/v1/datasets/{self.dataset}"
        for path in (about, f"{about}/ledger", self.periods, f"{self.periods}/{CORRECTED}"):
            self.ask("GET", path)
        self.ask("GET", "/v1/jobs", params={"dataset": self.dataset})
        for job in self.jobs:
            for part in ("", "/receipt", "/result", "/transcript"):
                self.ask("GET", job + part, released=part == "/result")
        self.ask("POST", "/v1/plans", json=self.asked("0.4"))
        assert self.submit("0.4") == 409
        assert self.submit("0.1", periods=["2026-04"]) == 422

    def run(self, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the worker carry out a job that ends after a share of its planned time; look all along."""
        clock, start = self.house.clock, self.house.clock.moment
        real: Callable[..., Any] = execution.execute
        held = self.house.worker.claim()
        assert held is not None

        def look_until(last: float, after: float = 0.0) -> None:
            for moment in MOMENTS:
                if after <= moment < last:
                    clock.moment = start + moment * held.planned
                    self.look()
                    self.seal_correction()

        def paced(*arguments: Any) -> Any:
            look_until(share)
            clock.moment = start + share * held.planned
            return real(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(execution, "execute", paced)
            assert self.house.worker.carry_out(held)
        look_until(math.inf, share)

    def seal_correction(self) -> None:
        answer = seal(self.house, self.dataset, CORRECTED)
        self.told.append([answer.status_code, answer.json().get("type"), answer.json().get("version")])


def seal(house: House, dataset: str, label: str) -> Any:
    """Seal a draft; an empty one as versions did that did not refuse to."""
    with house.database.write() as session:
        of_dataset = (
            select(Period).join(Dataset, Dataset.id == Period.dataset_id).where(Dataset.name == dataset)
        )
        drafts = of_dataset.where(Period.label == label, Period.state == DatasetState.DRAFT)
        for draft in session.scalars(drafts):
            if draft.upload is not None:
                draft.upload = {**draft.upload, "rows": draft.upload["rows"] or 1}
    return house.carla.post(f"/v1/datasets/{dataset}/periods/{label}/seal", {"confirm": list(DOUBTS)})


def file_of(unit: str, count: int) -> bytes:
    """So many rows; of as many people, where the dataset has an id column."""
    head, *lines = dense_rows(count).decode().splitlines()
    if unit != "record":
        head, lines = f"{head},who", [f"{line},p{place}" for place, line in enumerate(lines)]
    return "\n".join([head, *lines, ""]).encode()


def prepare(house: House, dataset: str, unit: str, rows: Mapping[str, int]) -> None:
    """Three periods that ada may use, one of them with a correction that is not sealed."""
    ids = {} if unit == "record" else {"id_column": "who", "rows_per_person": 2}
    assert house.create(dataset, unit=unit, **ids).status_code == 201
    periods = f"/v1/datasets/{dataset}/periods"

    def upload(label: str, count: int) -> None:
        sent = house.carla.call("PUT", f"{periods}/{label}/data", content=file_of(unit, count))
        assert sent.status_code == 200, sent.text

    for label in MONTHS:
        assert house.carla.post(periods, {"label": label}).status_code == 201
        upload(label, rows[label])
        assert seal(house, dataset, label).status_code == 200
    assert house.carla.post(f"{periods}/{CORRECTED}/correction").status_code == 201
    upload(CORRECTED, rows[CORRECTION])
    assert house.grant("ada", dataset, "0.9").status_code == 200


def told(
    house: House,
    dataset: str,
    unit: str,
    rows: Mapping[str, int],
    share: float,
    monkeypatch: pytest.MonkeyPatch,
) -> list[Any]:
    """Everything that ada is told around a job before the correction, and one that waits for it."""
    prepare(house, dataset, unit, rows)
    inject_bytes(monkeypatch, 11)
    watcher = PeriodWatcher(house, dataset)
    assert watcher.submit("0.5", periods={"from": CORRECTED}) == 202
    assert watcher.submit("0.2") == 202
    for _ in watcher.jobs:
        watcher.run(share, monkeypatch)
    return watcher.told


@pytest.mark.parametrize(
    ("unit", "changed"),
    [*(("record", changed) for changed in NEIGHBOURS), ("person", "none and one"), ("person", EVERYWHERE)],
)
def test_only_released_values_tell_neighbours_in_a_period_apart(
    house: House, monkeypatch: pytest.MonkeyPatch, unit: str, changed: str
) -> None:
    changes = NEIGHBOURS.get(changed, PERSON)
    number = f"{unit}-{len(changed)}"
    sides = zip(("left-", "right"), (ROWS, {**ROWS, **changes}), ENDS, strict=True)
    left, right = (
        told(house, f"{side}-{number}", unit, rows, share, monkeypatch) for side, rows, share in sides
    )
    assert [each for each in left if len(each) == 3][:3] == [
        [409, "/problems/cannot-seal", None],
        [200, None, 2],
        [409, "/problems/already-sealed", None],
    ]
    assert ('"largest_range":{"from":"2026-01","to":"2026-01"}' in str(left)) == (unit == "record")
    assert len(left) == len(right)
    assert [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]] == []
