"""The base of the regimes: the numbers that a plan stores, and the stages that a run makes of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from core.algorithms.summit.signal import Signal
from core.blocks.base import Block, Clusters
from core.plan import KEPT_BYTES, Plan, Work
from core.probe import Probe


@dataclass(frozen=True, kw_only=True)
class Regime(ABC):
    """One way to cluster. Its fields are what its plans store, in this order, under these names."""

    #: The stored number that tells a plan of this regime; "" where others tell.
    mark: ClassVar[str] = ""

    #: Columns of the random projection in which clusters are found; 0 where none is needed.
    sketch: int = 0
    #: Whether second moments are measured.
    moments: bool
    radius_share: float
    subspace_share: float
    tree_share: float
    explore_share: float = 0.0
    refine_shares: tuple[float, ...]
    tree_axes: int
    tree_depth: int
    tree_levels: int
    explore_rounds: int = 0
    #: Centres of the first rounds, at most.
    explore_centres: int

    @classmethod
    @abstractmethod
    def suits(cls, signal: Signal) -> bool:
        """Whether requests like this one get this regime, if none before it suits."""

    @classmethod
    @abstractmethod
    def tuned(cls, signal: Signal) -> Self:
        """The regime for a request."""

    @abstractmethod
    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        """The stages in the order of their steps."""

    @abstractmethod
    def run(self, plan: Plan, probe: Probe) -> Clusters:
        """Carry the stages out."""

    @abstractmethod
    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""

    @abstractmethod
    def work(self, plan: Plan) -> Work:
        """The expected work of a run."""

    def to_json(self) -> dict[str, Any]:
        """What a plan stores; numbers that only some regimes have are left out where they are zero."""
        common = {field.name for field in fields(Regime)}
        numbers = {**asdict(self), "refine_shares": list(self.refine_shares)}
        return {name: value for name, value in numbers.items() if name in common or value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{**stored, "refine_shares": tuple(stored["refine_shares"])})

    @classmethod
    def like(cls, other: "Regime", **numbers: Any) -> Self:
        """This regime with the numbers of another one, as far as it has them."""
        names = {field.name for field in fields(cls)} & {field.name for field in fields(other)}
        return cls(**{name: getattr(other, name) for name in names} | numbers)


def memory_of(plan: Plan, axes: float) -> Work:
    """What every run keeps: rows along the axes with their nearest centres, and centres in all columns."""
    size = float(plan.domain.size)
    kept = min(2.0 * size * axes + 16.0 * size, KEPT_BYTES)
    return Work(0.0, kept + 32.0 * plan.k * plan.domain.dimension + 6e7)
