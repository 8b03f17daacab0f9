"""Maximum coverage over growing radii: the radii, what the loop may spend, and its picks."""

from __future__ import annotations

import math

import numpy as np

from core.arrays import Floats, Integers
from core.blocks.projection import random_projection
from core.coverage import CoverageLoop, Family
from core.data import Dense
from core.mechanisms import CoverageChoice, LaplaceNoise, Mechanism
from core.privacy import MARGIN, Budget
from core.probe import Probe
from core.views import Encoded, RowView


def growing_radii(largest: float, span: float, growth: float) -> tuple[int, ...]:
    """Whole radii from largest / span up to the largest, each about `growth` times the one before."""
    levels = max(1, math.ceil(math.log(span) / math.log(growth)) + 1)
    radii = {max(1, round(largest / growth**level)) for level in range(levels)}
    return tuple(sorted(radii))


def coverage_for(budget: Budget, accounting: str, share: float, rows_per_person: int) -> CoverageChoice:
    """The loop that spends this share of epsilon on a person with that many rows.

    An accounting other than pure spends half of delta as well.
    """
    epsilon = budget.epsilon * share * (1 - MARGIN)
    if accounting == "pure":
        return CoverageChoice(epsilon / rows_per_person)
    delta = budget.delta / 2 * (1 - MARGIN)
    # A group of m pays m epsilon, and delta times m e^((m-1) epsilon): below what is divided by here.
    alone = delta if rows_per_person == 1 else delta / (rows_per_person * math.exp(epsilon))
    return CoverageChoice(epsilon / rows_per_person, alone, accounting)


def rest_of(budget: Budget, accounting: str, share: float) -> Budget:
    """What a coverage loop with this share leaves of the budget."""
    left = budget.delta if accounting == "pure" else budget.delta / 2
    return Budget.at_most(budget.epsilon * (1 - share), left)


def cover(probe: Probe, step: str, family: Family, rounds: int) -> list[Integers]:
    """The indices that were picked at each level, in `rounds` rounds each."""
    picks = probe.measure(step, CoverageLoop(family, (rounds,) * family.levels))
    return [picks[level * rounds : (level + 1) * rounds] for level in range(family.levels)]


def above_noise(counts: Integers, mechanism: Mechanism) -> Floats:
    """Released counts as weights: zero where noise alone would explain them.

    Of m counts without records, half a one exceeds log(m) times the scale of Laplace noise on average. Many
    small weights at random places would draw centres away from where records are.
    """
    assert isinstance(mechanism, LaplaceNoise)
    return np.where(counts > math.log(max(len(counts), 2)) / mechanism.epsilon, counts, 0).astype(np.float64)


def in_few_dimensions(probe: Probe) -> RowView:
    """Records in as many dimensions as the plan says: projected at random, or as they are."""
    domain, dimension = probe.plan.domain, probe.plan.parameters["dimension"]
    rows = Encoded.of(domain)
    if isinstance(domain, Dense) and domain.dimension == dimension:
        return rows
    return random_projection(rows, dimension, probe.draw("projection"))
