"""Balcan et al. (2017) for k-means: candidates in a projection, swaps, noisy averages, Lloyd's rounds."""

from __future__ import annotations

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.blocks.forecast import forecast_of
from core.blocks.lloyd import clipped_rounds, clipped_steps, lloyd_rounds, lloyd_steps, sum_share
from core.blocks.recovery import best_trial, mean_steps, trial_steps
from core.blocks.selection import Settings, selection_steps, settings_for
from core.data import UNITS, Domain
from core.plan import Plan, Request, Step, Work
from core.privacy import Split
from core.probe import Probe

SELECTION_OPTIONS = (
    Option(
        "constants",
        str,
        "experiments",
        "where unset options come from: the paper's experiments, or its theorems",
        choices=("experiments", "printed"),
    ),
    Option("dimension", int, None, "dimensions of the projection", least=1, most=1000),
    Option("trees", int, None, "how many shifted partition trees are grown", least=1, most=1_000_000),
    Option("depth", int, None, "levels of a partition tree", least=1, most=17),
    Option("threshold", int, None, "noisy count above which a cube is split further", least=0, most=10**9),
    Option("candidates", int, None, "at most so many candidates are kept", least=1, most=1_000_000),
    Option("swaps", int, None, "how many swaps of local search", least=0, most=1_000_000),
    Option(
        "trials", int, None, "independent trials, of which the best is picked privately", least=1, most=100
    ),
)

#: Shares of the budget (of epsilon, or of rho); refinement gets what the others leave.
TREES, SWAPS, RECOVERY, TRIAL = 0.1, 0.1, 0.1, 0.05


class Balcan(Algorithm):
    """The paper's Algorithms 1 to 4, corrected; the argument is in `balcan.md`."""

    name = "balcan"
    summary = "candidates from partition trees in a projection, local swaps, noisy averages, Lloyd's rounds"
    objectives = ("means",)
    guarantee = "either"
    domains = ("dense", "sparse")
    options = (
        *SELECTION_OPTIONS,
        Option("rounds", int, 8, "rounds of Lloyd's algorithm that refine the centres", least=0, most=100),
        Option(
            "clipping",
            str,
            "released",
            "what refinement clips to: radii that each round releases, or the radius of the domain",
            choices=("released", "domain"),
        ),
    )

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        settings = settings_for(domain, request.k, chosen)
        split = Split(request.budget, domain.rows_per_person)
        rounds, clipping = chosen["rounds"], chosen["clipping"]
        left = 1.0 - TREES - SWAPS - (TRIAL if settings.trials > 1 else 0.0)
        recovery = RECOVERY if rounds else left
        steps = (
            *selection_steps(settings, split, TREES, SWAPS),
            *mean_steps(settings, split, recovery, domain.dimension),
            *trial_steps(settings, split, TRIAL),
            *_refinement(split, left - recovery, rounds, domain.dimension, clipping),
        )
        released = rounds > 0 and clipping == "released"
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=steps,
            parameters={**settings.to_json(), "rounds": rounds, "clipping": clipping},
            forecast=forecast_of(steps, domain, request.k, radius=None if released else UNITS),
            work=refinement_work(settings, domain, request.k, rounds),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        centres, sizes = best_trial(probe, Settings.from_json(plan.parameters))
        rounds = plan.parameters["rounds"]
        if rounds and plan.parameters["clipping"] == "domain":
            centres, sizes = lloyd_rounds(probe, centres, UNITS, rounds, "refine-")
        elif rounds:
            centres, sizes = clipped_rounds(probe, centres, rounds)
        return Clustering(plan.domain.decode(centres), sizes, plan, dict(probe.draws))


def _refinement(split: Split, fraction: float, rounds: int, width: int, clipping: str) -> tuple[Step, ...]:
    if rounds == 0:
        return ()
    if clipping == "released":
        return clipped_steps(split, fraction, rounds, width)
    share = sum_share(width)
    sums, counts = split.noise(fraction * share, rounds), split.noise(fraction * (1 - share), rounds)
    return lloyd_steps(sums, counts, rounds, "refine-")


def refinement_work(settings: Settings, domain: Domain, k: int, rounds: int) -> Work:
    """What selection, recovery and refinement take together."""
    select = settings.work(domain, k)
    lloyd = 2.0 * domain.size * domain.dimension * (k + 1.0) * (rounds + settings.trials)
    return Work(select.operations + lloyd, select.memory_bytes + 32.0 * k * domain.dimension)
