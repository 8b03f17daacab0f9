"""The client of a Cairn service: the entry point to its datasets, jobs and accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cairn_client.access import AccessRequest
from cairn_client.columns import Described
from cairn_client.dataset import Dataset
from cairn_client.describing import Description
from cairn_client.errors import NotFound
from cairn_client.formatting import shorten
from cairn_client.job import Job
from cairn_client.login import Login, find_login
from cairn_client.populations import Populations
from cairn_client.provider_login import renew
from cairn_client.transport import Transport, quoted
from cairn_client.uploading import body_of, file_options, first_lines
from cairn_client.wire import (
    AccessRequestFacts,
    AlgorithmFacts,
    AuditEntry,
    CatalogueEntry,
    DatasetFacts,
    JobFacts,
    KindFacts,
    NewKey,
    NewPrincipal,
    Number,
    PreviewFacts,
    PrincipalFacts,
    SessionFacts,
    WhoAmI,
    amount_text,
)

T = TypeVar("T", Job, AccessRequest)
_ID_LENGTH = 36
Bounds = Mapping[str, Mapping[str, Any]]


def box(low: npt.ArrayLike, high: npt.ArrayLike) -> Bounds:
    """Bounds of a box: a low and a high for each column, or one of each for all columns."""
    return {"box": {"low": _plain(low), "high": _plain(high)}}


def ball(radius: float, centre: npt.ArrayLike | None = None) -> Bounds:
    """Bounds of a ball: every row lies within a radius of a centre, by default the origin."""
    return {"ball": {"radius": float(radius), **({} if centre is None else {"centre": _plain(centre)})}}


def sparse(radius: float) -> Bounds:
    """Bounds for sparse rows: each lies within a radius of the origin."""
    return {"sparse": {"radius": float(radius)}}


def ids(count: int) -> Bounds:
    """Bounds for rows that name one of `count` public sites."""
    return {"ids": {"count": count}}


class Client(Populations):
    """A connection to a service with one key.

    An address or key that is not given is taken from the environment (`CAIRN_URL`, `CAIRN_KEY`), then from
    what `cairn login` stored. After a lost connection or while the service is busy, a call is retried for
    `patience` seconds; `timeout` is how long to wait for one response. A client can be used from several
    threads at a time.
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
        self._transport = Transport(
            login.address, login.key, patience=patience, timeout=timeout, renew=partial(_renewed, login)
        )

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
        """Close the connections."""
        self._transport.close()

    # --- for everybody --------------------------------------------------------------------------------------

    def whoami(self) -> WhoAmI:
        """The name and role of the key's owner."""
        return self._transport.request(WhoAmI, "GET", "/v1/whoami")

    def datasets(self) -> list[Dataset]:
        """The datasets that you own or may use."""
        found = self._transport.pages(DatasetFacts, "/v1/datasets")
        return [Dataset(self._transport, facts.name, facts) for facts in found]

    def dataset(self, name: str) -> Dataset:
        """A dataset by its name. Nothing is requested yet, so NotFound is raised on first use."""
        return Dataset(self._transport, name)

    def catalogue(self) -> list[CatalogueEntry]:
        """The datasets that can be asked for, with what their owners show to people without a grant."""
        return list(self._transport.pages(CatalogueEntry, "/v1/catalogue"))

    def catalogue_entry(self, name: str) -> CatalogueEntry:
        """What the catalogue says of one dataset."""
        return self._transport.request(CatalogueEntry, "GET", f"/v1/catalogue/{quoted(name)}")

    def jobs(
        self, limit: int | None = None, *, dataset: str | None = None, search: str | None = None
    ) -> list[Job]:
        """Your jobs, newest first; for a curator, all jobs on their datasets.

        `search` finds jobs by a part of their name or note.
        """
        found = self._transport.pages(JobFacts, "/v1/jobs", {"dataset": dataset, "search": search}, limit)
        return [Job(self._transport, facts) for facts in found]

    def job(self, id: str = "latest") -> Job:
        """A job by its id, or by as many of its first characters as are unique; by default the newest."""
        if id == "latest" or len(id) == _ID_LENGTH:
            return Job(self._transport, self._transport.request(JobFacts, "GET", f"/v1/jobs/{quoted(id)}"))
        return _only("job", self.jobs(), id)

    def requests(self, *, dataset: str | None = None, waiting: bool = False) -> list[AccessRequest]:
        """Requests for access, newest first: yours, those on your datasets, those for a second curator.

        `waiting`: only those that wait for you; for an analyst, those that are not decided yet.
        """
        query = {"dataset": dataset, "waiting": "true" if waiting else None}
        found = self._transport.pages(AccessRequestFacts, "/v1/requests", query)
        return [AccessRequest(self._transport, facts) for facts in found]

    def request(self, id: str) -> AccessRequest:
        """A request for access by its id, or by as many of its first characters as are unique."""
        if len(id) == _ID_LENGTH:
            facts = self._transport.request(AccessRequestFacts, "GET", f"/v1/requests/{quoted(id)}")
            return AccessRequest(self._transport, facts)
        return _only("request", self.requests(), id)

    def algorithms(self) -> list[AlgorithmFacts]:
        """The algorithms, with their options as JSON Schema; `auto` chooses among them."""
        return self._transport.entries(AlgorithmFacts, "/v1/algorithms")

    def kinds(self) -> list[KindFacts]:
        """The questions that can be asked, with their options as JSON Schema."""
        return self._transport.entries(KindFacts, "/v1/kinds")

    def public_keys(self) -> dict[str, Any]:
        """The service's public keys, for `verify`: a JSON Web Key Set, worth keeping for use offline."""
        keys: dict[str, Any] = self._transport.call("GET", "/.well-known/cairn-keys.json").json()
        return keys

    def sessions(self) -> list[SessionFacts]:
        """The browsers that are signed in to the console with one of your keys."""
        return self._transport.entries(SessionFacts, "/v1/sessions")

    def end_session(self, id: str) -> None:
        """Sign a browser out: a session of yours or, for a curator, of an account that you manage."""
        self._transport.call("DELETE", f"/v1/sessions/{quoted(id)}", repeatable=False)

    # --- for curators ---------------------------------------------------------------------------------------

    def create_dataset(
        self,
        name: str,
        *,
        bounds: Bounds | None = None,
        table: Sequence[Described] | None = None,
        size: int,
        epsilon: Number,
        delta: Number = 0,
        columns: Sequence[str] | None = None,
        dimension: int | None = None,
        description: str = "",
        scaling: str = "unit",
        rows_per_person: int = 1,
        id_column: str | None = None,
        reading: Described | None = None,
        accountant: str = "sum",
        planned_release: bool = True,
        least_epsilon: Number = "0.001",
        jobs_per_hour: int = 1000,
        unit: str | None = None,
    ) -> Dataset:
        """Create a dataset from public facts, which must not depend on the rows; then `upload` and `seal`.

        `bounds` comes from `box`, `ball`, `sparse` or `ids`; in place of bounds, `table` lists columns of
        different kinds, made by `Column`. `size` is about how many records there are, and is public.
        `reading` is how delimited text is read, such as `{"separator": ";", "decimal": ","}`; the default is
        UTF-8 with commas, decimal points and a header line. `epsilon` and `delta` are the most that all jobs
        together may spend. `least_epsilon` is the least that one job must ask for; `jobs_per_hour` is the
        most jobs of one analyst.

        A `unit` of privacy ("record", "person-in-period" or "person") gives the dataset periods, see
        `add_period`. `size` is then that of a period; with the first two units each period has the budget.
        """
        body = {
            "name": name,
            "description": description,
            "columns": None if columns is None else list(columns),
            "dimension": dimension,
            "bounds": bounds,
            "table": None if table is None else list(table),
            "scaling": scaling,
            "size": size,
            "rows_per_person": rows_per_person,
            "id_column": id_column,
            "reading": reading,
            "budget": {"epsilon": amount_text(epsilon), "delta": amount_text(delta)},
            "accountant": accountant,
            "planned_release": planned_release,
            "least_epsilon": amount_text(least_epsilon),
            "jobs_per_hour": jobs_per_hour,
            "unit": unit,
        }
        given = {field: value for field, value in body.items() if value is not None}
        made = self._transport.request(DatasetFacts, "POST", "/v1/datasets", body=given, repeatable=False)
        return Dataset(self._transport, name, made)

    def describe(self, path: str | Path) -> Description:
        """Propose columns for a file, and how it is read if it is delimited text.

        The first 256 KiB of a text file, or all of a spreadsheet, Parquet or Arrow file, are sent to the
        service, which stores nothing of them.
        """
        sample = first_lines(path)
        with body_of(path if sample is None else sample, None, None) as body:
            options = file_options(body)
            found = self._transport.request(PreviewFacts, "POST", "/v1/previews", repeatable=True, **options)
        return Description(found)

    def principals(self) -> list[PrincipalFacts]:
        """All accounts, with the keys and sessions of those that you manage."""
        return list(self._transport.pages(PrincipalFacts, "/v1/principals"))

    def add_principal(self, name: str, role: str = "analyst") -> NewPrincipal:
        """Create an account for a person or program, with a first key that is shown only once."""
        return self._transport.request(
            NewPrincipal, "POST", "/v1/principals", body={"name": name, "role": role}, repeatable=False
        )

    def disable_principal(self, name: str) -> None:
        """Disable an account. Its keys stop working; its history is kept."""
        self._transport.call("DELETE", f"/v1/principals/{quoted(name)}", repeatable=False)

    def enable_principal(self, name: str) -> None:
        """Enable an account that is disabled, or waits since its holder first signed in by a provider."""
        self._transport.call("POST", f"/v1/principals/{quoted(name)}/enable", repeatable=True)

    def link_identity(self, name: str, provider: str, subject: str) -> None:
        """Let a person sign in to an account by a provider, at which `subject` is their `sub`."""
        body = {"provider": provider, "subject": subject}
        self._transport.call("POST", f"/v1/principals/{quoted(name)}/identities", body=body, repeatable=False)

    def issue_key(
        self,
        name: str,
        label: str = "",
        expires_in_days: int | None = None,
        *,
        datasets: Sequence[str] | None = None,
        read_only: bool = False,
    ) -> NewKey:
        """Issue another key for an account, shown only once; `datasets` and `read_only` limit it."""
        body: dict[str, Any] = {"label": label}
        if expires_in_days is not None:
            body["expires_in_days"] = expires_in_days
        if datasets is not None:
            body["datasets"] = list(datasets)
        if read_only:
            body["read_only"] = True
        return self._transport.request(
            NewKey, "POST", f"/v1/principals/{quoted(name)}/keys", body=body, repeatable=False
        )

    def revoke_key(self, name: str, id: str) -> None:
        """Revoke a key of an account. It stops working immediately."""
        self._transport.call("DELETE", f"/v1/principals/{quoted(name)}/keys/{quoted(id)}", repeatable=False)

    def audit(
        self, dataset: str | None = None, limit: int | None = None, *, access: bool = False
    ) -> list[AuditEntry]:
        """Entries of the audit log about your datasets, your own actions and accounts, newest first.

        `access`: who read what, who signed in and who was refused what, in place of what was done.
        """
        query = {"dataset": dataset, "record": "access" if access else None}
        return list(self._transport.pages(AuditEntry, "/v1/audit", query, limit))


def _only(thing: str, listed: Sequence[T], id: str) -> T:
    """Return the one whose id begins like this."""
    found = [each for each in listed if each.id.startswith(id.lower())] if id else []
    if not found:
        raise NotFound(f"there is no {thing} whose id begins with {id!r}", status=404)
    if len(found) > 1:
        some = ", ".join(shorten([each.id for each in found])[:4])
        raise ValueError(f"{len(found)} {thing} ids begin with {id!r}: type more of it ({some}, ...)")
    return found[0]


def _plain(numbers: npt.ArrayLike) -> Any:
    """A number or a list of numbers, from anything that numpy understands."""
    return np.asarray(numbers, dtype=np.float64).tolist()


def _renewed(login: Login, key: str) -> str | None:
    """Return a new token in the place of an expired one of a provider; None for a key."""
    found = renew(Login(login.address, key)) if login.renewal else None
    return None if found is None else found.key
