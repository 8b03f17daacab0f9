"""Lower confidence bounds on a privacy loss, from how often events happen on two neighbouring datasets.

An event is a threshold of a score: "the score is at least `cut`". Thresholds are chosen on a pilot, and
counted on other runs. If an event has probability q on one dataset and p on its neighbour, the loss is at
least log((p - delta) / q) as an epsilon at delta, and at least the difference of their normal quantiles as a
mu of Gaussian DP. Confidence sequences replace p and q: they hold at every number of runs at once, so a
campaign may look at its bounds at any time, stop where they are clear and go on where they are loose. A bound
above what was declared proves, at the stated confidence, that something is broken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betaln, ndtri
from scipy.stats import beta

from core.privacy.composition import Composition, compose
from core.privacy.losses import Approximate, Gaussian, Loss
from tests.support.privacy import epsilon_at, gaussian_epsilon, is_pure

__all__ = ["ALPHA", "STEP_DELTA", "Claim", "Event", "Rate", "Scores", "choose_events", "lower", "upper"]

Floats = npt.NDArray[np.float64]

#: Chance that the bound of one claim is wrong.
ALPHA = 1e-6
#: A pilot's frequencies may be off by chance with this probability.
_DOUBT = 0.02
#: A mechanism alone is judged at this delta where it is not pure.
STEP_DELTA = 1e-3
_TINY = 1e-15


def upper(hits: int, runs: int, alpha: float) -> float:
    """Clopper-Pearson: the event's probability is at most this, except with probability alpha."""
    return 1.0 if hits >= runs else float(beta.isf(alpha, hits + 1, runs - hits))


def lower(hits: int, runs: int, alpha: float) -> float:
    """Clopper-Pearson: the event's probability is at least this, except with probability alpha."""
    return 0.0 if hits == 0 else float(beta.ppf(alpha, hits, runs - hits + 1))


@dataclass(frozen=True)
class Rate:
    """How often an event was seen, beside what a pilot expects: `expected` of `weight` runs.

    The interval is a confidence sequence (Robbins): the likelihood of the runs under a mixture, here a beta
    distribution about the pilot's estimate, is ever 1/alpha times that under the true probability only with
    probability alpha (Ville). A good pilot makes it nearly as short as an interval for one moment.
    """

    hits: int = 0
    runs: int = 0
    expected: float = 0.5
    weight: float = 1.0

    def counted(self, seen: npt.NDArray[np.bool_]) -> Rate:
        return replace(self, hits=self.hits + int(seen.sum()), runs=self.runs + len(seen))

    @property
    def mean(self) -> float:
        return self.hits / self.runs if self.runs else self.expected

    def interval(self, alpha: float) -> tuple[float, float]:
        """The event's probability lies in it at every time, except with probability alpha."""
        if self.runs == 0:
            return 0.0, 1.0
        a, b = 0.5 + self.weight * self.expected, 0.5 + self.weight * (1 - self.expected)
        misses = self.runs - self.hits
        evidence = float(betaln(a + self.hits, b + misses) - betaln(a, b)) + math.log(alpha)

        def excess(p: float) -> float:
            return evidence - self.hits * math.log(p) - misses * math.log1p(-p)

        # Nothing is excluded on a side that a poor pilot knows nothing about.
        middle = min(max(self.mean, _TINY), 1 - _TINY)
        least = brentq(excess, _TINY, middle, xtol=_TINY) if self.hits and excess(_TINY) > 0 else 0.0
        most = brentq(excess, middle, 1 - _TINY, xtol=_TINY) if misses and excess(1 - _TINY) > 0 else 1.0
        return float(least), float(most)


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
    rare: Rate = Rate()
    common: Rate = Rate()

    def counted(self, scores: Scores) -> Event:
        """The event with further runs counted in."""
        rare, common = (scores.without, scores.with_it) if self.rising else (-scores.with_it, -scores.without)
        return replace(
            self, rare=self.rare.counted(rare >= self.cut), common=self.common.counted(common >= self.cut)
        )

    def bound(self, claim: Claim, alpha: float) -> float:
        """The loss is at least this, at every time, except with probability alpha."""
        return claim.loss(self.common.interval(alpha / 2)[0], self.rare.interval(alpha / 2)[1])

    def estimate(self, claim: Claim) -> float:
        """The loss that the frequencies themselves say: what the bound comes to with more and more runs."""
        return claim.loss(self.common.mean, max(self.rare.mean, 0.5 / max(self.rare.runs, 1)))


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
        bound = claim.loss(
            lower(math.floor(least * runs), runs, ALPHA / 2), upper(math.ceil(most * runs), runs, ALPHA / 2)
        )
        return bound, often - seldom

    cut = float(max(cuts, key=promise))
    seen = [(scores >= cut) for scores in (rare, common)]
    expected = [Rate(expected=(each.sum() + 0.5) / (len(each) + 1), weight=len(each)) for each in seen]
    return Event(name, rising, cut, *expected)
