"""Populations: people who may be in several datasets, with one total for all of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cairn_client.transport import Transport, quoted
from cairn_client.wire import Number, PopulationFacts, amount_text


class Populations:
    """Calls about populations, for curators."""

    _transport: Transport

    def populations(self) -> list[PopulationFacts]:
        """The populations that you own, may use, or have datasets in."""
        return list(self._transport.pages(PopulationFacts, "/v1/populations"))

    def population(self, name: str) -> PopulationFacts:
        """A population by its name."""
        return self._transport.request(PopulationFacts, "GET", _path(name))

    def create_population(
        self,
        name: str,
        *,
        epsilon: Number,
        delta: Number = 0,
        accountant: str = "zcdp",
        description: str = "",
        curators: Sequence[str] = (),
    ) -> PopulationFacts:
        """Create a population. Its budget is the most that one person may lose in all its datasets together.

        `curators` are others who may let their datasets join.
        """
        body = {
            "name": name,
            "description": description,
            "accountant": accountant,
            "budget": {"epsilon": amount_text(epsilon), "delta": amount_text(delta)},
            "curators": list(curators),
        }
        return self._send("POST", "/v1/populations", body)

    def join_population(
        self, name: str, dataset: str, *, one_row_per_person: bool = False
    ) -> PopulationFacts:
        """Let a dataset of yours join, with all that its jobs have cost, and for good.

        One without an id column joins if you declare that nobody has two rows in it, or in a period.
        """
        body = {"dataset": dataset, "one_row_per_person": one_row_per_person}
        return self._send("POST", _path(name, "/datasets"), body)

    def raise_population(
        self, name: str, epsilon: Number | None = None, delta: Number | None = None
    ) -> PopulationFacts:
        """Raise the total of a population; what is None stays as it is. It cannot be lowered."""
        present = self.population(name).budget.declared
        body = {
            "epsilon": amount_text(present.epsilon if epsilon is None else epsilon),
            "delta": amount_text(present.delta if delta is None else delta),
        }
        return self._send("POST", _path(name, "/budget"), body)

    def edit_population(
        self, name: str, *, description: str | None = None, curators: Sequence[str] | None = None
    ) -> PopulationFacts:
        """Change the description, or which other curators may let their datasets join."""
        changes = {"description": description, "curators": None if curators is None else list(curators)}
        given = {field: value for field, value in changes.items() if value is not None}
        return self._send("PATCH", _path(name), given)

    def _send(self, verb: str, path: str, body: dict[str, Any]) -> PopulationFacts:
        return self._transport.request(PopulationFacts, verb, path, body=body, repeatable=False)


def _path(name: str, rest: str = "") -> str:
    return f"/v1/populations/{quoted(name)}{rest}"
