"""Execute a claimed job: the only code of the service that opens a probe and so reads rows."""

import json
import math
from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import DataSource, Dense, NarrowedSource, Table
from core.jobs import kinds
from core.plan import Plan
from core.questions.base import QuestionResult
from core.views import clear_cache
from service.datasets import working_bounds
from service.datasets.public_rows import attached
from service.datasets.sites import site_sets
from service.datasets.view import terms
from service.jobs import clusterings
from service.jobs.claims import Claim, Outcome, StoredPlan
from service.jobs.results import answers, stored
from service.jobs.results.receipts import digests_of, make_receipt, privacy_of
from service.jobs.results.run import Run
from service.jobs.results.transcripts import cut, facts_of, released_values
from service.operations import faults
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.signing import open_keys
from service.operations.tables import Dataset, Grant, Principal
from service.workers.executors import make_executor
from service.workers.journal import StoredJournal
from service.workers.rehearsal import made_up_source, synthetic_source
from service.workers.rows import ChunkCache, DatabaseSource

Listener = Callable[[str, int, int], None]


def can_run(stored: StoredPlan) -> bool:
    """Return True when this version of the software reads a stored plan back exactly, for the same work."""
    try:
        plan = stored.plan
        # Needs every parameter of the plan: one that has another name or meaning now is found here. Machines
        # may differ in the last digits of a logarithm.
        counted = kinds.get(plan).work(plan)
        same = math.isclose(counted.operations, plan.work.operations, rel_tol=1e-6)
        return same and plan.to_json() == stored.text
    except Exception:  # any failure is found before the charge and before a row is read
        return False


def execute(claim: Claim, database: Database, settings: Settings, listener: Listener) -> Outcome:
    """Run a job's plan; return what it released, the receipt and the transcript."""
    # Before the run: a fact that the curator changes meanwhile would reveal in the receipt how long it took.
    run = database.patiently(lambda session: _run(session, claim))
    keys = open_keys(settings)
    # The synthetic rows of a rehearsal are drawn for each run: another worker could not go on with them.
    journal = None if claim.rehearsal else StoredJournal.open(database, claim, settings.transcript_bytes)
    faults.reach("execute.begun")
    try:
        with make_executor(settings, claim.planned.total_seconds()) as executor:
            source = _source(claim, run.plan, database, settings)
            released = kinds.run(run.plan, source, executor, listener, journal)
        if journal is not None:
            journal.require_used_up()
    finally:
        clear_cache()  # derived rows follow this run's released values: no other job can use them
    faults.reach("execute.released")
    transcript = cut(released, settings.transcript_bytes)
    body, other = _body(run, released), _other_answers(released)
    receipt = make_receipt(run, digests_of(json.dumps(body), other), facts_of(transcript), keys)
    return Outcome(body, receipt, transcript, other)


def _other_answers(released: kinds.Released) -> dict[int, bytes]:
    """Return the answers for other k that follow from a release."""
    if isinstance(released, QuestionResult):
        return {}
    if released.synopsis is not None:
        return answers.encoded(released.synopsis)
    merged = {} if released.coarsening is None else answers.encoded_merges(released.coarsening)
    return {**answers.encoded_centres(released.centres), **merged}


def _run(session: Session, claim: Claim) -> Run:
    """Return the claim's plan with its public inputs, the dataset, who asked, and the working bounds."""
    dataset = session.get_one(Dataset, claim.dataset_id)
    analyst = session.get_one(Principal, claim.principal_id).name
    digest = claim.stored.plan.inputs["domain"]["digest"]
    bounds = working_bounds.find(session, dataset.id, claim.periods.bounds if claim.periods else digest)
    columns = None if bounds is None else bounds.columns
    granted = select(Grant).where(Grant.dataset_id == dataset.id, Grant.principal_id == claim.principal_id)
    grant = session.scalars(granted).one_or_none()
    permit = None if grant is None else terms(grant)
    return Run(claim, _plan(session, claim), dataset, analyst, columns, permit)


def _plan(session: Session, claim: Claim) -> Plan:
    """Return a job's plan with its public inputs."""
    plan, domain = claim.stored.plan, claim.stored.domain
    named = plan.inputs
    sites, public_rows = named.get("sites"), named.get("public_rows")
    return plan.with_inputs(
        sites and site_sets.load(session, claim.dataset_id, sites),
        [clusterings.load(session, domain, facts) for facts in named.get("partitions", ())],
        public_rows and attached.load(session, claim.dataset_id, public_rows),
    )


def _source(claim: Claim, plan: Plan, database: Database, settings: Settings) -> DataSource:
    if claim.rehearsal:
        named = claim.request.get("rehearse_on")
        if named is None:
            return synthetic_source(plan.stored, plan.k, settings.rehearsal_rows)
        made_up = database.patiently(lambda session: _made_up_rows(session, named))
        return made_up_source(plan.stored, plan.k, settings.rehearsal_rows, made_up)
    cache = ChunkCache(settings.cache_directory, settings.cache_bytes)
    source = DatabaseSource(database, claim.dataset_id, cache, claim.periods)
    domain = plan.stored
    if isinstance(domain, Dense | Table) and domain.fingerprint != source.domain.fingerprint:
        return NarrowedSource(source, domain)
    return source


def _made_up_rows(session: Session, job_id: str) -> answers.MadeUpRows:
    made_up = answers.made_up_rows(session, job_id, stored.receipt(session, job_id))
    assert made_up is not None  # the submission was refused otherwise
    return made_up


def _body(run: Run, released: kinds.Released) -> dict[str, Any]:
    plan = released.plan
    about: dict[str, Any]
    if isinstance(released, QuestionResult):
        named = [partition.facts for partition in plan.partitions]
        about = {
            "kind": plan.kind,
            "clusterings": [{"job": facts.job, "k": facts.k, "digest": facts.digest} for facts in named],
        }
    else:
        about = {
            "algorithm": plan.algorithm,
            "objective": plan.objective,
            "columns": list(plan.domain.columns) if plan.domain.kind != "sparse" else None,
        }
    return {
        "job": run.claim.job_id,
        "dataset": run.dataset.name,
        "rehearsal": run.claim.rehearsal,
        **about,
        **released_values(released),
        "privacy": privacy_of(run),
        "receipt": f"/v1/jobs/{run.claim.job_id}/receipt",
    }
