"""Answers to questions as callers receive them: with a view and the bounds that they propose, or as CSV."""

from typing import Any

from core.data import Dense, Stored, bounded_columns
from core.questions import registry
from core.questions.view import to_json
from service.errors import InvalidRequest
from service.jobs.results.csv_files import written


def shown(body: dict[str, Any], declared: Stored) -> dict[str, Any]:
    """Return a stored answer with its view, and with proposals of bounds inside the declared ones."""
    view = registry.get(body["kind"]).view(body["findings"])
    return {**body, "view": [to_json(part) for part in view], "bounds": _proposed_bounds(body, declared)}


def side_by_side(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return two stored answers about the same clusters side by side, with the differences between them."""
    bodies = (first, second)
    if first.get("kind") != second.get("kind") or "kind" not in first:
        raise InvalidRequest(
            "set two answers of the same kind side by side: two profiles of the same clusters"
        )
    about = [[(each["job"], each["k"]) for each in body["clusterings"]] for body in bodies]
    if about[0] != about[1]:
        raise InvalidRequest("these answers are about different clusters, so they have nothing in common")
    view = registry.get(first["kind"]).differences(first["findings"], second["findings"])
    return {
        **{
            name: {key: body[key] for key in ("job", "dataset")}
            for name, body in zip(("first", "second"), bodies, strict=True)
        },
        "kind": first["kind"],
        "clusterings": first["clusterings"],
        "view": [to_json(part) for part in view],
    }


def _proposed_bounds(body: dict[str, Any], declared: Stored) -> list[dict[str, Any]]:
    """Return the bounds that an answer proposes; a rehearsal proposes none, and a ball has none."""
    in_a_ball = isinstance(declared, Dense) and declared.low is None
    if body["rehearsal"] or in_a_ball:
        return []
    kind, names = registry.get(body["kind"]), ("column", "low", "high")
    pairs = ((column.name, kind.bounds(body["findings"], column)) for column in bounded_columns(declared))
    return [dict(zip(names, (name, *pair), strict=True)) for name, pair in pairs if pair is not None]


def as_csv(body: dict[str, Any]) -> str:
    """Return an answer as CSV: a line for each released number; clusters are numbered from 1."""
    lines = registry.get(body["kind"]).lines(body["findings"])
    return written(lines.names, lines.rows)
