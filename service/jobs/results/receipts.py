"""Receipts of jobs: a document of what was planned and charged, with its own digest and a signature."""

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from core.plan import CLUSTER, Plan
from service.datasets import reading, view
from service.jobs.results import disclosure
from service.jobs.results.run import Run
from service.operations import canonical
from service.operations.clock import rfc3339
from service.operations.signing import SigningKeys

#: Receipts of format 1 are not signed, and have neither citation nor explanation. Those of formats 2 and 3 do
#: not say how the file was read, nor which public facts were taken from rows; formats 4 and 5 name neither
#: the entry of the charge nor the digest of the result.
FORMAT = 6
#: Receipts of questions name their kind in place of an algorithm.
QUESTION_FORMAT = 7
_UNHASHED = ("digest", "signature")


def make_receipt(
    run: Run, released: dict[str, Any], transcript: dict[str, Any] | None, keys: SigningKeys
) -> dict[str, Any]:
    """Make the receipt of a job and sign it: request, public facts, charge, and digests of the release.

    `released`: what `digests_of` says of the result.
    """
    claim, plan, dataset, unit = run.claim, run.plan, run.dataset, run.unit
    planned = plan.to_json()
    working_bounds = {} if run.working_bounds is None else {"working_bounds": run.working_bounds}
    receipt: dict[str, Any] = {
        "format": FORMAT if plan.kind == CLUSTER else QUESTION_FORMAT,
        "job": claim.job_id,
        "dataset": dataset.name,
        "analyst": run.analyst,
        "rehearsal": claim.rehearsal,
        "queued_at": rfc3339(claim.queued_at),
        "request": claim.request,
        **_asked(plan),
        "accountant": dataset.accountant,
        "charged": run.charged,
        "charge": None if claim.charge is None else claim.charge.to_json(),
        "privacy": privacy_of(run),
        "privacy_unit": unit,
        "neighbours": disclosure.neighbours(unit),
        "statement": _statement(run),
        "domain": plan.described.to_json(),
        **_periods(run),
        **({} if run.population is None else {"population": run.population}),
        **_permit(run),
        **working_bounds,
        "reading": dataset.reading or reading.INFERRED,
        "confirmed_from_rows": dataset.from_rows or {},
        "revised_after_a_look": view.revised(dataset),
        "inputs": planned["inputs"],
        "steps": _steps(plan),
        "parameters": planned["parameters"],
        "forecast": planned["forecast"],
        "plan_digest": plan.digest,
        "released": released,
        "transcript": transcript,
        "versions": {
            "cairn": version("cairn-dp"),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
        **disclosure.texts(run),
    }
    receipt["digest"] = digest_of(receipt)
    receipt["signature"] = keys.sign("receipt", receipt["digest"])
    return receipt


def _periods(run: Run) -> dict[str, Any]:
    """Name the periods that were read, and what somebody in all of them loses, where that is more.

    Of a dataset without periods that was corrected, the version of its rows.
    """
    periods = run.claim.periods
    if periods is None:
        return {}
    if periods.unit is None:
        return {"version": periods.read[0].version}
    lost = {} if run.lost_in_all is None else {"lost_in_all": run.lost_in_all}
    return {"unit": periods.unit.value, "periods": periods.facts(), "bounds": periods.bounds, **lost}


def _permit(run: Run) -> dict[str, Any]:
    """Name purpose, permit and end of the grant as they were at the claim, where it has any."""
    terms = run.permit or {}
    named = {name: terms.get(name) for name in ("purpose", "permit")}
    ends_at = terms.get("ends_at")
    if not any(named.values()) and ends_at is None:
        return {}
    return {"grant": {**named, "ends_at": None if ends_at is None else rfc3339(ends_at)}}


def digest_of(receipt: dict[str, Any]) -> str:
    """Return the SHA-256 of the receipt without digest and signature: JSON, keys sorted, no spaces."""
    rest = {name: value for name, value in receipt.items() if name not in _UNHASHED}
    return canonical.digest(rest)


def privacy_of(run: Run) -> dict[str, Any]:
    """Return the guarantee of a run, with its unit and neighbours, as result and receipt state it."""
    planned = run.plan.to_json()["privacy"]
    return {**planned, "unit": run.unit, "neighbours": disclosure.neighbours(run.unit)}


def digests_of(body: str, answers: Mapping[int, bytes]) -> dict[str, Any]:
    """Return what a receipt says of a result as it is stored, and of the answers for other k."""
    by_k = {k: hashlib.sha256(payload).hexdigest() for k, payload in answers.items()}
    return {
        "result": hashlib.sha256(body.encode()).hexdigest(),
        "answers": canonical.digest(sorted(by_k.items())) if by_k else None,
    }


def _asked(plan: Plan) -> dict[str, Any]:
    if plan.kind != CLUSTER:
        return {"kind": plan.kind}
    k_range = {} if plan.k_range is None else {"k_range": plan.k_range.to_json()}
    return {"algorithm": plan.algorithm, "objective": plan.objective, "k": plan.k, **k_range}


def _steps(plan: Plan) -> list[dict[str, Any]]:
    whole = plan.composition.rho
    described = []
    for step, (loss, uses) in zip(plan.steps, plan.losses, strict=True):
        rho = getattr(loss, "rho", None)
        share = None if rho is None or not whole else round(float(rho) * uses / whole, 6)
        described.append({**step.to_json(), "share": share})
    return described


def _statement(run: Run) -> str:
    if run.claim.rehearsal:
        named = run.claim.request.get("rehearse_on")
        rows, new = ("synthetic rows", "") if named is None else (f"the made-up rows of job {named}", "new ")
        return f"A rehearsal on {rows}: it read no data, cost nothing and says nothing {new}about the data."
    return f"{disclosure.guarantee(run.plan)}, which protects {disclosure.protects(run.plan, run.unit)}"
