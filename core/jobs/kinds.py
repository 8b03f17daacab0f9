"""Jobs of every kind: plan a clustering or a question, run a plan, state its work."""

from concurrent.futures import Executor
from dataclasses import replace

from core.algorithms import registry as algorithms
from core.algorithms.base import Algorithm, Clustering
from core.data import DataSource, Domain, Geometry, Stored
from core.plan import CLUSTER, Plan, Request, Work
from core.probe import Journal, Listener, Probe
from core.questions import registry as questions
from core.questions.base import Kind, Question, QuestionResult

#: The release of a run.
Released = Clustering | QuestionResult


def names() -> tuple[str, ...]:
    """Every kind of job."""
    return (CLUSTER, *questions.names())


def get(plan: Plan) -> Algorithm | Kind:
    """The algorithm or the kind of question that carries a plan out."""
    return algorithms.get(plan.algorithm) if plan.kind == CLUSTER else questions.get(plan.kind)


def plan(stored: Stored, request: Request | Question) -> Plan:
    """The plan of a request, from public numbers alone."""
    if isinstance(request, Question):
        return questions.plan(stored, request)
    return algorithms.plan(stored, request)


def run(
    plan: Plan,
    source: DataSource,
    executor: Executor | None = None,
    listener: Listener | None = None,
    journal: Journal | None = None,
) -> Released:
    """Carry a plan out on a source of rows, or the rest of a plan of which the journal has a part."""
    return get(plan).run(plan, Probe(plan, source, executor, listener, journal))


def work_on(plan: Plan, rows: int) -> Work:
    """The work of a plan on another number of rows than its domain declares, as in a rehearsal."""
    domain = plan.domain
    if isinstance(domain, Geometry):
        fewer: Domain = replace(domain, table=replace(domain.table, size=rows))
    else:
        fewer = replace(domain, size=rows)
    return get(plan).work(replace(plan, domain=fewer))
