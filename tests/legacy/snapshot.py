"""Read over HTTP everything that a database must go on giving out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.support.service import House, Person

__all__ = ["KINDS", "Stored", "folders", "lost", "snapshot"]

_HERE = Path(__file__).parent
#: For each kind of database, the files of its contents and of what it must give out.
KINDS = {
    "sqlite": ("cairn.sqlite.gz", "sqlite.json.gz"),
    "postgresql": ("cairn.sql.gz", "postgresql.json.gz"),
}


def folders() -> list[str]:
    """Folders of kept databases, named for the revision of their tables."""
    return sorted(path.name for path in _HERE.glob("revision-*"))


class Stored:
    """A kept database of one kind: its bytes, people's keys, and what it gave out at a moment."""

    def __init__(self, folder: str, kind: str) -> None:
        self.kind = kind
        database, expected = (_HERE / folder / name for name in KINDS[kind])
        self.database = gzip.decompress(database.read_bytes())
        kept = json.loads(gzip.decompress(expected.read_bytes()))
        self.keys: dict[str, str] = kept["keys"]
        #: With which the service signed; not kept with the first databases.
        self.signing_key: str | None = kept.get("signing_key")
        self.moment = datetime.fromisoformat(kept["moment"])
        self.snapshot: dict[str, Any] = kept["snapshot"]

    @staticmethod
    def write(folder: str, kind: str, database: bytes, house: House) -> None:
        """Keep a database, and what the service in the house gives out from it now."""
        keys = {person.name: person.key for person in (house.carla, house.ada, house.ben)}
        kept = {
            "keys": keys,
            "signing_key": Path(house.settings.signing_key_file or "").read_text(),
            "moment": house.clock.now().isoformat(),
            "snapshot": snapshot(house.carla),
        }
        (_HERE / folder).mkdir(exist_ok=True)
        for name, content in zip(KINDS[kind], (database, json.dumps(kept).encode()), strict=True):
            (_HERE / folder / name).write_bytes(gzip.compress(content, mtime=0))


def snapshot(owner: Person) -> dict[str, Any]:
    """All that the owner of the datasets may read; results and receipts as text, to the letter."""
    names = [dataset["name"] for dataset in _items(owner, "/v1/datasets")]
    jobs = [job["id"] for job in _items(owner, "/v1/jobs")]
    return {
        "principals": _items(owner, "/v1/principals"),
        "audit": _items(owner, "/v1/audit"),
        "datasets": {name: _dataset(owner, f"/v1/datasets/{name}") for name in names},
        "jobs": {job: _job(owner, f"/v1/jobs/{job}") for job in jobs},
    }


def _items(owner: Person, path: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = owner.get(path, params={"cursor": cursor} if cursor else {})
        assert answer.status_code == 200, answer.text
        found += answer.json()["items"]
        cursor = answer.json().get("next")
    return found


def _dataset(owner: Person, path: str) -> dict[str, Any]:
    verified = owner.post(f"{path}/ledger/verify").json()
    assert verified["ok"], verified
    lists = {part: _items(owner, f"{path}/{part}") for part in ("grants", "sites", "ledger", "periods")}
    return {"facts": owner.get(path).json(), "verified": verified, **lists}


def _job(owner: Person, path: str) -> dict[str, Any]:
    facts = owner.get(path).json()
    if facts["state"] != "succeeded":
        return {"facts": facts, "refusal": owner.get(f"{path}/result").json()["type"]}
    return {
        "facts": facts,
        "result": owner.get(f"{path}/result").json(),
        "csv": owner.get(f"{path}/result", headers={"Accept": "text/csv"}).text,
        "receipt": owner.get(f"{path}/receipt").text,
        "transcript": sha256(owner.get(f"{path}/transcript").content).hexdigest(),
    }


def lost(was: Any, now: Any, path: str = "") -> Iterator[str]:
    """What was given out once and is not any more, or is something else; new fields are no loss."""
    if path.endswith("/csv"):  # new columns, before or behind, are no loss either
        pairs = zip_longest(was.splitlines(), now.splitlines(), fillvalue="")
        yield from (f"{path}: {line!r} is gone" for line, later in pairs if line not in later)
        return
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name, value in was.items():
            if name in now:
                yield from lost(value, now[name], f"{path}/{name}")
            else:
                yield f"{path}/{name} is gone"
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for i, (before, after) in enumerate(zip(was, now, strict=True)):
            yield from lost(before, after, f"{path}/{i}")
    elif type(was) is not type(now) or was != now:
        yield f"{path}: {was!r} -> {now!r}"
