"""A service with people of every role, and a dataset and a job in every state that matters.

carla owns what the tests ask for; cleo is another curator. ada is an analyst with grants, ben has one on
another dataset, dan is cleo's; nora is an auditor, otto an operator. Rows and their number are chosen so that
a trace of them in an answer is seen.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import select, update

from service.http.wire import JobKind
from service.operations.states import Role
from service.operations.tables import ApiKey, Base, BrowserSession, DatasetChunk, Principal
from service.people import keys, principals
from service.people.authentication import Caller
from service.people.keys import KeyLimits
from tests.support.service import DOUBTS, House, Person

#: The private number of records, and a value that stands in the rows.
RECORDS = 10_473
VALUE = "7.318264519"
TOKEN = "scrape-" + "t" * 32
MISSING_JOB = "00000000-0000-4000-8000-000000000000"

PEOPLE = ("carla", "cleo", "ada", "ben", "dan", "nora", "otto")
_BOX = {"box": {"low": [0, 0], "high": [10, 4]}}


def rows(count: int = RECORDS, value: str = VALUE) -> bytes:
    """The rows of carla's sealed datasets; cleo's are fewer and others."""
    lines = [f"{value},{(3 * i) % 4}" if i % 7 == 0 else f"{i % 10},{i % 4}" for i in range(count)]
    return ("a,b\n" + "\n".join(lines) + "\n").encode()


class Stage(House):
    """See the module."""

    def __init__(self, url: str, folder: Path, **settings: Any):
        super().__init__(url, folder, metrics_token=TOKEN, **settings)
        made = self.carla.post("/v1/principals", {"name": "cleo", "role": "curator"}).json()
        self.cleo = Person(self.client, "cleo", made["first_key"]["key"])
        made = self.cleo.post("/v1/principals", {"name": "dan", "role": "analyst"}).json()
        self.dan = Person(self.client, "dan", made["first_key"]["key"])
        made = self.carla.post("/v1/principals", {"name": "nora", "role": "auditor"}).json()
        self.nora = Person(self.client, "nora", made["first_key"]["key"])
        self.strangers = {
            "nobody": None,
            "malformed key": "cairn_nothing",
            "unknown key": "cairn_00000000_" + "A" * 43,
            "revoked key": self._spoiled("revoked"),
            "expired key": self._spoiled("expired"),
            "key of a disabled person": self._spoiled("disabled"),
        }
        ended = self._ended_sessions()
        made = self.carla.post("/v1/principals", {"name": "otto", "role": "operator"}).json()
        self.otto = Person(self.client, "otto", made["first_key"]["key"])
        self.key_ids = {each: self._key_id(each) for each in PEOPLE}
        sessions = {name: self._session(name, getattr(self, name).key) for name in PEOPLE}
        self.session_ids = {name: session for name, (session, _) in sessions.items()}
        self.cookies = {name: cookie for name, (_, cookie) in sessions.items()} | ended
        self._datasets()
        self._jobs()
        self.clock.move(3600)

    def _key_id(self, name: str) -> str:
        with self.database.read() as session:
            query = select(ApiKey.handle).join(Principal).where(Principal.name == name).order_by(ApiKey.id)
            return str(session.scalars(query).first())

    def _spoiled(self, how: str) -> str:
        """A key that worked once."""
        now = self.clock.now()
        with self.database.write() as session:
            carla = principals.find(session, "carla")
            by = Caller(carla.id, "carla", Role.CURATOR)
            person = principals.create(session, f"former-{how}", Role.CURATOR, by=by, at=now)
            lifetime = timedelta(seconds=60) if how == "expired" else None
            issued = keys.issue(session, person, by="carla", at=now, limits=KeyLimits(lifetime))
            if how == "revoked":
                keys.revoke(session, person, issued.row.handle, by="carla", at=now)
            if how == "disabled":
                principals.disable(session, person, by="carla", at=now)
        return issued.text

    def _ended_sessions(self) -> dict[str, str]:
        """The cookie of a session of each kind that is over."""
        cookies: dict[str, str] = {}
        for kind in ("ended", "expired", "key revoked", "person disabled"):
            name = "over-" + kind.replace(" ", "-")
            made = self.carla.post("/v1/principals", {"name": name, "role": "curator"}).json()
            key = made["first_key"]
            session, cookies[kind] = self._session(name, key["key"])
            if kind == "ended":
                self.carla.delete(f"/v1/sessions/{session}")
            elif kind == "key revoked":
                self.carla.delete(f"/v1/principals/{name}/keys/{key['id']}")
            elif kind == "person disabled":
                self.carla.delete(f"/v1/principals/{name}")
            else:
                with self.database.write() as rows:
                    rows.execute(
                        update(BrowserSession)
                        .where(BrowserSession.handle == session)
                        .values(expires_at=self.clock.now())
                    )
        return cookies

    def _session(self, name: str, key: str) -> tuple[str, str]:
        """The id and the cookie of a new session."""
        started = Person(self.client, name, key).post("/v1/sessions", {"remember": True})
        return started.json()["id"], started.headers["set-cookie"].partition(";")[0]

    def _datasets(self) -> None:
        for curator, analyst, name in (
            (self.carla, "ada", "own"),
            (self.carla, "ada", "retired"),
            (self.carla, "ada", "withdrawn"),
            (self.carla, "ben", "ungranted"),
            (self.cleo, "dan", "other"),
        ):
            self._ready(curator, analyst, name)
        body = {"name": "draft", "columns": ["a", "b"], "bounds": _BOX, "size": 10_000}
        body["budget"] = {"epsilon": "5", "delta": "0.00001"}
        assert self.carla.post("/v1/datasets", body).status_code == 201
        self.carla.put("/v1/datasets/draft/grants/ada", {"epsilon": "5", "delta": "0.00001"})
        assert self.check(rows(), "draft").status_code == 200
        self._monthly()
        self._populations()

    def _populations(self) -> None:
        """Two of carla's; cleo's dataset is in the one that cleo may use."""
        budget = {"epsilon": "50", "delta": "0.0001"}
        for name, curators in (("alone", []), ("shared", ["cleo"])):
            body = {"name": name, "accountant": "sum", "budget": budget, "curators": curators}
            assert self.carla.post("/v1/populations", body).status_code == 201
        joined = {"dataset": "other", "one_row_per_person": True}
        assert self.cleo.post("/v1/populations/shared/datasets", joined).status_code == 200

    def _monthly(self) -> None:
        """A dataset with a sealed period and a draft of the next."""
        budget = {"epsilon": "50", "delta": "0.0001"}
        body = {"name": "monthly", "columns": ["a", "b"], "bounds": _BOX, "size": 10_000, "budget": budget}
        assert self.carla.post("/v1/datasets", {**body, "unit": "record"}).status_code == 201
        for label in ("2026-01", "2026-02"):
            place = "/v1/datasets/monthly/periods"
            assert self.carla.post(place, {"label": label}).status_code == 201
            assert self.carla.call("PUT", f"{place}/{label}/data", content=rows()).status_code == 200
            if label == "2026-01":
                assert self.carla.post(f"{place}/{label}/seal", {}).status_code == 200
        assert self.carla.put("/v1/datasets/monthly/grants/ada", budget).status_code == 200

    def _ready(self, curator: Person, analyst: str, name: str) -> None:
        budget = {"epsilon": "50", "delta": "0.0001"}
        body = {"name": name, "columns": ["a", "b"], "bounds": _BOX, "size": 10_000, "budget": budget}
        assert curator.post("/v1/datasets", body).status_code == 201
        content = rows() if curator is self.carla else rows(1000, "5.5")
        sent = curator.call(
            "PUT", f"/v1/datasets/{name}/data", content=content, headers={"Content-Type": "text/csv"}
        )
        assert sent.status_code == 200, sent.text
        assert curator.post(f"/v1/datasets/{name}/seal", {"confirm": list(DOUBTS)}).status_code == 200
        granted = {**budget, "kinds": list(get_args(JobKind))}
        assert curator.put(f"/v1/datasets/{name}/grants/{analyst}", granted).status_code == 200
        assert curator.call("PUT", f"/v1/datasets/{name}/sites/places", content=b"1,1\n").status_code == 200

    def _jobs(self) -> None:
        """A finished job on every dataset with rows, then a queued one where jobs may still run."""
        by_dataset = {
            "own": self.ada,
            "retired": self.ada,
            "withdrawn": self.ada,
            "monthly": self.ada,
            "ungranted": self.ben,
            "other": self.dan,
        }
        self.finished: dict[str, str] = {}
        self.queued: dict[str, str] = {}
        for name, who in by_dataset.items():
            self.finished[name] = self.submit(who=who, dataset=name).json()["id"]
            assert self.work()
        #: By dataset: an open request for a larger cap; that on a retired dataset is declined.
        self.requests: dict[str, str] = {}
        for name in ("own", "retired", "ungranted", "other"):
            asked = by_dataset[name].post("/v1/requests", {"dataset": name, "epsilon": "51"})
            self.requests[name] = asked.json()["id"]
        for curator, name in ((self.carla, "ungranted"), (self.carla, "retired"), (self.cleo, "other")):
            listed = curator.put(f"/v1/datasets/{name}/listing", {"shows": ["columns"]})
            assert listed.status_code == 200, listed.text
        assert self.carla.post("/v1/datasets/retired/retire").status_code == 200
        assert self.carla.delete("/v1/datasets/withdrawn/grants/ada").status_code == 204
        for name in ("monthly", "own", "ungranted", "other"):
            self.queued[name] = self.submit(who=by_dataset[name], dataset=name).json()["id"]

    def secrets(self) -> set[str]:
        """What may stand in no answer: digests of keys, sessions, rows and uploads, rows themselves."""
        with self.database.read() as session:
            digests = (ApiKey.digest, BrowserSession.digest, DatasetChunk.digest)
            found = {each for digest in digests for each in session.scalars(select(digest))}
        return found | {VALUE, hashlib.sha256(rows()).hexdigest()}

    def state(self) -> str:
        """Everything the database holds, as one digest."""
        hashed = hashlib.sha256()
        with self.database.engine.connect() as connection:
            for table in Base.metadata.sorted_tables:
                found = connection.execute(select(table).order_by(*table.primary_key.columns))
                hashed.update(repr([tuple(map(bytes_or_self, row)) for row in found]).encode())
        return hashed.hexdigest()

    def remember(self) -> Callable[[], None]:
        """A way back to the state of now; on SQLite alone."""
        path = str(self.database.engine.url.database)
        kept = sqlite3.connect(":memory:")
        with closing(sqlite3.connect(path)) as now:
            now.backup(kept)

        def restore() -> None:
            with closing(sqlite3.connect(path)) as later:
                kept.backup(later)

        return restore


def bytes_or_self(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
