"""Chaturvedi et al. (2021) for k-means: maximum coverage over a grid in a projection, noisy averages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.arrays import Floats, Integers
from core.blocks.averages import AVERAGES, Averages, noisy_averages, refine, refining_steps
from core.blocks.forecast import forecast_of
from core.blocks.max_coverage import (
    above_noise,
    cover,
    coverage_for,
    growing_radii,
    in_few_dimensions,
    rest_of,
)
from core.blocks.projection import dimension_for
from core.coverage import CoverageLoop, GridBalls
from core.data import UNITS, Domain
from core.mechanisms import LaplaceNoise
from core.plan import Plan, Request, Step, Work
from core.postprocessing.kmeans import weighted_kmeans
from core.privacy import MARGIN, Budget, gaussian_mu
from core.probe import Probe
from core.statistics import ClusterCounts
from core.views import Assigned

#: Shares of epsilon of the coverage loop and of the counts; averages get the rest.
COVER_SHARE, COUNT_SHARE = 0.15, 0.1
#: The part of the rest that the first averages get; Lloyd's round gets what is left.
RECOVERY = 0.3
#: A grid of more dimensions would be nearly all empty.
MOST_DIMENSIONS = 5
#: Radii reach from that of the projected ball down to this part of it.
SPAN = 32.0
GROWTH = 2.0
#: Grid points lie this part of the radius apart; a grid point's set holds cells within sqrt(REACH) steps.
SPACING = 0.75
REACH = 2
MOST_ROUNDS = 1000


class Chaturvedi(Algorithm):
    """The paper's Algorithms 1 to 3, corrected; the argument is in `chaturvedi.md`."""

    name = "chaturvedi"
    summary = "maximum coverage over a grid in a projection, noisy averages, one round of Lloyd's algorithm"
    objectives = ("means",)
    guarantee = "approximate"
    domains = ("dense", "sparse")
    options = (
        Option("dimension", int, None, "dimensions of the projection", least=1, most=MOST_DIMENSIONS),
        Option(
            "rounds",
            int,
            None,
            "picks at each radius; by default three for two clusters",
            least=1,
            most=MOST_ROUNDS,
        ),
        Option("growth", float, GROWTH, "each radius is this many times the one before", least=1.25, most=16),
        Option("span", float, SPAN, "the largest radius is this many times the smallest", least=1, most=256),
        Option("lloyd", int, 1, "rounds of Lloyd's algorithm at the end", least=0, most=100),
        Option("averages", str, "tight", "constants of the noise in averages", choices=AVERAGES),
        Option(
            "accounting",
            str,
            "pure",
            "how the coverage loop is accounted for",
            choices=("pure", "approximate", "chaturvedi"),
        ),
    )

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        dimension = min(chosen["dimension"] or MOST_DIMENSIONS, dimension_for(domain.size), domain.dimension)
        rounds = chosen["rounds"] or min(math.ceil(1.5 * request.k), MOST_ROUNDS)
        radii = growing_radii(UNITS, chosen["span"], chosen["growth"])
        spacings = sorted({max(1, round(SPACING * radius)) for radius in radii})
        loop = coverage_for(request.budget, chosen["accounting"], COVER_SHARE, domain.rows_per_person)
        counts = request.budget.epsilon * COUNT_SHARE * (1 - MARGIN) / domain.rows_per_person
        rest = rest_of(request.budget, chosen["accounting"], COVER_SHARE + COUNT_SHARE)
        steps = (
            Step(
                "cover", loop, CoverageLoop.kind, rounds * len(spacings), "grid points near uncovered records"
            ),
            Step("counts", LaplaceNoise(counts), ClusterCounts.kind, 1, "records nearest to each grid point"),
            *_averaging(domain, rest, chosen),
        )
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=steps,
            parameters={
                **chosen,
                "dimension": dimension,
                "rounds": rounds,
                "spacings": spacings,
                "weight_per_record": loop.eta,
                "kept": loop.keep / 2**64,
            },
            forecast=forecast_of(steps, domain, request.k, radius=None if chosen["lloyd"] else UNITS),
            work=_work(domain, request.k, dimension, rounds * len(spacings), chosen["lloyd"]),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        given = plan.parameters
        view = in_few_dimensions(probe)
        family = GridBalls(view, tuple(given["spacings"]), REACH)
        picks = cover(probe, "cover", family, given["rounds"])
        points = np.unique(
            np.concatenate([family.points(level, found) for level, found in enumerate(picks)]), axis=0
        )
        counts = probe.measure("counts", ClusterCounts(Assigned(view, points)))
        weights = above_noise(counts, plan.step("counts").mechanism)
        seeds = _seeds(points, weights, plan.k, probe.draw("proxy"))
        centres, sizes = noisy_averages(probe, Assigned(view, np.rint(seeds).astype(np.int64)))
        if given["lloyd"]:
            centres, sizes = refine(probe, centres, given["lloyd"], medians=False)
        return Clustering(plan.domain.decode(centres), sizes, plan, dict(probe.draws))


def _averaging(domain: Domain, budget: Budget, chosen: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps after the proxy: averages of its clusters, then rounds of Lloyd's algorithm."""
    rounds, rows = chosen["lloyd"], domain.rows_per_person
    first = RECOVERY if rounds else 1.0
    if chosen["averages"] == "tight":
        mu = gaussian_mu(budget) / rows
        averages = Averages.tight(mu * math.sqrt(first), domain.dimension)
        left = mu * math.sqrt(1 - first)
    else:
        delta = budget.delta / 2 if rounds else budget.delta
        averages = Averages.paper(Budget.at_most(budget.epsilon * first, delta), rows)
        left = gaussian_mu(Budget.at_most(budget.epsilon * (1 - first), delta)) / rows if rounds else 0.0
    return (*averages.steps(), *(refining_steps(left, rounds, domain.dimension) if rounds else ()))


def _seeds(points: Integers, weights: Floats, k: int, draw: np.random.Generator) -> Floats:
    """k centres of the weighted points; what is missing is filled with random points of the ball."""
    seeds = weighted_kmeans(points.astype(np.float64), weights, k, draw)
    filling = draw.normal(size=(k - len(seeds), points.shape[1]))
    filling *= UNITS / np.maximum(np.linalg.norm(filling, axis=1, keepdims=True), 1.0)
    return np.concatenate([seeds, filling])


def _work(domain: Domain, k: int, dimension: int, picks: int, lloyd: int) -> Work:
    size = float(domain.size)
    around = float(len(GridBalls.offsets_within(dimension, REACH)))
    return Work(
        operations=size
        * (
            domain.dimension * (dimension + 2.0 * (k + 1) * (lloyd + 1))
            + 40.0 * around
            + 4.0 * picks * dimension
        ),
        memory_bytes=size * (8.0 * dimension + 24.0 + 16.0 * around) + 32.0 * k * domain.dimension,
    )
