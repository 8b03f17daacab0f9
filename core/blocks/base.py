"""The base of all blocks: stages of an algorithm that declare their steps and run them."""

from dataclasses import dataclass, field
from typing import Any

from core.arrays import Floats, Integers
from core.mechanisms.base import Mechanism
from core.mechanisms.noise import AdditiveNoise, LaplaceNoise
from core.plan import Plan, Step
from core.postprocessing.spread import CountNoise
from core.postprocessing.synopsis import Cells
from core.probe import Probe


@dataclass(frozen=True, eq=False)
class Clusters:
    """Released centres in encoded units, with noisy sizes and the radii their records were clipped to."""

    centres: Floats
    sizes: Floats | None = None
    #: In encoded units; None where all were clipped to the bounds.
    radii: Floats | None = None
    #: Further released numbers worth showing, as JSON.
    details: dict[str, Any] = field(default_factory=dict)
    #: What was released of fine clusters, where k is open: everything else follows from it.
    cells: Cells | None = None


class Block:
    """A stage of an algorithm: `steps` declares what it measures, `run` (of each block) measures it.

    It is built from the public numbers of a plan; `prefix` tells the steps of two blocks of one kind apart.
    """

    prefix: str = ""

    def steps(self) -> tuple[Step, ...]:
        """The measurements of this block, with their noise."""
        raise NotImplementedError

    @property
    def clip(self) -> int | str | None:
        """The radius behind the noise in this block's centres: fixed, `RELEASED`, or None.

        None where centres are not noisy means, so that nothing can be said about their noise.
        """
        return None

    def step(
        self, name: str, mechanism: Mechanism, statistic: type[Any], repeats: int = 1, purpose: str = ""
    ) -> Step:
        return Step(self.prefix + name, mechanism, statistic.kind, repeats, purpose)

    def measure(self, probe: Probe, name: str, statistic: Any) -> Integers:
        return probe.measure(self.prefix + name, statistic)

    def deviation(self, plan: Plan, name: str, width: int = 1) -> float:
        """Standard deviation of the noise in an entry of scale one, in rows of this width."""
        mechanism = plan.step(self.prefix + name).mechanism
        if not isinstance(mechanism, AdditiveNoise):
            raise ValueError(f"step {name!r} adds no noise: it chooses")
        return mechanism.deviation(width)

    def count_noise(self, plan: Plan, name: str) -> CountNoise:
        """The law of the noise in a count that a step of this block measures."""
        mechanism = plan.step(self.prefix + name).mechanism
        return CountNoise(self.deviation(plan, name), isinstance(mechanism, LaplaceNoise))
