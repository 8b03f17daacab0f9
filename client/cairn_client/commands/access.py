"""Commands for requests: ask for access, decide on it, agree as a second curator."""

import json
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from cairn_client.access import AccessRequest, Wanted
from cairn_client.client import Client
from cairn_client.commands.budgets import Kinds, Permit, Purpose, Until, end_of, named_kinds
from cairn_client.commands.common import DatasetName, Group, Json, amount_option
from cairn_client.commands.printing import print_json, print_pairs, print_table
from cairn_client.formatting import shorten
from cairn_client.wire import AccessRequestFacts

RequestId = Annotated[
    str, typer.Argument(metavar="REQUEST", help="Id of the request, or its first characters.")
]
Epsilon = Annotated[str | None, amount_option("Epsilon of the whole cap or total, such as 0.5.")]
Delta = Annotated[str | None, amount_option("Delta of the whole cap or total, such as 1e-6.")]


def requests(
    dataset: Annotated[str | None, typer.Option(help="Only requests on this dataset.")] = None,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only those that wait for you, or are not decided yet.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List requests for access: yours, those on your datasets, those for a second curator."""
    with Client() as signed_in:
        found = [each.facts for each in signed_in.requests(dataset=dataset, waiting=waiting)]
    if print_json(found, as_json):
        return
    ids = shorten([each.id for each in found])
    rows = [
        [id, each.dataset, each.asked_by, _wanted(each), each.state, each.asked_at, each.reason]
        for id, each in zip(ids, found, strict=True)
    ]
    print_table(["id", "dataset", "asked by", "for", "state", "asked", "reason"], rows, "No requests.")


def ask(
    name: DatasetName,
    epsilon: Epsilon = None,
    delta: Delta = None,
    kinds: Kinds = None,
    purpose: Purpose = None,
    permit: Permit = None,
    until: Until = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="JSON file of the job that it is for, with the fields of a plan's request."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask for a grant on a dataset, a larger cap, other kinds of jobs or a longer time. Its owner decides.

    What you leave out stays as it is.
    """
    with Client() as signed_in:
        wanted = _terms(signed_in, epsilon, delta, kinds, purpose, permit, until)
        job = None if plan is None else json.loads(plan.read_text())
        made = signed_in.dataset(name).request_access(plan=job, **wanted)
    _tell(made, as_json, f"Request {made.id[:8]}: {made.facts.owner} decides.")


def propose(
    name: DatasetName,
    analyst: Annotated[
        str | None, typer.Argument(metavar="ANALYST", help="Whose grant; leave it out for the total.")
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    kinds: Kinds = None,
    purpose: Purpose = None,
    permit: Permit = None,
    until: Until = None,
    period: Annotated[str | None, typer.Option(metavar="LABEL", help="Whose total.")] = None,
    as_json: Json = False,
) -> None:
    """Propose a grant, or a total, of more than one curator may allow alone, to a second curator."""
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        if analyst is not None:
            wanted = _terms(signed_in, epsilon, delta, kinds, purpose, permit, until)
            made = dataset.propose_grant(analyst, **wanted)
        else:
            present = dataset.facts.budget.declared
            total = present.epsilon if epsilon is None else epsilon
            made = dataset.propose_total(total, present.delta if delta is None else delta, period=period)
    _tell(made, as_json, f"Request {made.id[:8]}: it is done when a second curator agrees.")


def grant(
    id: RequestId,
    epsilon: Epsilon = None,
    delta: Delta = None,
    kinds: Kinds = None,
    purpose: Purpose = None,
    permit: Permit = None,
    until: Until = None,
    reason: Annotated[str, typer.Option(help="A word to the analyst.")] = "",
    as_json: Json = False,
) -> None:
    """Grant a request on a dataset that you own: all of it, or what you name instead."""
    with Client() as signed_in:
        found = signed_in.request(id)
        found.grant(reason, **_terms(signed_in, epsilon, delta, kinds, purpose, permit, until))
    waits = " It is done when a second curator agrees." if found.state == "proposed" else ""
    _tell(found, as_json, f"{found.facts.asked_by} asked: {found.state}, {_wanted(found.facts)}.{waits}")


def second(id: RequestId, as_json: Json = False) -> None:
    """Agree, as a second curator, to what the owner of a dataset proposes."""
    with Client() as signed_in:
        found = signed_in.request(id)
        found.second()
    _tell(found, as_json, f"Granted: {_wanted(found.facts)}.")


def decline(
    id: RequestId,
    reason: Annotated[str, typer.Option(help="A word to who asked.")],
    as_json: Json = False,
) -> None:
    """Decline a request, with a word of reason."""
    with Client() as signed_in:
        found = signed_in.request(id)
        found.decline(reason)
    _tell(found, as_json, f"Declined the request of {found.facts.asked_by}.")


def withdraw(id: RequestId, as_json: Json = False) -> None:
    """Withdraw a request of yours."""
    with Client() as signed_in:
        found = signed_in.request(id)
        found.withdraw()
    _tell(found, as_json, "Your request is withdrawn.")


def show(id: RequestId, as_json: Json = False) -> None:
    """Show a request: what is asked and for which plan, what is left, and what became of it."""
    with Client() as signed_in:
        facts = signed_in.request(id).facts
    if print_json(facts, as_json):
        return
    print_pairs(_pairs(facts))


def _terms(
    signed_in: Client,
    epsilon: str | None,
    delta: str | None,
    kinds: str | None,
    purpose: str | None,
    permit: str | None,
    until: str | None,
) -> Wanted:
    named: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "kinds": named_kinds(signed_in, kinds)}
    named |= {"purpose": purpose, "permit": permit}
    wanted = {name: value for name, value in named.items() if value is not None}
    return cast(Wanted, wanted | ({} if until is None else {"ends_at": end_of(until)}))


def _wanted(facts: AccessRequestFacts) -> str:
    """What was agreed to, or else asked for, and for whom."""
    whose = f" for {facts.analyst}" if facts.analyst and facts.analyst != facts.asked_by else ""
    return f"{(facts.decided or facts.asked).words}{whose}"


def _pairs(facts: AccessRequestFacts) -> list[tuple[str, Any]]:
    plan, standing = facts.plan, facts.standing
    pairs: list[tuple[str, Any]] = [
        ("request", facts.id),
        ("dataset", facts.dataset),
        ("asked by", facts.asked_by),
        ("at", facts.asked_at),
        ("for", facts.asked.words),
        ("purpose", facts.asked.purpose),
    ]
    if plan is not None:
        forecast = (plan.accuracy or {}).get("verdict", {}).get("sentence")
        pairs += [("plan", plan.asked_for), ("costs", plan.cost or plan.problem), ("forecast", forecast)]
    if standing is not None:
        held = standing.others
        pairs += [("left of the dataset", standing.budget.remaining)]
        pairs += [("cap", standing.cap.total), ("left of it", standing.cap.remaining)] if standing.cap else []
        pairs += [("others hold", f"{held.analysts} grants of {held.caps}")] if held else []
    pairs.append(("state", facts.state))
    if facts.decided_by is not None:
        decided = facts.decided.words if facts.decided and facts.state != "declined" else None
        pairs += [("decided by", facts.decided_by), ("agreed", decided), ("reason", facts.reason)]
    return [*pairs, ("second curator", facts.seconded_by)] if facts.seconded_by else pairs


def _tell(made: AccessRequest, as_json: bool, words: str) -> None:
    if not print_json(made.facts, as_json):
        typer.echo(words)


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(requests)
    request = typer.Typer(
        cls=Group, help="Ask for access, and decide on what others ask for.", no_args_is_help=True
    )
    for command in (ask, propose, grant, second, decline, withdraw, show):
        request.command()(command)
    app.add_typer(request, name="request")
