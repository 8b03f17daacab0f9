"""The types on the wire: what the service answers, as frozen dataclasses, and the way from JSON and back.

Amounts are exact decimals; times are aware datetimes. Fields that a newer service adds are passed over, and
fields that an older one does not send take their default, so the client and the service need not be upgraded
together.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Literal, TypeVar

from cairn_client.forecast import verdict
from cairn_client.formatting import number
from cairn_client.receipt import size_error

__all__ = [
    "Account",
    "AlgorithmFacts",
    "Amount",
    "AuditEntry",
    "DatasetFacts",
    "GrantFacts",
    "JobFacts",
    "JobProgress",
    "KeyFacts",
    "LedgerRow",
    "NewKey",
    "NewPrincipal",
    "Number",
    "PlanFacts",
    "PrincipalFacts",
    "ResultFacts",
    "Retirement",
    "SiteKind",
    "SiteSetFacts",
    "UploadReport",
    "VerifyReport",
    "WhoAmI",
    "amount_text",
    "read",
    "to_json",
]

T = TypeVar("T")
#: An amount of epsilon or delta as a caller may write it.
Number = int | float | str | Decimal


def amount_text(value: Number) -> str:
    """The exact decimal to send; a float stands for the number it prints as."""
    if isinstance(value, bool):
        raise ValueError("a boolean is no amount; write a number such as 0.5")
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise ValueError(f"{value!r} is no amount; write a number such as 0.5") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is no amount; write a number such as 0.5")
    return format(number, "f")


@dataclass(frozen=True)
class Amount:
    """An amount of privacy loss; under the accountant `zcdp` it is `rho`, and epsilon its equivalent."""

    epsilon: Decimal
    delta: Decimal
    rho: Decimal | None = None

    def __str__(self) -> str:
        """Rounded to six digits for people; the fields are exact."""
        name, loss = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        return f"{name} {number(loss, 6)}, delta {number(self.delta, 6)}"


@dataclass(frozen=True)
class Account:
    """What a budget or a cap holds; `declared` is the (epsilon, delta) it was opened with."""

    declared: Amount
    total: Amount
    spent: Amount
    reserved: Amount
    remaining: Amount


@dataclass(frozen=True)
class UploadReport:
    """What became of an upload; for the curator alone."""

    format: str
    rows: int
    clipped_rows: int
    bad_rows: int
    bad_row_lines: list[dict[str, Any]]
    rows_over_limit: int
    ignored_columns: list[str]
    bytes: int
    sha256: str
    warnings: list[str]


@dataclass(frozen=True)
class DatasetFacts:
    """Public facts of a dataset, what is left of its budget, the caller's cap, the owner's upload report."""

    name: str
    description: str
    state: str
    kind: str
    columns: list[str] | None
    dimension: int
    bounds: dict[str, Any]
    scaling: str | None
    size: int
    rows_per_person: int
    id_column: str | None
    privacy_unit: str
    accountant: str
    release_ticks: bool
    owner: str
    created_at: datetime
    warnings: list[str]
    budget: Account
    cap: Account | None = None
    upload: UploadReport | None = None


@dataclass(frozen=True)
class GrantFacts:
    """An analyst's permission to use a dataset, and how far it goes."""

    analyst: str
    cap: Account
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True)
class LedgerRow:
    """One entry of a dataset's ledger; analysts see their own, without the chain's hashes."""

    sequence: int
    kind: str
    at: datetime
    analyst: str | None
    job: str | None
    amount: Amount
    actor: str | None = None
    previous: str | None = None
    hash: str | None = None


@dataclass(frozen=True)
class VerifyReport:
    """What a replay of the ledger found."""

    ok: bool
    entries: int
    head: str
    faults: list[str]


@dataclass(frozen=True)
class Retirement:
    """What retiring a dataset did."""

    state: str
    voided_jobs: int


#: What the numbers of a site set are.
SiteKind = Literal["coordinates", "great-circle", "distances"]


@dataclass(frozen=True)
class SiteSetFacts:
    """A set of public sites."""

    name: str
    kind: str
    count: int
    width: int
    created_at: datetime


@dataclass(frozen=True)
class WhoAmI:
    """Whose key this is."""

    name: str
    role: str


@dataclass(frozen=True)
class KeyFacts:
    """A key without its secret."""

    id: str
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class NewKey(KeyFacts):
    """A key, shown this once; its text is left out of `repr`, so that logs do not keep it."""

    key: str = field(repr=False)


@dataclass(frozen=True)
class PrincipalFacts:
    """A person or program; keys are listed to whoever manages them."""

    name: str
    role: str
    created_by: str | None
    created_at: datetime
    disabled_at: datetime | None
    keys: list[KeyFacts]


@dataclass(frozen=True)
class NewPrincipal:
    """A new person or program with a first key, shown this once."""

    name: str
    role: str
    first_key: NewKey


@dataclass(frozen=True)
class AuditEntry:
    """One act on the record."""

    id: int
    at: datetime
    actor: str
    action: str
    dataset: str | None
    details: dict[str, Any]


@dataclass(frozen=True)
class AlgorithmFacts:
    """An algorithm of the service; `options` is a JSON Schema."""

    name: str
    summary: str
    objectives: list[str]
    guarantee: str
    domains: list[str]
    options: dict[str, Any]


@dataclass(frozen=True)
class PlanFacts:
    """A plan with its price: what is measured, what it costs, what would remain, how well it should do."""

    plan: dict[str, Any]
    digest: str
    cost: Amount
    fits: bool
    remaining_after: dict[str, Amount] | None
    forecast: dict[str, Any]
    warnings: list[str]

    @property
    def average_size(self) -> float:
        """Records in an average cluster, by the public size of the dataset."""
        return float(self.plan["domain"]["size"]) / float(self.plan["k"])

    @property
    def size_error(self) -> float | None:
        """The standard deviation of the noise in a cluster's size; None where no sizes are counted."""
        return size_error(self.plan)

    @property
    def verdict(self) -> str | None:
        """How large the noise is beside the clusters, in one sentence; None without a forecast."""
        return verdict(self.forecast, self.average_size)


@dataclass(frozen=True)
class JobProgress:
    """How many of the planned measurements are made."""

    measured: int
    planned: int


@dataclass(frozen=True)
class JobFacts:
    """Where a job stands."""

    id: str
    dataset: str
    analyst: str
    state: str
    rehearsal: bool
    request: dict[str, Any]
    algorithm: str
    cost: Amount
    plan_digest: str
    phase: str | None
    progress: JobProgress | None
    queued_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    message: str | None
    links: dict[str, str]


@dataclass(frozen=True)
class ResultFacts:
    """What a job released."""

    job: str
    dataset: str
    rehearsal: bool
    algorithm: str
    objective: str
    columns: list[str] | None
    centres: list[list[float]]
    sizes: list[float] | None
    draws: dict[str, str]
    details: dict[str, Any]
    privacy: dict[str, Any]
    receipt: str


# --- from JSON and back -------------------------------------------------------------------------------------


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def read(kind: type[T], data: Any) -> T:
    """A wire type from what the service sent; ValueError when it is something else."""
    try:
        value: T = _value(kind, data)
    except (KeyError, TypeError, InvalidOperation) as error:
        raise ValueError(f"this is no {kind.__name__}: {error}") from error
    return value


def _value(kind: Any, data: Any) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if data is None:
            return None
        (kept,) = (each for each in inner if each is not type(None))
        return _value(kept, data)
    if origin is list:
        return [_value(inner[0], each) for each in data]
    if origin is dict:
        return {name: _value(inner[1], each) for name, each in data.items()}
    if kind is Decimal:
        return Decimal(str(data))
    if kind is datetime:
        return datetime.fromisoformat(data)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        given = {}
        for each in fields(kind):
            if each.name in data:
                given[each.name] = _value(hints[each.name], data[each.name])
            elif each.default is MISSING:
                raise KeyError(each.name)
        return kind(**given)
    return data


def to_json(value: Any) -> Any:
    """A wire type as the JSON that the service sent."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
        return {name: each for name, each in named.items() if each is not None or name != "rho"}
    if isinstance(value, Mapping):
        return {name: to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
