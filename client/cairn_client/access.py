"""Requests for access to a dataset: for a grant, a larger cap, other kinds of jobs or a longer time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from cairn_client.transport import Transport, quoted
from cairn_client.wire import AccessRequestFacts, Number, amount_text


class Wanted(TypedDict, total=False):
    """Amounts and terms; what is left out stays as it is. Amounts are those of the whole cap or total."""

    epsilon: Number | None
    delta: Number | None
    #: "cluster" and the names of `client.kinds()`.
    kinds: Sequence[str] | None
    purpose: str | None
    permit: str | None
    #: A datetime with a time zone; None: no end.
    ends_at: datetime | None
    keeps_results: bool | None


class AccessRequest:
    """A request for access, by its facts as last fetched."""

    def __init__(self, transport: Transport, facts: AccessRequestFacts):
        self._transport = transport
        self.facts = facts

    def __repr__(self) -> str:
        return (
            f"<AccessRequest {self.id[:8]}: {self.facts.asked.words} of {self.facts.dataset}, {self.state}>"
        )

    @property
    def id(self) -> str:
        """Its id."""
        return self.facts.id

    @property
    def state(self) -> str:
        """`open`, `proposed` (a second curator must agree), `granted`, `declined` or `withdrawn`."""
        return self.facts.state

    def refresh(self) -> AccessRequestFacts:
        """Fetch the facts again."""
        return self._act("GET", "")

    def grant(self, reason: str = "", **instead: Unpack[Wanted]) -> AccessRequestFacts:
        """Grant it as the dataset's owner: all of it, or what is named instead."""
        return self._act("POST", "/grant", {**wanted_body(instead), "reason": reason})

    def second(self) -> AccessRequestFacts:
        """Agree, as a second curator, to what the owner proposes."""
        return self._act("POST", "/second")

    def decline(self, reason: str) -> AccessRequestFacts:
        """Decline it, with a word of reason."""
        return self._act("POST", "/decline", {"reason": reason})

    def withdraw(self) -> AccessRequestFacts:
        """Withdraw a request of yours."""
        return self._act("DELETE", "")

    def _act(self, verb: str, rest: str, body: Mapping[str, Any] | None = None) -> AccessRequestFacts:
        path = f"/v1/requests/{quoted(self.id)}{rest}"
        self.facts = self._transport.request(
            AccessRequestFacts, verb, path, body=body, repeatable=verb == "GET"
        )
        return self.facts


class AccessRequests:
    """Calls that ask for a grant on a dataset, or for a larger total."""

    _transport: Transport
    name: str

    def request_access(
        self, *, plan: Mapping[str, Any] | None = None, **wanted: Unpack[Wanted]
    ) -> AccessRequest:
        """Ask the owner for a grant of your own, or for more than it allows; name what is to change.

        `plan`: the job that it is for, with the fields of `POST /v1/plans` but the dataset.
        """
        planned = None if plan is None else {"dataset": self.name, **plan}
        return self._ask({**wanted_body(wanted), "plan": planned})

    def propose_grant(self, analyst: str, **wanted: Unpack[Wanted]) -> AccessRequest:
        """Propose a grant that one curator may not make alone; it is made when another one agrees."""
        return self._ask({**wanted_body(wanted), "analyst": analyst})

    def propose_total(self, epsilon: Number, delta: Number, *, period: str | None = None) -> AccessRequest:
        """Propose a larger total that one curator may not set alone; it is set when another one agrees."""
        amounts = wanted_body({"epsilon": epsilon, "delta": delta})
        return self._ask({**amounts, "about": "total", "period": period})

    def _ask(self, body: Mapping[str, Any]) -> AccessRequest:
        sent = {name: value for name, value in body.items() if value is not None or name == "ends_at"}
        made = self._transport.request(
            AccessRequestFacts,
            "POST",
            "/v1/requests",
            body={"dataset": self.name, **sent},
            repeatable=False,
        )
        return AccessRequest(self._transport, made)


def wanted_body(wanted: Wanted) -> dict[str, Any]:
    """Return amounts and terms as they are sent."""
    body: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    for name in ("epsilon", "delta"):
        if name in body:
            body[name] = amount_text(body[name])
    if "kinds" in body:
        body["kinds"] = list(body["kinds"])
    if "ends_at" in wanted:
        ends_at = wanted["ends_at"]
        body["ends_at"] = None if ends_at is None else ends_at.isoformat()
    return body
