"""Balcan et al. (2017), section 6.2, for k-medians: the same selection, then private medians of clusters."""

from __future__ import annotations

from core.algorithms.balcan import SELECTION_OPTIONS, refinement_work
from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.blocks.forecast import forecast_of
from core.blocks.lloyd import clipped_rounds, clipped_steps
from core.blocks.nets import net_rounds, net_step
from core.blocks.recovery import best_trial, mean_steps, trial_steps
from core.blocks.selection import Settings, selection_steps, settings_for
from core.data import Domain
from core.plan import Plan, Request, Step
from core.privacy import Split
from core.probe import Probe

#: Shares of the budget (of epsilon, or of rho); the search for medians gets what the others leave.
TREES, SWAPS, RECOVERY, TRIAL = 0.1, 0.1, 0.2, 0.05


class BalcanMedian(Algorithm):
    """The paper's k-median extension, corrected; the argument is in `balcan_median.md`."""

    name = "balcan-median"
    summary = "candidates from partition trees in a projection, local swaps, private medians of each cluster"
    objectives = ("medians",)
    guarantee = "either"
    domains = ("dense",)
    options = (
        *SELECTION_OPTIONS,
        Option("rounds", int, 8, "steps of the search for each cluster's median", least=0, most=100),
        Option(
            "recovery",
            str,
            "gradient",
            "noisy steps along unit gradients, or choices from a net around each centre",
            choices=("gradient", "net"),
        ),
    )

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        settings = settings_for(domain, request.k, chosen)
        split = Split(request.budget, domain.rows_per_person)
        rounds, recovery = chosen["rounds"], chosen["recovery"]
        left = 1.0 - TREES - SWAPS - (TRIAL if settings.trials > 1 else 0.0)
        means = RECOVERY if rounds else left
        if rounds == 0:
            search: tuple[Step, ...] = ()
        elif recovery == "net":
            search = (net_step(split.choice(left - means, rounds), rounds),)
        else:
            search = clipped_steps(split, left - means, rounds, domain.dimension)
        steps = (
            *selection_steps(settings, split, TREES, SWAPS),
            *mean_steps(settings, split, means, domain.dimension),
            *trial_steps(settings, split, TRIAL),
            *search,
        )
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=steps,
            parameters={**settings.to_json(), "rounds": rounds, "recovery": recovery},
            # Searched medians are not noisy means: how far they err depends on the rows.
            forecast=forecast_of(steps, domain, request.k, positions=rounds == 0),
            work=refinement_work(settings, domain, request.k, rounds),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        centres, sizes = best_trial(probe, Settings.from_json(plan.parameters))
        rounds = plan.parameters["rounds"]
        if rounds and plan.parameters["recovery"] == "net":
            centres = net_rounds(probe, centres, rounds)
        elif rounds:
            centres, sizes = clipped_rounds(probe, centres, rounds, medians=True)
        return Clustering(plan.domain.decode(centres), sizes, plan, dict(probe.draws))
