"""What the first lines of a file suggest about its dataset.

The service makes these proposals. Facts that rows decided become public with the dataset, so the curator
confirms or replaces each of them before it is declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cairn_client.columns import Described
from cairn_client.wire import PreviewFacts

#: Of a proposal: the facts that rows decided and that are neither confirmed nor replaced.
FROM_ROWS = "from_rows"
#: Of what is declared: the facts that came from rows and were confirmed to be public.
CONFIRMED = "confirmed_from_rows"


@dataclass(frozen=True)
class Proposal:
    """A column, or how text is read, as it may be declared, and which of these facts rows decided."""

    facts: Described
    from_rows: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Proposal:
        """Return the proposal that the service, or a file of descriptions, writes like this."""
        facts = {name: value for name, value in data.items() if name != FROM_ROWS}
        return cls(facts, tuple(data.get(FROM_ROWS, ())))

    def to_json(self) -> Described:
        """Return the proposal as `read` takes it."""
        return {**self.facts, FROM_ROWS: list(self.from_rows)}

    def confirmed(self) -> Proposal:
        """Return the proposal with what came from rows confirmed to be public."""
        return self.replaced({CONFIRMED: list(self.from_rows)})

    def replaced(self, facts: Described) -> Proposal:
        """Return the proposal with these facts, which did not come from rows unless they say so."""
        kept = [name for name in self.facts.get(CONFIRMED, ()) if name not in facts]
        confirmed = sorted({*kept, *facts.get(CONFIRMED, ())})
        left = tuple(name for name in self.from_rows if name not in facts and name not in confirmed)
        marks = {CONFIRMED: confirmed} if confirmed else {}
        return Proposal({**self.facts, **facts, **marks}, left)


@dataclass(frozen=True)
class Description:
    """What the first lines of a file suggest; nothing of them is stored."""

    facts: PreviewFacts

    @property
    def reading(self) -> Proposal:
        """How delimited text is read, for `create_dataset(reading=...)`."""
        return Proposal.read(self.facts.reading)

    @property
    def columns(self) -> list[Proposal]:
        """The columns, for `create_dataset(table=[...])`; without names if the first line looks like data."""
        return [Proposal.read(each) for each in self.facts.columns]
