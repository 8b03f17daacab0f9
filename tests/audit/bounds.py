"""Lower confidence bounds on a privacy loss, from how often events happen on two neighbouring datasets.

An event is a threshold of a score: "the score is at least `cut`". Thresholds are chosen on a pilot, and
counted on other runs. If an event has probability q on one dataset and p on its neighbour, the loss is at
least log((p - delta) / q) as an epsilon at delta, and at least the difference of their normal quantiles as a
mu of Gaussian DP. Clopper-Pearson bounds replace p and q, so a bound above what was declared proves, at the
stated confidence, that something is broken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import beta

from core.privacy.composition import Composition, compose
from core.privacy.losses import Approximate, Gaussian, Loss
from tests.support.privacy import epsilon_at, gaussian_epsilon, is_pure

__all__ = ["ALPHA", "STEP_DELTA", "Claim", "Event", "Scores", "choose_events", "lower", "upper"]

Floats = npt.NDArray[np.float64]

#: Chance that the bound of one claim is wrong.
ALPHA = 1e-6
#: A pilot's frequencies may be off by chance with this probability.
_DOUBT = 0.02
#: A mechanism alone is judged at this delta where it is not pure.
STEP_DELTA = 1e-3


def upper(hits: int, runs: int, alpha: float) -> float:
    """Clopper-Pearson: the event's probability is at most this, except with probability alpha."""
    return 1.0 if hits >= runs else float(beta.isf(alpha, hits + 1, runs - hits))


def lower(hits: int, runs: int, alpha: float) -> float:
    """Clopper-Pearson: the event's probability is at least this, except with probability alpha."""
    return 0.0 if hits == 0 else float(beta.ppf(alpha, hits, runs - hits + 1))


@dataclass(frozen=True)
class Claim:
    """What was declared: a loss as (epsilon, delta), and as a mu where it is Gaussian throughout."""

    epsilon: float
    delta: float
    mu: float | None = None

    @classmethod
    def of(cls, losses: Iterable[tuple[Loss, int]], delta: float) -> Claim:
        """The claim that some steps make together, at a delta of zero where they are pure."""
        parts = list(losses)
        match parts:
            case [(Approximate(epsilon, own), 1)]:
                return cls(epsilon, own)
        whole: Composition = compose(parts)
        if is_pure(whole):
            return cls(float(whole.pure), 0.0)
        gaussian = all(isinstance(loss, Gaussian) for loss, _ in parts)
        return cls(epsilon_at(whole, delta), delta, math.sqrt(whole.mu_squared) if gaussian else None)

    @property
    def limit(self) -> float:
        """What a bound must not exceed: mu where there is one, else epsilon."""
        return self.epsilon if self.mu is None else self.mu

    def loss(self, common: float, rare: float) -> float:
        """The least mu, or epsilon at delta, that is possible with these two probabilities of an event."""
        if common <= self.delta or not 0 < rare < 1:
            return 0.0
        if self.mu is not None:
            return max(0.0, float(ndtri(common) - ndtri(rare)))
        return max(0.0, math.log((common - self.delta) / rare))

    def epsilon_of(self, loss: float) -> float:
        """A bound as an epsilon at the claim's delta."""
        return loss if self.mu is None or loss == 0 else gaussian_epsilon(loss, self.delta)


@dataclass(frozen=True)
class Scores:
    """Scores of independent runs on a dataset and on the one with a record more."""

    without: Floats
    with_it: Floats


@dataclass(frozen=True)
class Event:
    """Scores of at least `cut` (or of at most, where not `rising`), and how often they were seen.

    A rising event is the common one on the larger dataset, a falling one on the smaller.
    """

    score: str
    rising: bool
    cut: float
    rare_hits: int = 0
    rare_runs: int = 0
    common_hits: int = 0
    common_runs: int = 0

    def counted(self, scores: Scores) -> Event:
        """The event with further runs counted in."""
        rare, common = (scores.without, scores.with_it) if self.rising else (-scores.with_it, -scores.without)
        return replace(
            self,
            rare_hits=self.rare_hits + int((rare >= self.cut).sum()),
            rare_runs=self.rare_runs + len(rare),
            common_hits=self.common_hits + int((common >= self.cut).sum()),
            common_runs=self.common_runs + len(common),
        )

    def bound(self, claim: Claim, alpha: float) -> float:
        """The loss is at least this, except with probability alpha."""
        if min(self.rare_runs, self.common_runs) == 0:
            return 0.0
        common = lower(self.common_hits, self.common_runs, alpha / 2)
        return claim.loss(common, upper(self.rare_hits, self.rare_runs, alpha / 2))


def choose_events(pilots: dict[str, Scores], claim: Claim, runs: int) -> list[Event]:
    """For each score and direction the threshold that would prove most in so many runs on each dataset."""
    return [
        _best(name, rising, scores, claim, runs)
        for name, scores in pilots.items()
        for rising in (True, False)
    ]


def _best(name: str, rising: bool, scores: Scores, claim: Claim, runs: int) -> Event:
    rare, common = (scores.without, scores.with_it) if rising else (-scores.with_it, -scores.without)
    cuts = np.unique(np.quantile(np.concatenate([rare, common]), np.linspace(0, 1, 120), method="lower"))

    def promise(cut: float) -> tuple[float, int]:
        often, seldom = int((common >= cut).sum()), int((rare >= cut).sum())
        # A rare event of the pilot was perhaps rare by luck: reckon with less than was seen.
        least, most = lower(often, len(common), _DOUBT), upper(seldom, len(rare), _DOUBT)
        event = Event(name, rising, cut, math.ceil(most * runs), runs, math.floor(least * runs), runs)
        return event.bound(claim, ALPHA), often - seldom

    return Event(name, rising, float(max(cuts, key=promise)))
