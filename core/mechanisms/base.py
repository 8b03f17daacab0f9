"""The protocol of mechanisms: randomised functions of a total that know their loss.

A mechanism is fixed by the plan and knows no data. It receives the exact integer total and the declared
sensitivity, and returns all that is released. Its loss is the same for any total, released scale and shape.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

from core.arrays import Integers
from core.privacy.losses import Loss
from core.privacy.sensitivity import Norm, Sensitivity

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
