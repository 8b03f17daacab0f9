"""Texts of a receipt for people: a citation, answers for a data protection officer, a registry's entry.

Everything is a function of the request and of public facts.
"""

import math
from importlib.metadata import version
from typing import Any

from core.data import Geometry
from core.plan import CLUSTER, Plan
from core.questions import registry as questions
from service.jobs.results.run import Run
from service.ledger import accountants
from service.ledger.accountants import Amount
from service.operations.tables import Dataset

#: What only people know: they replace it before they send the entry.
_ASK = "FILL IN: "
_SHOWN_COLUMNS = 12
_PUBLIC = (
    "names and kinds of columns, bounds, levels, scaling, and the order of magnitude of the number of records"
)

_AFTERWARDS = (
    "Counts are moved to the nearest ones that are not negative and add up.",
    "Weighted clustering and clipping of released values.",
)


def protects(plan: Plan, unit: str) -> str:
    """Say whom the guarantee protects."""
    if unit == "person":
        return f"each person, with at most {plan.domain.rows_per_person} rows"
    if unit == "person in a period":
        return (
            f"each person in one period, with at most {plan.domain.rows_per_person} rows there; a person in "
            "several periods is protected less"
        )
    return "each single row; a person with several rows is protected less"


def neighbours(unit: str) -> str:
    """Say which pairs of datasets the guarantee compares."""
    if unit == "person in a period":
        return "add or remove all rows of one person in one period"
    return "add or remove one record" if unit == "row" else "add or remove all rows of one person"


def guarantee(plan: Plan) -> str:
    """State the guarantee with its parameters."""
    kind = "pure" if plan.budget.is_pure else "approximate"
    return (
        f"{kind} differential privacy with epsilon {plan.budget.epsilon_text} and delta "
        f"{plan.budget.delta_text}"
    )


def texts(run: Run) -> dict[str, Any]:
    """Return what the receipt tells people in addition to its numbers; a rehearsal has released nothing."""
    if run.claim.rehearsal:
        return {"citation": None, "explanation": [], "registry": None}
    return {
        "citation": citation(run),
        "explanation": explanation(run),
        "registry": registry_entry(run),
    }


def citation(run: Run) -> str:
    """Return a sentence to cite the release by."""
    claim, plan = run.claim, run.plan
    return (
        f"{_product(plan)} of the dataset “{run.dataset.name}”, computed for {run.analyst} by Cairn "
        f"{version('cairn-dp')} ({plan.algorithm}; job {claim.job_id}, submitted on "
        f"{claim.queued_at:%Y-%m-%d}) under {guarantee(plan)}, which protects {protects(plan, run.unit)}."
    )


def explanation(run: Run) -> list[dict[str, str]]:
    """Return questions of a data protection officer with their answers, for one page."""
    dataset, plan, unit = run.dataset, run.plan, run.unit
    factor = math.exp(float(plan.budget.epsilon_text))
    composition = accountants.of(dataset).composition
    answers = {
        "What was released?": f"{_product(plan)}, with noise{_beside(plan)}; no row and no exact count.",
        "From which data?": f"The dataset “{dataset.name}”{_periods(run)}, {_columns(plan)}.",
        "Who is protected?": f"{protects(plan, unit).capitalize()}.",
        "How strong is the protection?": (
            f"{guarantee(plan).capitalize()}: one {unit} more or less changes the probability of any outcome "
            f"by a factor of at most {factor:.3g}"
            + ("." if plan.budget.is_pure else f", plus at most {plan.budget.delta_text}.")
        ),
        "Against whom?": (
            "Against everybody who sees the release, whatever else they know or compute later. Not against "
            "the curator and the operators of the service, who hold the data."
        ),
        "How much of the budget did it use?": (
            f"{_amount(run.charged)}{_charged_where(run)}. In the dataset's ledger "
            f"{composition}; a release that would exceed the curator's total is refused."
        ),
        "How was it protected?": (
            f"By {_mechanisms(plan)}, in the steps that the receipt lists. Noise is drawn exactly, in whole "
            "numbers. Everything after that uses released values alone."
        ),
        "What is not protected?": (
            f"What is public: {_PUBLIC}. People who also appear in other datasets lose privacy there as well"
            f"{_in_population(run)}."
        ),
        "What was taken from the rows, and declared public?": _from_rows(dataset),
        **_origins(run.working_bounds),
        **_public_rows(plan),
        "How can this be checked?": (
            "The receipt is signed by the service. The command `cairn verify` checks it with the service's "
            "public keys, which are at /.well-known/cairn-keys.json."
        ),
    }
    return [{"question": question, "answer": answer} for question, answer in answers.items()]


def _amount(amount: Amount) -> str:
    return ", ".join(f"{name} {value}" for name, value in amount.items())


def _periods(run: Run) -> str:
    periods = run.claim.periods
    if periods is None:
        return ""
    if periods.unit is None:
        return f" (version {periods.read[0].version})"
    named = [
        each.label if each.version == 1 else f"{each.label} (version {each.version})" for each in periods.read
    ]
    return f", its period{'s' if len(named) > 1 else ''} {', '.join(named)}"


def _charged_where(run: Run) -> str:
    """Say which accounts were charged, and what somebody in several of these periods loses."""
    periods = run.claim.periods
    if periods is None or not run.dataset.has_accounts_of_periods:
        return ""
    lost = run.lost_in_all
    more = "" if lost is None else f"; somebody with rows in all of them loses {_amount(lost)}"
    return f" of the budget of each of these periods{more}"


def _in_population(run: Run) -> str:
    """Say what limits the loss of people who are in other datasets, too."""
    found = run.population
    if found is None:
        return ""
    return (
        f"; the population {found['name']} limits what one of them loses in all its datasets, and was "
        f"charged {_amount(found['lost'])} for this"
    )


def _from_rows(dataset: Dataset) -> str:
    """Name the public facts that a look at rows suggested; nothing of them is charged."""
    facts = [f"{name} ({', '.join(facts)})" for name, facts in (dataset.from_rows or {}).items()]
    confirmed = (dataset.reading or {}).get("confirmed_from_rows", ())
    if confirmed:
        facts.append(f"how the file is read ({', '.join(confirmed)})")
    if dataset.reading is None:
        facts.append("how the file is read, which an earlier version inferred from all records")
    return f"{'; '.join(facts)}." if facts else "Nothing, as far as the curator has stated."


def _origins(working_bounds: list[dict[str, Any]] | None) -> dict[str, str]:
    if working_bounds is None:
        return {}
    columns = "; ".join(
        f"{each['column']} from {each['low']} to {each['high']} ({each['origin']})" for each in working_bounds
    )
    return {"Where do narrower bounds come from?": f"Rows were clipped to working bounds: {columns}."}


def _public_rows(plan: Plan) -> dict[str, str]:
    if plan.public_rows is None:
        return {}
    facts = plan.public_rows.facts
    return {
        "Which other rows were used?": (
            f"{facts.count} rows (SHA-256 {facts.digest}) that the curator declared public and of none of "
            "the people in the dataset. The guarantee does not cover them. Whether records resemble them was "
            "decided by a step with noise."
        )
    }


def registry_entry(run: Run) -> dict[str, Any]:
    """Return an entry of the public registry of deployments; docs/receipts.md lists its fields."""
    claim, dataset, plan, unit = run.claim, run.dataset, run.plan, run.unit
    composition = accountants.of(dataset).composition
    title, used = "Clusters", "centres"
    if plan.kind != CLUSTER:
        title, used = questions.get(plan.kind).title, questions.get(plan.kind).used
    parameters = {"epsilon": float(plan.budget.epsilon_text)}
    if not plan.budget.is_pure:
        parameters["delta"] = float(plan.budget.delta_text)
    return {
        "url_slug": f"{dataset.name}-{claim.job_id[:8]}",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": f"{title} of {dataset.name}",
                "data_curators": [f"{_ASK}name of the organisation"],
                "intended_use": f"{_ASK}what the {used} are used for",
                "data_product_type": "Summary statistics",
                "data_product_region": f"{_ASK}region that the data describe",
                "data_product_sector": f"{_ASK}sector",
                "description": f"{_product(plan)}. {dataset.description}".strip(),
                "publication_date": f"{claim.queued_at:%Y-%m-%d}",
            },
            "dp_variant": {
                "variant_name": "Pure DP" if plan.budget.is_pure else "Approximate DP",
                "data_domain": f"Tables {_columns(plan)}.",
                "unprotected_quantities": f"None of the data. Public facts, stated beforehand: {_PUBLIC}.",
            },
            "privacy_loss": {
                "privacy_unit": f"{unit.capitalize()}-level",
                "privacy_unit_details": (
                    f"Neighbouring datasets: {neighbours(unit)}. Protects {protects(plan, unit)}."
                ),
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"For this release. {_ASK}total of all releases",
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "A trusted curator holds the data and runs the service.",
                "actors": (
                    "- The curator and the operators of the service, who are trusted with the data.\n"
                    "- Analysts, who send requests and see released values alone; they may collude.\n"
                ),
                "release_type": "Many releases",
                "release_type_details": "A ledger counts every release against one total.",
                "data_source_type": "Static",
                "access_type": "Interactive",
                "access_type_details": "Each analyst has a cap within the total of the dataset.",
            },
            "accounting": {
                "post_processing": _AFTERWARDS[plan.kind == CLUSTER],
                "composition": f"Within the release as planned; beyond it {composition}.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": (
                    "Rows are clipped to public bounds. Parameters follow from public numbers."
                ),
                "mechanisms": (
                    f"Cairn {version('cairn-dp')}, algorithm {plan.algorithm}: {_mechanisms(plan)}. Noise is "
                    "drawn exactly, in whole numbers, so that floating-point errors do not enter it."
                ),
                "justification": f"{_ASK}why these parameters",
            },
            "administrative": {
                "sources": f"- Receipt of job {claim.job_id}, signed by the service.\n",
                "registry_authors": [f"{_ASK}who sends this entry"],
            },
        },
    }


def _product(plan: Plan) -> str:
    if plan.kind != CLUSTER:
        return questions.get(plan.kind).released
    if plan.k_range is not None:
        return f"Centres for every k from {plan.k_range.first} to {plan.k_range.last} (k-{plan.objective})"
    return f"Centres of {plan.k} clusters (k-{plan.objective})" if plan.k > 1 else "The centre of one cluster"


def _beside(plan: Plan) -> str:
    return "" if plan.k_range is None else ", and made-up rows drawn from them, none of which is a record"


def _columns(plan: Plan) -> str:
    domain = plan.described
    names = domain.chosen if isinstance(domain, Geometry) else domain.columns
    names = plan.parameters.get("columns", names) if plan.kind != CLUSTER else names
    if domain.kind == "sparse" or len(names) > _SHOWN_COLUMNS:
        return f"with {len(names)} columns"
    return f"with the column{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _mechanisms(plan: Plan) -> str:
    kinds = sorted({str(step.to_json()["mechanism"]["kind"]) for step in plan.steps})
    return f"the mechanism{'s' if len(kinds) > 1 else ''} {', '.join(kinds)}"
