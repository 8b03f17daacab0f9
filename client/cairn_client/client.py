"""The client of a service: one object for an address and a key, from which everything else is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cairn_client.dataset import Dataset
from cairn_client.errors import NotFound
from cairn_client.formatting import shorten
from cairn_client.job import Job
from cairn_client.login import find_login
from cairn_client.transport import Transport, quoted
from cairn_client.wire import (
    AlgorithmFacts,
    AuditEntry,
    DatasetFacts,
    JobFacts,
    NewKey,
    NewPrincipal,
    Number,
    PrincipalFacts,
    WhoAmI,
    amount_text,
)

__all__ = ["Client", "ball", "box", "ids", "sparse"]

_ID_LENGTH = 36
Bounds = Mapping[str, Mapping[str, Any]]


def box(low: float | Sequence[float], high: float | Sequence[float]) -> Bounds:
    """Bounds: every column between its low and its high; one number for all columns, or one per column."""
    return {"box": {"low": _plain(low), "high": _plain(high)}}


def ball(radius: float, centre: float | Sequence[float] | None = None) -> Bounds:
    """Bounds: every row within a radius of a centre, by default the origin."""
    return {"ball": {"radius": float(radius), **({} if centre is None else {"centre": _plain(centre)})}}


def sparse(radius: float) -> Bounds:
    """Bounds: rows of a sparse matrix within a radius of the origin."""
    return {"sparse": {"radius": float(radius)}}


def ids(count: int) -> Bounds:
    """Bounds: rows that name one of so many public sites."""
    return {"ids": {"count": count}}


class Client:
    """A service at an address, used with one key.

    Without an address or a key, the environment (`CAIRN_URL`, `CAIRN_KEY`) and then what `cairn login` stored
    are used. `patience` is how many seconds a broken connection or a busy service is borne with before an
    error is raised; `timeout` is how long one answer may take.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float = 60.0,
        timeout: float = 60.0,
    ):
        login = find_login(url, key)
        self._transport = Transport(login.address, login.key, patience=patience, timeout=timeout)

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The service's address."""
        return self._transport.address

    def close(self) -> None:
        """Give the connections back."""
        self._transport.close()

    # --- for everybody --------------------------------------------------------------------------------------

    def whoami(self) -> WhoAmI:
        """Whose key this is."""
        return self._transport.get(WhoAmI, "/v1/whoami")

    def datasets(self) -> list[Dataset]:
        """Datasets that you own, or that are granted to you."""
        found = self._transport.pages(DatasetFacts, "/v1/datasets")
        return [Dataset(self._transport, facts.name, facts) for facts in found]

    def dataset(self, name: str) -> Dataset:
        """A dataset by its name; NotFound comes with the first question about it."""
        return Dataset(self._transport, name)

    def jobs(self, limit: int | None = None) -> list[Job]:
        """Your jobs, or the jobs on datasets you own, newest first."""
        return [
            Job(self._transport, facts) for facts in self._transport.pages(JobFacts, "/v1/jobs", limit=limit)
        ]

    def job(self, id: str = "latest") -> Job:
        """A job by its id, or by as many of its first characters as are unique; by default the newest."""
        if id == "latest" or len(id) == _ID_LENGTH:
            return Job(self._transport, self._transport.get(JobFacts, f"/v1/jobs/{quoted(id)}"))
        found = [each for each in self.jobs() if each.id.startswith(id.lower())] if id else []
        if not found:
            raise NotFound(f"no job that you may see has an id that begins with {id!r}", status=404)
        if len(found) > 1:
            some = ", ".join(shorten([each.id for each in found])[:4])
            raise ValueError(f"{len(found)} job ids begin with {id!r}: type more of it ({some}, ...)")
        return found[0]

    def algorithms(self) -> list[AlgorithmFacts]:
        """What can be asked for by name, with options as JSON Schema; `auto` chooses among them."""
        return list(self._transport.pages(AlgorithmFacts, "/v1/algorithms"))

    # --- for curators ---------------------------------------------------------------------------------------

    def create_dataset(
        self,
        name: str,
        *,
        bounds: Bounds,
        size: int,
        epsilon: Number,
        delta: Number = 0,
        columns: Sequence[str] | None = None,
        dimension: int | None = None,
        description: str = "",
        scaling: str = "unit",
        rows_per_person: int = 1,
        id_column: str | None = None,
        accountant: str = "sum",
        release_ticks: bool = True,
    ) -> Dataset:
        """Describe a new dataset, all of it known without looking at the rows; `upload` then gives it data.

        `bounds` comes from `box`, `ball`, `sparse` or `ids`; `size` is a public order of magnitude of the
        number of records; epsilon and delta are what all jobs together may spend.
        """
        body = {
            "name": name,
            "description": description,
            "columns": None if columns is None else list(columns),
            "dimension": dimension,
            "bounds": bounds,
            "scaling": scaling,
            "size": size,
            "rows_per_person": rows_per_person,
            "id_column": id_column,
            "budget": {"epsilon": amount_text(epsilon), "delta": amount_text(delta)},
            "accountant": accountant,
            "release_ticks": release_ticks,
        }
        given = {field: value for field, value in body.items() if value is not None}
        answer = self._transport.call("POST", "/v1/datasets", body=given, repeatable=False)
        return Dataset(self._transport, name, self._transport.read(DatasetFacts, answer))

    def principals(self) -> list[PrincipalFacts]:
        """Everybody the service knows; keys are shown of those you manage."""
        return list(self._transport.pages(PrincipalFacts, "/v1/principals"))

    def add_principal(self, name: str, role: str = "analyst") -> NewPrincipal:
        """Create a person or program with a first key, which is shown this once."""
        answer = self._transport.call(
            "POST", "/v1/principals", body={"name": name, "role": role}, repeatable=False
        )
        return self._transport.read(NewPrincipal, answer)

    def disable_principal(self, name: str) -> None:
        """End a principal: their keys stop working; what they did stays on record."""
        self._transport.call("DELETE", f"/v1/principals/{quoted(name)}", repeatable=False)

    def issue_key(self, name: str, label: str = "", expires_in_days: int | None = None) -> NewKey:
        """Issue another key for a principal, which is shown this once."""
        body: dict[str, Any] = {"label": label}
        if expires_in_days is not None:
            body["expires_in_days"] = expires_in_days
        answer = self._transport.call(
            "POST", f"/v1/principals/{quoted(name)}/keys", body=body, repeatable=False
        )
        return self._transport.read(NewKey, answer)

    def revoke_key(self, name: str, id: str) -> None:
        """Revoke a key of a principal at once."""
        self._transport.call("DELETE", f"/v1/principals/{quoted(name)}/keys/{quoted(id)}", repeatable=False)

    def audit(self, dataset: str | None = None, limit: int | None = None) -> list[AuditEntry]:
        """Acts on your datasets, by you, and on principals, newest first."""
        return list(self._transport.pages(AuditEntry, "/v1/audit", {"dataset": dataset}, limit))


def _plain(numbers: float | Sequence[float]) -> float | list[float]:
    return float(numbers) if isinstance(numbers, int | float) else [float(each) for each in numbers]
