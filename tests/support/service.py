"""A service in one process for tests: app, worker and a clock that tests move by hand."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient, Response

from service.app import create_app
from service.operations.database import Database
from service.operations.logs import configure
from service.operations.settings import Settings
from service.operations.states import Role
from service.people import keys, principals
from service.people.authentication import Caller
from service.workers.rows import close_databases
from service.workers.worker import Worker

#: Every doubt about rows that can be confirmed.
DOUBTS = ("left-out", "clipped", "size")
START = datetime(2030, 1, 1, 9, 0, tzinfo=UTC)


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.moment = START
        self._stepped = timedelta()

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return (self.moment - self._stepped).timestamp()

    def move(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def step(self, seconds: float) -> None:
        """Set the clock ahead, or back, without time passing."""
        self.move(seconds)
        self._stepped += timedelta(seconds=seconds)


class Browser:
    """An HTTP client that talks to an app in this process, one call after the other."""

    def __init__(self, app: Any):
        self._loop = asyncio.Runner()
        transport = ASGITransport(app, raise_app_exceptions=False)
        self._client = AsyncClient(transport=transport, base_url="http://localhost")

    def request(self, verb: str, path: str, **options: Any) -> Response:
        answer = self._loop.run(self._client.request(verb, path, **options))
        self._client.cookies.clear()  # tests send the cookies they mean
        return answer

    def close(self) -> None:
        self._loop.run(self._client.aclose())
        self._loop.close()


class Person:
    """Somebody with a key, as an HTTP client."""

    def __init__(self, client: Browser, name: str, key: str):
        self.client, self.name, self.key = client, name, key

    def call(self, verb: str, path: str, **options: Any) -> Response:
        headers = {"Authorization": f"Bearer {self.key}", **options.pop("headers", {})}
        return self.client.request(verb, path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> Response:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Response:
        return self.call("POST", path, json=body, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Response:
        return self.call("PUT", path, json=body, **options)

    def delete(self, path: str, **options: Any) -> Response:
        return self.call("DELETE", path, **options)


class House:
    """A service with a curator `carla` and analysts `ada` and `ben`."""

    def __init__(self, url: str, folder: Path, *, keys: Mapping[str, str] | None = None, **settings: Any):
        """`keys`: of the three, where the database has them already."""
        plenty = {
            "caller_rate": 1e6,
            "caller_burst": 1e6,
            "keyless_rate": 1e6,
            "caller_requests_at_once": 1000,
        }  # tests ask faster than people do
        self.settings = Settings(
            database_url=url,
            cache_directory=folder / "cache",
            signing_key_file=folder / "signing-key.pem",
            **(plenty | settings),
        )
        configure("text", "error")
        self.database = Database(url)
        self.clock = HandClock()
        self.app = create_app(self.settings, database=self.database, clock=self.clock)
        self.client = Browser(self.app)
        #: The exit codes with which the worker would have ended its process.
        self.left: list[int] = []
        self.worker = Worker(
            self.settings, self.database, self.clock, name="worker-test", leave=self.left.append
        )
        known = self._first_people() if keys is None else keys
        self.carla, self.ada, self.ben = (
            Person(self.client, name, known[name]) for name in ("carla", "ada", "ben")
        )

    def _first_people(self) -> dict[str, str]:
        """The keys of the three, just created."""
        with self.database.write() as session:
            carla = principals.create(session, "carla", Role.CURATOR, by=None, at=self.clock.now())
            by = Caller(carla.id, "carla", Role.CURATOR)
            people = [carla]
            people += [
                principals.create(session, name, Role.ANALYST, by=by, at=self.clock.now())
                for name in ("ada", "ben")
            ]
            issued = [keys.issue(session, each, by="carla", at=self.clock.now()) for each in people]
            return {each.name: key.text for each, key in zip(people, issued, strict=True)}

    def close(self) -> None:
        self.client.close()
        self.app.state.context.helper.close()
        close_databases()
        self.database.dispose()

    def create(self, name: str = "flowers", **changes: Any) -> Response:
        """A dataset of two columns with epsilon 1 and delta 1e-6."""
        body: dict[str, Any] = {
            "name": name,
            "columns": ["a", "b"],
            "bounds": {"box": {"low": [0, 0], "high": [10, 4]}},
            "size": 1000,
            "budget": {"epsilon": "1", "delta": "0.000001"},
            "least_epsilon": "0",
        }
        body |= changes
        return self.carla.post("/v1/datasets", {k: v for k, v in body.items() if v is not None})

    def upload(self, content: bytes, name: str = "flowers", kind: str = "text/csv", **query: str) -> Response:
        """Upload rows and seal them, whatever they look like; the answer to the upload."""
        answer = self.check(content, name, kind, **query)
        if answer.status_code == 200 and answer.json()["rows"]:
            sealed = self.seal(name)
            assert sealed.status_code == 200, sealed.text
        return answer

    def seal(self, name: str = "flowers", confirm: Iterable[str] = DOUBTS) -> Response:
        return self.carla.post(f"/v1/datasets/{name}/seal", {"confirm": list(confirm)})

    def check(self, content: bytes, name: str = "flowers", kind: str = "text/csv", **query: str) -> Response:
        """Upload rows without sealing them."""
        return self.carla.call(
            "PUT", f"/v1/datasets/{name}/data", content=content, params=query, headers={"Content-Type": kind}
        )

    def grant(
        self, who: str = "ada", name: str = "flowers", epsilon: str = "1", delta: str = "0.000001"
    ) -> Response:
        return self.carla.put(f"/v1/datasets/{name}/grants/{who}", {"epsilon": epsilon, "delta": delta})

    def ready(self, name: str = "flowers", rows: int = 200, **changes: Any) -> None:
        """A sealed dataset that ada may use."""
        assert self.create(name, **changes).status_code == 201
        assert self.upload(table(rows), name).status_code == 200
        delta = changes.get("budget", {}).get("delta", "0.000001")
        assert self.grant("ada", name, epsilon="1", delta=delta).status_code == 200

    def submit(self, epsilon: str = "0.1", *, who: Person | None = None, **body: Any) -> Response:
        headers = {"Idempotency-Key": body.pop("key")} if "key" in body else {}
        request = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": epsilon, **body}
        return (who or self.ada).post("/v1/jobs", request, headers=headers)

    def work(self) -> bool:
        """Let the worker take and carry out one job; False when there is none."""
        held = self.worker.claim()
        return held is not None and self.worker.carry_out(held)


def table(rows: int) -> bytes:
    """A small CSV file with the columns a and b."""
    lines = [f"{(7 * i) % 10},{(3 * i) % 4}" for i in range(rows)]
    return ("a,b\n" + "\n".join(lines) + "\n").encode()


def answer_to_a_mistake(house: House, monkeypatch: pytest.MonkeyPatch) -> Response:
    """The answer to a request on which the service fails with an error that nobody foresaw."""

    def fail(*_: Any, **__: Any) -> Any:
        raise KeyError("a value from a row")

    monkeypatch.setattr("service.datasets.view.facts", fail)
    return house.ada.get("/v1/datasets/flowers")


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    """A service on each kind of database."""
    with closing(House(database_url, tmp_path)) as made:
        yield made


@pytest.fixture
def small_house(sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    """A service on SQLite, for what does not depend on the database."""
    with closing(House(sqlite_url, tmp_path)) as made:
        yield made


@pytest.fixture(scope="module")
def shared_house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service on SQLite for tests that change nothing: it has the sealed dataset `flowers`."""
    folder = tmp_path_factory.mktemp("shared")
    shutil.copy(sqlite_template, folder / "cairn.sqlite3")
    with closing(House(f"sqlite:///{folder / 'cairn.sqlite3'}", folder)) as made:
        made.ready()
        yield made
