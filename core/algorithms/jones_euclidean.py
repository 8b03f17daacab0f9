"""Jones et al. (2021) in Euclidean space: released candidates, maximum coverage over them, noisy averages."""

from __future__ import annotations

import math

import numpy as np

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.arrays import Integers
from core.blocks.averages import Averages, noisy_averages, refine, refining_steps
from core.blocks.forecast import forecast_of
from core.blocks.hashing import hashed_candidates, hashing_steps
from core.blocks.max_coverage import (
    above_noise,
    cover,
    coverage_for,
    growing_radii,
    in_few_dimensions,
    rest_of,
)
from core.blocks.partition_trees import active_limit, candidate_points, grow_partition
from core.blocks.projection import dimension_for
from core.coverage import Balls, CoverageLoop
from core.data import UNITS, Domain
from core.mechanisms import LaplaceNoise, threshold
from core.plan import Plan, Request, Step, Work
from core.postprocessing.kmeans import weighted_kmeans
from core.postprocessing.medoids import weighted_medians
from core.privacy import MARGIN, Gaussian, gaussian_mu
from core.probe import Probe
from core.statistics import ClusterCounts, CubeCounts
from core.views import Assigned, RowView

#: Shares of epsilon of the coverage loop and of the counts at picked candidates.
COVER_SHARE, COUNT_SHARE = 0.15, 0.1
#: Shares of the rest, which is Gaussian: candidates, first averages; the last round gets what is left.
CANDIDATES, RECOVERY = 0.2, 0.3
MOST_DIMENSIONS = 5
SPAN = 16.0
GROWTH = 2.0
MOST_ROUNDS = 1000
MOST_CANDIDATES = 2000
TREES, DEPTH = 4, 6
#: Widths of the buckets of six tables: a half, a quarter and an eighth of the ball's radius, each twice.
_BUCKET_WIDTHS = tuple(UNITS >> halvings for halvings in (1, 2, 3) for _ in range(2))


class JonesEuclidean(Algorithm):
    """The paper's section 5 with released candidates; the argument is in `jones_euclidean.md`."""

    name = "jones-euclidean"
    summary = "candidates from partition trees or hashing, maximum coverage over them, noisy averages"
    objectives = ("means", "medians")
    guarantee = "approximate"
    domains = ("dense", "sparse")
    options = (
        Option("candidates", str, "trees", "where candidates come from", choices=("trees", "hashing")),
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
        Option(
            "accounting",
            str,
            "pure",
            "how the coverage loop is accounted for",
            choices=("pure", "approximate", "jones"),
        ),
    )

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        dimension = min(chosen["dimension"] or MOST_DIMENSIONS, dimension_for(domain.size), domain.dimension)
        rounds = chosen["rounds"] or min(math.ceil(1.5 * request.k), MOST_ROUNDS)
        radii = growing_radii(UNITS, chosen["span"], chosen["growth"])
        rows = domain.rows_per_person
        loop = coverage_for(request.budget, chosen["accounting"], COVER_SHARE, rows)
        counts = request.budget.epsilon * COUNT_SHARE * (1 - MARGIN) / rows
        mu = gaussian_mu(rest_of(request.budget, chosen["accounting"], COVER_SHARE + COUNT_SHARE)) / rows
        picks = rounds * len(radii)
        steps = (
            *_candidate_steps(chosen["candidates"], mu * math.sqrt(CANDIDATES), dimension),
            Step("cover", loop, CoverageLoop.kind, picks, "candidates near records not covered before"),
            Step("counts", LaplaceNoise(counts), ClusterCounts.kind, 1, "records nearest to each of them"),
            *Averages.tight(mu * math.sqrt(RECOVERY), domain.dimension).steps(),
            *refining_steps(mu * math.sqrt(1 - CANDIDATES - RECOVERY), 1, domain.dimension),
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
                "radii": list(radii),
                "weight_per_record": loop.eta,
                "kept": loop.keep / 2**64,
            },
            forecast=forecast_of(
                steps, domain, request.k, radius=None, positions=request.objective == "means"
            ),
            work=_work(domain, request.k, dimension, picks, len(radii)),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        given = plan.parameters
        view = in_few_dimensions(probe)
        candidates = _candidates(probe, view)
        family = Balls(view, candidates, tuple(given["radii"]))
        picks = np.unique(np.concatenate(cover(probe, "cover", family, given["rounds"])))
        points = candidates[picks]
        counts = probe.measure("counts", ClusterCounts(Assigned(view, points)))
        weights = above_noise(counts, plan.step("counts").mechanism)
        medians = plan.objective == "medians"
        solve = weighted_medians if medians else weighted_kmeans
        seeds = solve(points.astype(np.float64), weights, plan.k, probe.draw("proxy"))
        seeds = np.concatenate([seeds, candidates[: plan.k - len(seeds)]])
        centres, _ = noisy_averages(probe, Assigned(view, np.rint(seeds).astype(np.int64)))
        centres, sizes = refine(probe, centres, 1, medians)
        details = {"candidates": len(candidates)}
        return Clustering(plan.domain.decode(centres), sizes, plan, dict(probe.draws), details)


def _candidate_steps(source: str, mu: float, dimension: int) -> tuple[Step, ...]:
    if source == "hashing":
        return hashing_steps(_BUCKET_WIDTHS, mu, dimension, UNITS)
    loss = Gaussian(mu / math.sqrt(TREES * DEPTH))
    active = threshold(loss, active_limit(loss, dimension))
    return (Step("trees", active, CubeCounts.kind, TREES * DEPTH, "cubes with many records"),)


def _candidates(probe: Probe, view: RowView) -> Integers:
    """Released points near many records; at least k and at most `MOST_CANDIDATES` of them."""
    draw = probe.draw("candidates")
    if probe.plan.parameters["candidates"] == "hashing":
        found = hashed_candidates(probe, view, _BUCKET_WIDTHS, draw, MOST_CANDIDATES)
    else:
        trees = [grow_partition(probe, "trees", view, DEPTH, draw, MOST_CANDIDATES) for _ in range(TREES)]
        found = np.concatenate(trees)
    return candidate_points(found, probe.plan.k, max(probe.plan.k, MOST_CANDIDATES), draw)


def _work(domain: Domain, k: int, dimension: int, picks: int, levels: int) -> Work:
    size = float(domain.size)
    return Work(
        operations=size
        * (
            domain.dimension * (dimension + 4.0 * (k + 1))
            + TREES * DEPTH * (dimension + 40.0)
            + MOST_CANDIDATES * (levels + 1.0) * (dimension + 2.0)
            + 2.0 * picks * dimension
        ),
        memory_bytes=size * (8.0 * dimension + 64.0) + 64.0 * k * domain.dimension + 1e8,
    )
