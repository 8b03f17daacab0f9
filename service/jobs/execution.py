"""Running a claimed job: the service's only way to a probe, and so to rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.algorithms import registry
from core.algorithms.base import Clustering
from core.data import DataSource, domain_from_json
from core.plan import Plan
from service.datasets import sites
from service.jobs.executors import make_executor
from service.jobs.queue import Claim
from service.jobs.receipts import make_receipt
from service.jobs.rehearsal import synthetic_source
from service.jobs.rows import ChunkCache, DatabaseSource, chunks_read
from service.operations import faults
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.tables import Dataset, Job, Principal

__all__ = ["can_run", "chunks_read", "execute"]

Listener = Callable[[str, int, int], None]


def can_run(stored: dict[str, Any], domain: dict[str, Any]) -> bool:
    """True when this version of the software still understands a stored plan, to the last digit."""
    try:
        plan = Plan.from_json(stored, domain_from_json(domain))
        registry.get(plan.algorithm)
    except Exception:  # whatever it is, it is known before the charge and before a row is read
        return False
    return plan.to_json() == stored


def execute(
    held: Claim, database: Database, settings: Settings, listener: Listener
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Carry a job's plan out; returns what it released, and the receipt."""
    plan = _plan(held, database)
    faults.reach("execute.begun")
    with make_executor(settings) as executor:
        clustering = registry.run(plan, _source(held, plan, database, settings), executor, listener)
    faults.reach("execute.released")
    job, dataset, analyst = database.patiently(lambda session: _public_facts(session, held))
    receipt = make_receipt(job, dataset, plan, analyst)
    return _body(job, dataset, clustering, receipt), receipt


def _plan(held: Claim, database: Database) -> Plan:
    """Read a job's plan with its public inputs."""
    named = held.plan["inputs"].get("sites")
    public_sites = named and database.patiently(lambda session: sites.load(session, held.dataset_id, named))
    return Plan.from_json(held.plan, domain_from_json(held.domain), public_sites)


def _public_facts(session: Session, held: Claim) -> tuple[Job, Dataset, str]:
    job = session.scalars(select(Job).where(Job.id == held.job_id)).one()
    dataset = session.get_one(Dataset, held.dataset_id)
    return job, dataset, session.get_one(Principal, job.principal_id).name


def _source(held: Claim, plan: Plan, database: Database, settings: Settings) -> DataSource:
    if held.rehearsal:
        return synthetic_source(plan.domain, plan.k, settings.rehearsal_rows)
    return DatabaseSource(
        database, held.dataset_id, ChunkCache(settings.cache_directory, settings.cache_bytes)
    )


def _body(job: Job, dataset: Dataset, clustering: Clustering, receipt: dict[str, Any]) -> dict[str, Any]:
    plan = clustering.plan
    return {
        "job": job.id,
        "dataset": dataset.name,
        "rehearsal": job.rehearsal,
        "algorithm": plan.algorithm,
        "objective": plan.objective,
        "columns": list(plan.domain.columns) if plan.domain.kind != "sparse" else None,
        "centres": np.asarray(clustering.centres, dtype=np.float64).tolist(),
        "sizes": None
        if clustering.sizes is None
        else np.asarray(clustering.sizes, dtype=np.float64).tolist(),
        "draws": dict(clustering.draws),
        "details": dict(clustering.details),
        "privacy": receipt["privacy"],
        "receipt": f"/v1/jobs/{job.id}/receipt",
    }
