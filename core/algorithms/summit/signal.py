"""What a request can learn about a domain: public numbers that choose a regime and its shares."""

import math
from dataclasses import dataclass
from functools import cached_property

from core.data import Domain
from core.errors import EpsilonTooSmall
from core.plan import KRange, Request
from core.privacy.shares import Shares

PURE_AS_MU = 1 / 3  # A pure epsilon is worth about this share of it as mu.
PLENTY = 30.0  # Records for each centre, times mu, from which on three rounds of each kind beat two.
LEAST_COUNTED = 4.0  # Fewer declared records than this many standard deviations of their count are refused.


@dataclass(frozen=True)
class Signal:
    """A domain and a request with the strength of the budget; `k` is the number of clusters to measure."""

    domain: Domain
    request: Request
    k: int

    @classmethod
    def of(cls, domain: Domain, request: Request) -> "Signal":
        return cls(domain, request, request.clusters)

    @cached_property
    def shares(self) -> Shares:
        return Shares(self.request.budget, self.domain.rows_per_person)

    @property
    def size(self) -> int:
        return self.domain.size

    @property
    def width(self) -> int:
        return self.domain.dimension

    @property
    def pure(self) -> bool:
        return self.request.budget.is_pure

    @property
    def strength(self) -> float:
        """The budget as a mu, roughly."""
        return self.shares.total * (PURE_AS_MU if self.pure else 1.0)

    @property
    def power(self) -> float:
        """N * mu: all records against the noise of one count."""
        return self.size * self.strength

    @property
    def per_centre(self) -> float:
        return self.power / self.k

    @property
    def plenty(self) -> bool:
        return self.per_centre >= PLENTY

    @property
    def open_k(self) -> bool:
        return isinstance(self.request.k, KRange)

    @property
    def single_means(self) -> bool:
        """Whether means of one k are asked for, under epsilon and delta: the case with most regimes."""
        return self.request.objective == "means" and not (self.open_k or self.pure)

    def require_enough(self) -> None:
        """Refuse a budget too small to measure even the order of the number of records."""
        spread = 1 / self.shares.total * (math.sqrt(2) if self.pure else 1.0)
        least = LEAST_COUNTED * spread
        if self.size < least:
            raise EpsilonTooSmall(
                f"this budget is too small for fewer than about {math.ceil(least)} records, and the dataset "
                f"is declared to have {self.size}: ask for a larger epsilon",
                parameter="epsilon",
            )
