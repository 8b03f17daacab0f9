"""The base of all questions: plans made from public numbers, and runs that see rows through a probe."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.blocks.work import PASS, lloyd_rounds
from core.columns.line import Ranged
from core.data import Column, Dense, Geometry, Partition, PartitionFacts, Stored, Table
from core.errors import InvalidRequest, PlanViolation
from core.mechanisms.noise import AdditiveNoise, additive_noise
from core.options import Option, read_options
from core.plan import Plan, Step, Work, question_domain
from core.privacy import Budget
from core.privacy.sensitivity import Sensitivity
from core.privacy.shares import Shares
from core.probe import Probe, Release
from core.questions.columns import declared_columns, require_columns
from core.questions.view import Lines, Part, Sentence, count_text
from core.views import Assigned, Encoded

#: Most numbers that one question releases.
MOST_CELLS = 200_000
#: A count below this many standard deviations of its noise tells nothing.
_VISIBLE = 2.0
#: Noise is rounded to whole numbers by at most this.
_ROUNDING = 0.5
#: Columns that a form suggests where none were kept for questions.
_FEW_COLUMNS = 3
NOISE = Option.word("noise", "the noise of counts; auto takes what is smaller", "auto", "laplace", "gaussian")
BINS = Option("bins", int, 10, "bins of a number, a date or a time between its bounds", least=1, most=100)


@dataclass(frozen=True)
class Question:
    """A question of an analyst about a dataset; everything in it is public."""

    kind: str
    budget: Budget
    #: Columns to ask about, those kept for questions included; by default all.
    columns: tuple[str, ...] | None = None
    #: Earlier clusterings, for questions about their clusters.
    partitions: tuple[Partition | PartitionFacts, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class QuestionResult:
    """The release of a question: numbers by name (JSON), the plan, and every released value in order."""

    values: dict[str, Any]
    plan: Plan
    draws: Mapping[str, str] = field(default_factory=dict)
    releases: Sequence[Release] = ()


@dataclass(frozen=True)
class OfferedColumn:
    """A column in a form: why it cannot be asked about, or whether it is ticked at first."""

    name: str
    refused: str | None
    suggested: bool
    #: Whether it was kept for questions, and is not clustered on.
    kept: bool


class Kind(ABC):
    """A kind of question: everything about it, from its options to the words and the view of its answer."""

    name: str
    #: In lists and headings, followed by "of" and the name of the dataset.
    title: str
    #: What it tells, as the label of a choice in a form.
    label: str
    #: What it tells, in a line of a list.
    summary: str
    #: What it releases, as the subject of a citation.
    released: str
    #: What of it is used, in an entry of a registry of deployments.
    used: str = "counts"
    options: tuple[Option, ...] = (NOISE,)
    #: Number of clusterings that it is about.
    clusterings: int = 0
    #: Most columns that it takes; 0 where it is about all of them or about none.
    most_columns: int = 1000
    #: Whether forms let people choose columns.
    offers_columns: bool = True
    #: Whether two answers about the same clusters can be set side by side (`differences`).
    has_differences: bool = False
    #: Whether it chooses by score in addition to adding noise to counts.
    chooses: bool = False
    #: Operations for each value that is released, most of them to describe it.
    cell_operations: float = 9_000.0
    #: Operations to list the bins of a column, and which of them each stored number falls into.
    column_operations: float = 1.4e6
    #: Operations to find the bin of a number, and to count it there.
    number_operations: float = 2 * PASS
    #: Operations for each record, in addition to those for its columns and to assign it to a cluster.
    record_operations: float = PASS

    @abstractmethod
    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        """The public numbers (JSON) that a run needs, with `columns`; refuses what could not run."""

    @abstractmethod
    def steps(self, plan: Plan) -> tuple[Step, ...]:
        """The measurements, with their noise; of a plan whose steps may not be listed yet."""

    @abstractmethod
    def entries(self, plan: Plan) -> int:
        """Number of counts that one record changes in the largest measurement."""

    @abstractmethod
    def cells(self, plan: Plan) -> int:
        """Number of values that are released."""

    @abstractmethod
    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        """Measure, and make the answer of what was released."""

    @abstractmethod
    def noise(self, plan: Plan) -> float:
        """Standard deviation of the noise in a count."""

    @abstractmethod
    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        """The answer as people read it; also one that an earlier version stored."""

    @abstractmethod
    def lines(self, answer: Mapping[str, Any]) -> Lines:
        """The answer as a line for each released number."""

    def differences(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[Part, ...]:
        """Two answers about the same clusters side by side, of two datasets or twice of one."""
        raise InvalidRequest(f"answers of kind {self.name} cannot be set side by side: profiles can")

    def bounds(self, answer: Mapping[str, Any], column: Ranged) -> tuple[Any, Any] | None:
        """Bounds of a column that the answer proposes; None where it proposes none."""
        return None

    def refusal(self, column: Column) -> str | None:
        """Why a column cannot be asked about, as the rest of a sentence that begins with its name."""
        return None

    def options_for(self, columns: int) -> tuple[Option, ...]:
        """The options of a question about this number of columns."""
        return self.options

    def expectation(self, forecast: Mapping[str, Any]) -> str:
        """What noise does to the answer, from the forecast of a plan."""
        return f"Counts below about {count_text(forecast['visible_count'])} records are noise."

    def offered_columns(self, stored: Stored) -> tuple[OfferedColumn, ...]:
        """The columns in a form: suggested are those kept for questions, or else the first few."""
        if not self.offers_columns or not isinstance(stored, Table | Dense):
            return ()
        columns = declared_columns(stored)
        refused = {column.name: self.refusal(column) for column in columns}
        fitting = [column for column in columns if refused[column.name] is None]
        kept = [column.name for column in columns if column.role == "keep" and isinstance(stored, Table)]
        first = [column.name for column in fitting if column.name in kept]
        first = first or [column.name for column in fitting[:_FEW_COLUMNS]]
        return tuple(OfferedColumn(name, why, name in first, name in kept) for name, why in refused.items())

    def plan(self, stored: Stored, question: Question) -> Plan:
        """Make a plan: a pure function of public numbers."""
        if len(question.partitions) != self.clusterings:
            count = ("no clustering", "one clustering", "two clusterings")[self.clusterings]
            raise InvalidRequest(f"{self.name} is about {count}", parameter="clusterings")
        if self.most_columns == 0 and question.columns is not None:
            raise InvalidRequest(f"{self.name} takes no columns", parameter="columns")
        columns = self._columns(stored, question)
        options = read_options(self.name, self.options_for(len(columns)), question.options)
        draft = Plan(
            algorithm=self.name,
            objective="",
            k=max((partition.k for partition in question.partitions), default=1),
            domain=question_domain(stored),
            budget=question.budget,
            steps=(),
            parameters=self.parameters(stored, columns, options),
            kind=self.name,
            partitions=question.partitions,
        )
        cells = self.cells(draft)
        if cells > MOST_CELLS:
            raise InvalidRequest(
                f"this would release {cells:,} numbers; the most are {MOST_CELLS:,}: ask about fewer "
                "columns, or with fewer bins",
                parameter="columns",
            )
        budget = _least_noise(draft, self.entries(draft), options["noise"], self.chooses)
        draft = replace(draft, budget=budget)
        planned = replace(draft, steps=self.steps(draft))
        return replace(planned, forecast=self.forecast(planned), work=self.work(planned))

    def typical(self, stored: Stored, question: Question) -> Question:
        """The question with columns and options of typical size, to measure running times with."""
        return question

    def _columns(self, stored: Stored, question: Question) -> tuple[str, ...]:
        """The columns that it is about: those that are named, or all that can be asked about."""
        require_columns(stored, question.columns)
        refused = {column.name: self.refusal(column) for column in declared_columns(stored)}
        if question.columns is None:
            names: Sequence[str] = [name for name, why in refused.items() if why is None]
        else:
            names = question.columns
        columns = require_columns(stored, names, self.most_columns or None)
        for name in columns:
            if refused[name] is not None:
                raise InvalidRequest(f"{name} {refused[name]}", parameter="columns")
        return columns

    def forecast(self, plan: Plan) -> dict[str, float]:
        """The noise to expect in a count, and the count below which noise hides everything."""
        noise = self.noise(plan)
        return {"count_noise": noise, "visible_count": math.ceil(_VISIBLE * noise)}

    def shares(self, plan: Plan) -> Shares:
        """The budget, to be split between steps."""
        return Shares(plan.budget, plan.domain.rows_per_person, self.chooses)

    def work(self, plan: Plan) -> Work:
        """The expected work of a run."""
        size = plan.domain.size
        columns = len(plan.parameters.get("columns", ())) * len(plan.steps)
        counted = columns * (self.number_operations * size + self.column_operations)
        assigned = sum(lloyd_rounds(_narrow(plan, each), each.k, 1) for each in plan.partitions)
        cells = self.cells(plan)
        return Work(
            counted + assigned + self.cell_operations * cells + self.record_operations * size,
            16.0 * min(size, 1 << 24) + 64.0 * cells,
        )

    def run(self, plan: Plan, probe: Probe) -> QuestionResult:
        """Carry a plan out."""
        values = self.ask(plan, probe)
        return QuestionResult(values, plan, dict(probe.draws), tuple(probe.transcript))


def assigned(plan: Plan, place: int = 0) -> Assigned:
    """The records by the clusters of a partition of the plan, which must have been read with its centres."""
    partition = plan.partitions[place]
    if not isinstance(partition, Partition):
        raise PlanViolation("this plan was read without its centres and cannot be run")
    return Assigned(Encoded.of(partition.domain), partition.domain.encode_points(partition.centres))


def count_deviation(step: Step, sensitivity: Sensitivity) -> float:
    """Standard deviation of the noise that a step adds to each count."""
    mechanism = step.mechanism
    assert isinstance(mechanism, AdditiveNoise)  # counts are not chosen from
    return mechanism.deviation() * float(getattr(sensitivity, mechanism.norm))


def count_reach(step: Step, sensitivity: Sensitivity) -> float:
    """How far noise, which is rounded, moves a count in 95 of 100 releases."""
    mechanism = step.mechanism
    assert isinstance(mechanism, AdditiveNoise)
    return mechanism.tail * count_deviation(step, sensitivity) + _ROUNDING


def noise_sentence(answer: Mapping[str, Any]) -> Sentence:
    """How far counts are off, in words."""
    noise = count_text(_VISIBLE * answer["noise"]["count"])
    return Sentence(
        f"Counts are noisy: ±{noise} records in 95 of 100 runs. Intervals, in brackets, hold the exact "
        "number in 95 of 100 runs."
    )


def _narrow(plan: Plan, partition: Partition | PartitionFacts) -> Any:
    """The domain in which records are compared with centres."""
    if not isinstance(plan.domain, Geometry):
        return plan.domain
    clustered = partition.facts.clustered or {}
    return Geometry.from_json(plan.domain.table, clustered)


def _least_noise(plan: Plan, entries: int, wanted: str, chooses: bool) -> Budget:
    """The budget without its delta where Laplace noise is wanted or, with auto, smaller than Gaussian noise.

    One record changes `entries` counts by one: l1 is their number, l2 its root. Delta that is not used is not
    charged.
    """
    if plan.budget.is_pure:
        if wanted == "gaussian":
            raise InvalidRequest("gaussian noise needs a delta above zero", parameter="options.noise")
        return plan.budget
    pure = Budget(plan.budget.epsilon_units)
    if wanted == "auto":
        rows = plan.domain.rows_per_person
        laplace, gaussian = (
            additive_noise(Shares(budget, rows, chooses).noise(1.0)).deviation()
            for budget in (pure, plan.budget)
        )
        wanted = "laplace" if laplace * entries <= gaussian * math.sqrt(entries) else "gaussian"
    return pure if wanted == "laplace" else plan.budget
