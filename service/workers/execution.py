"""Execute a claimed job: the only code of the service that opens a probe and so reads rows."""

import math
from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from core.data import DataSource, Dense, NarrowedSource, Table, domain_from_json
from core.jobs import kinds
from core.plan import Plan
from core.questions.base import Findings
from core.views import clear_cache
from service.datasets import working_bounds
from service.datasets.public_rows import attached
from service.datasets.sites import site_sets
from service.jobs import clusterings
from service.jobs.queue import Claim, Outcome
from service.jobs.results import answers
from service.jobs.results.receipts import make_receipt
from service.jobs.results.transcripts import cut, facts_of, released_values
from service.operations import faults
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.signing import open_keys
from service.operations.tables import Dataset, Job, Principal, Result
from service.workers.executors import make_executor
from service.workers.journal import StoredJournal
from service.workers.rehearsal import made_up_source, synthetic_source
from service.workers.rows import ChunkCache, DatabaseSource

Listener = Callable[[str, int, int], None]


def can_run(stored: dict[str, Any], domain: dict[str, Any]) -> bool:
    """Return True when this version of the software reads a stored plan back exactly, for the same work."""
    try:
        plan = Plan.from_json(stored, domain_from_json(domain))
        # Needs every parameter of the plan: one that has another name or meaning now is found here. Machines
        # may differ in the last digits of a logarithm.
        counted = kinds.get(plan).work(plan)
        same = math.isclose(counted.operations, plan.work.operations, rel_tol=1e-6)
        return same and plan.to_json() == stored
    except Exception:  # any failure is found before the charge and before a row is read
        return False


def execute(claim: Claim, database: Database, settings: Settings, listener: Listener) -> Outcome:
    """Run a job's plan; return what it released, the receipt and the transcript."""
    plan = _plan(claim, database)
    # Before the run: a fact that the curator changes meanwhile would tell in the receipt how long it took.
    job, dataset, analyst, bounds = database.patiently(lambda session: _public_facts(session, claim))
    keys = open_keys(settings)
    # The synthetic rows of a rehearsal are drawn for each run: another worker could not go on with them.
    journal = None if claim.rehearsal else StoredJournal.open(database, claim, settings.transcript_bytes)
    faults.reach("execute.begun")
    try:
        with make_executor(settings) as executor:
            source = _source(claim, plan, database, settings)
            released = kinds.run(plan, source, executor, listener, journal)
        if journal is not None:
            journal.require_used_up()
    finally:
        clear_cache()  # derived rows follow this run's released values: no other job can use them
    faults.reach("execute.released")
    transcript = cut(released, settings.transcript_bytes)
    receipt = make_receipt(job, dataset, plan, analyst, facts_of(transcript), keys, bounds)
    return Outcome(_body(job, dataset, released, receipt), receipt, transcript, _other_answers(released))


def _other_answers(released: kinds.Released) -> dict[int, bytes]:
    """Return the answers for other k that follow from a release."""
    if isinstance(released, Findings):
        return {}
    if released.synopsis is not None:
        return answers.encoded(released.synopsis)
    return {} if released.coarsening is None else answers.encoded_merges(released.coarsening)


def _plan(claim: Claim, database: Database) -> Plan:
    """Read a job's plan with its public inputs."""
    named = claim.plan["inputs"].get("sites")
    public_sites = named and database.patiently(
        lambda session: site_sets.load(session, claim.dataset_id, named)
    )
    domain, clustered = domain_from_json(claim.domain), claim.plan["inputs"].get("partitions", ())
    partitions = database.patiently(
        lambda session: [clusterings.load(session, domain, facts) for facts in clustered]
    )
    facts = claim.plan["inputs"].get("public_rows")
    public_rows = facts and database.patiently(
        lambda session: attached.load(session, claim.dataset_id, facts)
    )
    return Plan.from_json(claim.plan, domain, public_sites, partitions, public_rows)


def _public_facts(session: Session, claim: Claim) -> tuple[Job, Dataset, str, list[Any] | None]:
    """The job, its dataset, who asked, and the working bounds of its plan with where they come from."""
    job = session.scalars(select(Job).where(Job.id == claim.job_id)).one()
    dataset = session.get_one(Dataset, claim.dataset_id)
    bounds = working_bounds.find(session, dataset.id, claim.plan["inputs"]["domain"]["digest"])
    analyst = session.get_one(Principal, job.principal_id).name
    return job, dataset, analyst, None if bounds is None else bounds.columns


def _source(claim: Claim, plan: Plan, database: Database, settings: Settings) -> DataSource:
    if claim.rehearsal:
        named = claim.request.get("rehearse_on")
        if named is None:
            return synthetic_source(plan.stored, plan.k, settings.rehearsal_rows)
        made_up = database.patiently(lambda session: _made_up_rows(session, named))
        return made_up_source(plan.stored, plan.k, settings.rehearsal_rows, made_up)
    cache = ChunkCache(settings.cache_directory, settings.cache_bytes)
    source = DatabaseSource(database, claim.dataset_id, cache)
    domain = plan.stored
    if isinstance(domain, Dense | Table) and domain.fingerprint != source.domain.fingerprint:
        return NarrowedSource(source, domain)
    return source


def _made_up_rows(session: Session, job_id: str) -> answers.MadeUpRows:
    receipt = session.get_one(Result, job_id, options=[defer(Result.body)]).receipt
    made_up = answers.made_up_rows(session, job_id, receipt)
    assert made_up is not None  # the submission was refused otherwise
    return made_up


def _body(job: Job, dataset: Dataset, released: kinds.Released, receipt: dict[str, Any]) -> dict[str, Any]:
    plan = released.plan
    about: dict[str, Any]
    if isinstance(released, Findings):
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
        "job": job.id,
        "dataset": dataset.name,
        "rehearsal": job.rehearsal,
        **about,
        **released_values(released),
        "privacy": receipt["privacy"],
        "receipt": f"/v1/jobs/{job.id}/receipt",
    }
