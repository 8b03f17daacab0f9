"""The protocol of mechanisms: randomised functions of a total that know their loss.

A mechanism is fixed by the plan and knows no data. At a measurement it receives the exact integer total and
the statistic's declared sensitivity, and returns the only thing that is released. The loss is the same for
every total, every released scale and every shape.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

from core.arrays import Integers
from core.privacy import Loss, Norm, Sensitivity

#: Quotients of doubles are rounded; scales are enlarged (rates lowered) by more than that.
OUTWARDS = 1 + 2.0**-50


@runtime_checkable
class Mechanism(Protocol):
    """A randomised function of a total; a frozen dataclass of JSON numbers."""

    kind: ClassVar[str]
    #: In which norm a statistic must be bounded.
    norm: ClassVar[Norm]

    @property
    def loss(self) -> Loss:
        """The loss of one use to one record."""

    def release(self, total: Any, sensitivity: Sensitivity) -> Integers:
        """The released values; `total` is an array, or for some mechanisms `SparseCounts`."""
