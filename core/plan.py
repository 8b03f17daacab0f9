"""Plans: the measurements of a job, how often and at what loss, from public numbers before a row is read."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from core.data import (
    Domain,
    Geometry,
    Partition,
    PartitionFacts,
    PublicRowFacts,
    PublicRows,
    SiteFacts,
    Sites,
    Stored,
    Table,
)
from core.errors import InvalidRequest, PlanViolation, WorkLimitExceeded
from core.mechanisms.base import Mechanism
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.kinds import mechanism_from_json, mechanism_to_json
from core.privacy.budget import DELTA_UNIT, RHO_UNIT, Budget, units_text, units_up
from core.privacy.composition import Composition, compose
from core.privacy.losses import Loss
from core.privacy.shares import Shares
from core.statistics.scores import BOUNDED_BY_ENTRY

OBJECTIVES = ("means", "medians")
MAX_CLUSTERS = 10_000
#: A range of k may reach this far: every k in it is answered, and stored.
MAX_OPEN_CLUSTERS = 64
#: The kind of plans that find centres; all others ask a question.
CLUSTER = "cluster"
#: Format of stored plans of clusterings.
FORMAT = 2
#: Format of stored plans of questions, which name their kind.
QUESTION_FORMAT = 3
_OTHER_INPUTS = "these are not the public inputs that the plan was made for"


@dataclass(frozen=True)
class KRange:
    """Every number of clusters from `first` to `last`: k is left open between them."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if any(isinstance(k, bool) or not isinstance(k, int) for k in (self.first, self.last)):
            raise InvalidRequest("a range of k must begin and end with a whole number", parameter="k")
        if not 1 <= self.first <= self.last <= MAX_OPEN_CLUSTERS:
            raise InvalidRequest(
                f"a range of k must lie between 1 and {MAX_OPEN_CLUSTERS} and not end before it begins",
                parameter="k",
            )

    def __contains__(self, k: object) -> bool:
        return isinstance(k, int) and self.first <= k <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def to_json(self) -> dict[str, int]:
        return {"from": self.first, "to": self.last}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["from"], data["to"])


@dataclass(frozen=True)
class Request:
    """The request of an analyst; everything in it is public."""

    #: A number, or a range where one release should answer for every number in it.
    k: int | KRange
    budget: Budget
    objective: str = "means"
    algorithm: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    #: On a table: the columns to cluster on, weights in place of their own, and how columns are scaled.
    columns: tuple[str, ...] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    scaling: str = "declared"
    #: Public rows to learn from where that helps; a plan that uses them names them.
    public_rows: PublicRows | PublicRowFacts | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.k, KRange):
            if isinstance(self.k, bool) or not isinstance(self.k, int):
                raise InvalidRequest("k must be a whole number", parameter="k")
            if not 1 <= self.k <= MAX_CLUSTERS:
                raise InvalidRequest(f"k must be between 1 and {MAX_CLUSTERS}", parameter="k")
        if self.objective not in OBJECTIVES:
            raise InvalidRequest(f"objective must be one of {', '.join(OBJECTIVES)}", parameter="objective")

    @property
    def clusters(self) -> int:
        """The number of clusters asked for; of a range, the last."""
        return self.k.last if isinstance(self.k, KRange) else self.k


@dataclass(frozen=True)
class Step:
    """One kind of measurement under one mechanism, at most `repeats` times."""

    name: str
    mechanism: Mechanism
    statistic: str
    repeats: int = 1
    purpose: str = ""
    #: A statistic that released values may call for in its place. The loss is the mechanism's, whatever is
    #: measured under it, so that either costs the same.
    alternative: str = ""

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError("a step is measured at least once")
        for statistic in self.statistics:
            if isinstance(self.mechanism, CoverageChoice) != (statistic == "coverage"):
                raise PlanViolation("coverage is measured by its own mechanism, and by no other")
            if statistic in BOUNDED_BY_ENTRY and self.mechanism.norm != "linf":
                raise PlanViolation(
                    f"{statistic} has no finite {self.mechanism.norm} sensitivity, "
                    f"which {self.mechanism.kind} needs"
                )

    @property
    def statistics(self) -> tuple[str, ...]:
        """The kinds of statistic that may be measured."""
        return (self.statistic, self.alternative) if self.alternative else (self.statistic,)

    @property
    def uses(self) -> int:
        """Number of times the mechanism's loss is incurred: once where it covers all repeats together."""
        return 1 if getattr(self.mechanism, "covers_all_repeats", False) else self.repeats

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "statistic": self.statistic,
            "mechanism": mechanism_to_json(self.mechanism),
            "repeats": self.repeats,
            "purpose": self.purpose,
            **({"alternative": self.alternative} if self.alternative else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "mechanism": mechanism_from_json(data["mechanism"])})


#: Limit on the derived rows that a process caches; beyond it they are derived again in each pass.
KEPT_BYTES = 5e8


@dataclass(frozen=True)
class Work:
    """The work to expect of a run, from public numbers: operations (`core.blocks.work`), and memory."""

    operations: float
    memory_bytes: float

    def __add__(self, other: "Work") -> "Work":
        """The work of both, one after the other, with the memory of both."""
        return Work(self.operations + other.operations, self.memory_bytes + other.memory_bytes)

    def require_within(self, limit: Self) -> None:
        """Refuse work beyond the limit, naming both numbers."""
        for name, asked, most in (
            ("operations", self.operations, limit.operations),
            ("bytes of memory", self.memory_bytes, limit.memory_bytes),
        ):
            if not asked <= most:
                raise WorkLimitExceeded(
                    f"this would take about {asked:.1e} {name}; the limit is {most:.1e}: "
                    "ask for fewer clusters, or smaller options",
                    parameter="k",
                )


#: Part of epsilon that private scaling takes.
SCALING_SHARE = 0.05


def clustering_budget(domain: Domain, budget: Budget) -> Budget:
    """The budget, less what private scaling takes of it."""
    if not isinstance(domain, Geometry) or domain.scaling != "private":
        return budget
    return Budget.at_most(budget.epsilon * (1 - SCALING_SHARE), budget.delta)


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps whose composed loss keeps the budget (else it refuses to exist), and public numbers for a run."""

    algorithm: str
    objective: str
    #: The number of clusters that a run measures.
    k: int
    domain: Domain
    budget: Budget
    steps: tuple[Step, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    forecast: Mapping[str, Any] = field(default_factory=dict)
    work: Work = Work(0.0, 0.0)
    reason: str = ""
    #: Public sites, for algorithms that choose among them; their facts are enough for a plan, not for a run.
    sites: Sites | SiteFacts | None = None
    #: Public rows that a run learns from; their facts are enough for a plan as well.
    public_rows: PublicRows | PublicRowFacts | None = None
    #: The numbers of clusters that the release answers for, where k was left open.
    k_range: KRange | None = None
    kind: str = CLUSTER
    #: Released centres that divide the records of a question; a run needs more than their facts.
    partitions: tuple[Partition | PartitionFacts, ...] = ()

    def __post_init__(self) -> None:
        if len({step.name for step in self.steps}) != len(self.steps):
            raise PlanViolation("two steps of the plan have the same name")
        if not self.composition.within(self.budget):
            raise PlanViolation("the steps of the plan compose to more than its budget")
        json.dumps([self.parameters, self.forecast], allow_nan=False)

    @cached_property
    def losses(self) -> tuple[tuple[Loss, int], ...]:
        """Each step's loss to a person (who may own several rows), and how often it is incurred."""
        rows = self.domain.rows_per_person
        return tuple((step.mechanism.loss.for_group(rows), step.uses) for step in self.steps)

    @cached_property
    def composition(self) -> Composition:
        return compose(self.losses)

    @property
    def epsilon_units(self) -> int:
        return self.budget.epsilon_units

    @property
    def delta_units(self) -> int:
        return self.budget.delta_units

    @property
    def rho_units(self) -> int:
        """The zCDP cost, rounded up."""
        return units_up(self.composition.rho, RHO_UNIT)

    @property
    def approximate_delta_units(self) -> int:
        """The delta that approximate parts spend in addition to rho, rounded up."""
        return math.ceil(self.composition.approximate_delta * DELTA_UNIT)

    @property
    def measurements(self) -> int:
        """Number of measurements planned in all: the length of a progress bar."""
        return sum(step.repeats for step in self.steps)

    @property
    def stored(self) -> Stored:
        """The domain that the rows are stored in."""
        return self.domain.table if isinstance(self.domain, Geometry) else self.domain

    @property
    def described(self) -> Domain | Stored:
        """The domain as a receipt shows it; that of a table names the columns that are clustered on."""
        return self.domain if self.kind == CLUSTER else self.stored

    @property
    def clustering_budget(self) -> Budget:
        """The budget, less what private scaling takes of it."""
        return clustering_budget(self.domain, self.budget)

    def shares(self, with_choices: bool = False) -> Shares:
        """The budget of the clustering, to be split between steps."""
        return Shares(self.clustering_budget, self.domain.rows_per_person, with_choices)

    def step(self, name: str) -> Step:
        for step in self.steps:
            if step.name == name:
                return step
        raise PlanViolation(f"the plan has no step named {name!r}")

    @property
    def inputs(self) -> dict[str, Any]:
        """The public inputs, each by its digest, and what of a table is clustered on."""
        named: dict[str, Any] = {"domain": {"kind": self.domain.kind, "digest": self.domain.fingerprint}}
        if self.kind != CLUSTER:
            return {**named, "partitions": [partition.facts.to_json() for partition in self.partitions]}
        if isinstance(self.domain, Geometry):
            named["clustered"] = self.domain.choices
        if self.sites is not None:
            named["sites"] = asdict(self.sites.facts(self.domain))
        if self.public_rows is not None:
            named["public_rows"] = asdict(self.public_rows.facts)
        return named

    def to_json(self) -> dict[str, Any]:
        """Everything that is promised, and nothing about rows; public inputs are named by their digests."""
        rows = self.domain.rows_per_person
        asked = {
            "format": FORMAT,
            "algorithm": self.algorithm,
            "objective": self.objective,
            "k": self.k,
            **({} if self.k_range is None else {"k_range": self.k_range.to_json()}),
        }
        return {
            **(asked if self.kind == CLUSTER else {"format": QUESTION_FORMAT, "kind": self.kind}),
            "reason": self.reason,
            "inputs": self.inputs,
            "privacy": {
                "epsilon": self.budget.epsilon_text,
                "delta": self.budget.delta_text,
                "rho": units_text(self.rho_units, RHO_UNIT),
                "approximate_delta": units_text(self.approximate_delta_units, DELTA_UNIT),
                "neighbours": "add or remove one record",
                "unit": "row" if rows == 1 else "person",
                "rows_per_person": rows,
            },
            "steps": [step.to_json() for step in self.steps],
            "parameters": dict(self.parameters),
            "forecast": dict(self.forecast),
            "work": asdict(self.work),
        }

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        domain: Stored,
        sites: Sites | None = None,
        partitions: Sequence[Partition] = (),
        public_rows: PublicRows | None = None,
    ) -> Self:
        """Read a plan with exactly the public inputs that it names; without those it cannot be run."""
        if data["format"] not in (FORMAT, QUESTION_FORMAT):
            raise PlanViolation(f"this version reads plans of formats {FORMAT} and {QUESTION_FORMAT} only")
        privacy = data["privacy"]
        asked = _question if data["format"] == QUESTION_FORMAT else _clustering
        plan = cls(
            **asked(data, domain),
            budget=Budget.of(privacy["epsilon"], privacy["delta"]),
            steps=tuple(Step.from_json(step) for step in data["steps"]),
            parameters=data["parameters"],
            forecast=data["forecast"],
            work=Work(**data["work"]),
            reason=data["reason"],
        )
        if plan.inputs != data["inputs"]:
            raise PlanViolation(_OTHER_INPUTS)
        return plan.with_inputs(sites, partitions, public_rows)

    def with_inputs(
        self,
        sites: Sites | None = None,
        partitions: Sequence[Partition] = (),
        public_rows: PublicRows | None = None,
    ) -> Self:
        """The plan with the public inputs whose facts it has, so that it can be run; refuses any others."""
        whole = replace(
            self,
            sites=self.sites if sites is None else sites,
            partitions=tuple(partitions) or self.partitions,
            public_rows=self.public_rows if public_rows is None else public_rows,
        )
        if whole.inputs != self.inputs:
            raise PlanViolation(_OTHER_INPUTS)
        return whole

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: covers every number in it."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def question_domain(stored: Stored) -> Domain:
    """The domain of a question's plan: of a table, all columns that have a value in every row."""
    return Geometry.without_gaps(stored) if isinstance(stored, Table) else stored


def _clustering(data: Mapping[str, Any], domain: Stored) -> dict[str, Any]:
    inputs = data["inputs"]
    sites, public_rows = inputs.get("sites"), inputs.get("public_rows")
    return {
        "algorithm": data["algorithm"],
        "objective": data["objective"],
        "k": data["k"],
        "domain": Geometry.from_json(domain, inputs["clustered"]) if isinstance(domain, Table) else domain,
        "sites": SiteFacts(**sites) if sites else None,
        "public_rows": PublicRowFacts(**public_rows) if public_rows else None,
        "k_range": KRange.from_json(data["k_range"]) if "k_range" in data else None,
    }


def _question(data: Mapping[str, Any], domain: Stored) -> dict[str, Any]:
    facts = [PartitionFacts(**named) for named in data["inputs"]["partitions"]]
    return {
        "algorithm": data["kind"],
        "objective": "",
        "k": max((named.k for named in facts), default=1),
        "domain": question_domain(domain),
        "kind": data["kind"],
        "partitions": tuple(facts),
    }
