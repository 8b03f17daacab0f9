"""A real service for tests of its clients: the demo of `make run`, as processes of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.harness.processes import server
from cairn_client import Client, Dataset, box

_ROWS = b"a,b\n" + b"\n".join(b"%d,%d" % (7 * i % 10, 3 * i % 4) for i in range(400)) + b"\n"


@dataclass(frozen=True)
class Live:
    """A running service with its demo dataset `visits` and the two keys of its demo."""

    url: str
    curator_key: str
    analyst_key: str
    #: Where the demo was started, with its directory `var`.
    home: Path

    def curator(self) -> Client:
        return Client(self.url, self.curator_key)

    def analyst(self) -> Client:
        return Client(self.url, self.analyst_key)

    def dataset(self, *, epsilon: str = "2", cap: str = "1", rows: bytes | None = _ROWS) -> Dataset:
        """A dataset of its own for one test, as its curator holds it; sealed and granted if it has rows."""
        name = f"test-{uuid.uuid4().hex[:12]}"
        made = self.curator().create_dataset(
            name,
            columns=["a", "b"],
            bounds=box([0, 0], [10, 4]),
            size=400,
            epsilon=epsilon,
            delta="0.0001",
            planned_release=False,
        )
        if rows is not None:
            made.upload(rows, kind="text/csv", seal=True)
            made.grant("analyst", cap, "0.00005")
        return made


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The demo with one worker, started once for all tests of one test process."""
    home = tmp_path_factory.mktemp("live")
    command = ("demo", "--directory", str(home / "var"))
    with server("", home, command=command, rehearsals_per_minute="1000", keyless_rate="1e6") as running:
        curator, analyst = (home / "var" / "demo-keys.txt").read_text().split()
        yield Live(running.address, curator, analyst, home)
