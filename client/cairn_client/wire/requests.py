"""Responses about requests for access."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from cairn_client.wire.amounts import Account, Amount


@dataclass(frozen=True)
class WantedFacts:
    """Amounts and terms of a grant or a total; what is None stays as it is."""

    #: Amounts, kinds, permit and end as part of a sentence.
    words: str
    epsilon: Decimal | None = None
    delta: Decimal | None = None
    kinds: list[str] | None = None
    purpose: str | None = None
    permit: str | None = None
    ends_at: datetime | None = None
    keeps_results: bool | None = None


@dataclass(frozen=True)
class PlanSummary:
    """The job that a request is for; cost and forecast as they were when it was asked."""

    request: dict[str, Any]
    asked_for: str
    cost: Amount | None = None
    planned_seconds: float | None = None
    #: The forecast in words: `figures`, `verdict` and `basis`.
    accuracy: dict[str, Any] | None = None
    #: Why it could not be planned.
    problem: str | None = None


@dataclass(frozen=True)
class Others:
    """What other analysts hold; caps may add up to more than the total, which decides."""

    analysts: int
    caps: Amount


@dataclass(frozen=True)
class Standing:
    """What is left of the dataset, what the analyst holds, and what others hold."""

    budget: Account
    cap: Account | None = None
    others: Others | None = None


@dataclass(frozen=True)
class AccessRequestFacts:
    """A request for access, and what became of it."""

    id: str
    dataset: str
    #: Owner of the dataset, who decides.
    owner: str
    #: `grant` or `total`.
    about: str
    asked_by: str
    asked_at: datetime
    asked: WantedFacts
    #: `open`, `proposed` (a second curator must agree), `granted`, `declined` or `withdrawn`.
    state: str
    analyst: str | None = None
    period: str | None = None
    plan: PlanSummary | None = None
    #: What the owner agreed to.
    decided: WantedFacts | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str = ""
    seconded_by: str | None = None
    seconded_at: datetime | None = None
    #: What you may do with it now: `grant`, `second`, `decline`, `withdraw`.
    acts: list[str] = field(default_factory=list)
    #: To whoever decides, while it is pending.
    standing: Standing | None = None
