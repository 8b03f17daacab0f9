"""Receipts of jobs: a document of what was planned and charged, with its own digest."""

import hashlib
import json
import platform
from importlib.metadata import version
from typing import Any

from core.plan import Plan
from service.datasets import access
from service.ledger import accountants
from service.ledger.units import NOTHING, Cost
from service.operations.clock import rfc3339
from service.operations.tables import Dataset, Job

FORMAT = 1


def make_receipt(job: Job, dataset: Dataset, plan: Plan, analyst: str) -> dict[str, Any]:
    """Make the receipt of a job; every field is a function of the request and of public facts."""
    charged = NOTHING if job.rehearsal else Cost(job.loss_units, job.delta_units)
    planned = plan.to_json()
    unit = access.privacy_unit(dataset)
    receipt: dict[str, Any] = {
        "format": FORMAT,
        "job": job.id,
        "dataset": dataset.name,
        "analyst": analyst,
        "rehearsal": job.rehearsal,
        "queued_at": rfc3339(job.queued_at),
        "request": job.request,
        "algorithm": plan.algorithm,
        "objective": plan.objective,
        "k": plan.k,
        "accountant": dataset.accountant,
        "charged": accountants.amount(dataset.accountant, charged, dataset.delta_units),
        "privacy": {**planned["privacy"], "unit": unit},
        "privacy_unit": unit,
        "neighbours": "add or remove one record" if unit == "row" else "add or remove all rows of one person",
        "statement": _statement(job, plan, unit),
        "domain": plan.domain.to_json(),
        "inputs": planned["inputs"],
        "steps": _steps(plan),
        "parameters": planned["parameters"],
        "forecast": planned["forecast"],
        "plan_digest": plan.digest,
        "versions": {
            "cairn": version("cairn-dp"),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
        "registry": _registry(dataset, plan, unit),
    }
    receipt["digest"] = digest_of(receipt)
    return receipt


def digest_of(receipt: dict[str, Any]) -> str:
    """Return the SHA-256 of the receipt without its digest, as JSON with sorted keys and no spaces."""
    rest = {name: value for name, value in receipt.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _steps(plan: Plan) -> list[dict[str, Any]]:
    whole = plan.composition.rho
    described = []
    for step, (loss, uses) in zip(plan.steps, plan.losses, strict=True):
        rho = getattr(loss, "rho", None)
        share = None if rho is None or not whole else round(float(rho) * uses / whole, 6)
        described.append({**step.to_json(), "share": share})
    return described


def _statement(job: Job, plan: Plan, unit: str) -> str:
    if job.rehearsal:
        return "A rehearsal on synthetic rows: it read no data, cost nothing and says nothing about the data."
    kind = "pure" if plan.budget.is_pure else "approximate"
    protects = {
        "row": "each single row; a person with several rows is protected less",
        "person": f"each person, with at most {plan.domain.rows_per_person} rows",
    }[unit]
    return (
        f"{kind} differential privacy with epsilon {plan.budget.epsilon_text} and delta "
        f"{plan.budget.delta_text}, which protects {protects}"
    )


def _registry(dataset: Dataset, plan: Plan, unit: str) -> dict[str, Any]:
    """Return the fields that public registries of differentially private deployments ask for."""
    return {
        "release_type": "interactive",
        "trust_model": "central: a trusted curator holds the data",
        "privacy_notion": "pure DP" if plan.budget.is_pure else "approximate DP",
        "privacy_unit": unit,
        "neighbouring_relation": "add or remove",
        "epsilon": plan.budget.epsilon_text,
        "delta": plan.budget.delta_text,
        "composition_across_releases": "basic (sum)" if dataset.accountant == "sum" else "zCDP filter",
        "mechanisms": sorted({step.to_json()["mechanism"]["kind"] for step in plan.steps}),
        "public_inputs": "column names, bounds, scaling, order of magnitude of the number of records",
        "post_processing": "weighted clustering and clipping of released values",
        "software": f"cairn {version('cairn-dp')}",
    }
