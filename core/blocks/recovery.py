"""From centres selected in a projection back to all columns: noisy means of the records of each.

The groups are those of the nearest selected centre, so one record touches one of them.
"""

from __future__ import annotations

import numpy as np

from core.arrays import Floats
from core.blocks.lloyd import sum_share
from core.blocks.selection import Settings, select_centres
from core.mechanisms import Choice, additive_noise, vector_noise
from core.plan import Step
from core.postprocessing.bounds import clip_into, inside_ball
from core.privacy import Split
from core.probe import Probe
from core.statistics import ClusterCounts, GroupSums, SetLosses
from core.views import Assigned, CandidateDistances, Encoded


def mean_steps(settings: Settings, split: Split, fraction: float, width: int) -> tuple[Step, ...]:
    """The planned measurements of `recover_means` in every trial, which together spend this fraction."""
    trials, share = settings.trials, sum_share(width)
    sums, counts = split.noise(fraction * share, trials), split.noise(fraction * (1 - share), trials)
    return (
        Step("sizes", additive_noise(counts), ClusterCounts.kind, trials, "size of each cluster"),
        Step("means", vector_noise(sums), GroupSums.kind, trials, "its mean in all columns"),
    )


def recover_means(probe: Probe, assigned: Assigned) -> tuple[Floats, Floats]:
    """The noisy mean in all columns of each group, moved into the bounds, and noisy sizes."""
    domain = probe.plan.domain
    sizes = probe.measure("sizes", ClusterCounts(assigned))
    sums = probe.measure("means", GroupSums(assigned, Encoded.of(domain)))
    means = clip_into(domain, sums / np.maximum(sizes, 1)[:, None])
    return means, np.maximum(sizes, 0).astype(np.float64)


def trial_steps(settings: Settings, split: Split, fraction: float) -> tuple[Step, ...]:
    """The private pick of a trial, where there are several."""
    if settings.trials == 1:
        return ()
    return (Step("trial", Choice(split.choice(fraction)), SetLosses.kind, 1, "the trial that loses least"),)


def best_trial(probe: Probe, settings: Settings) -> tuple[Floats, Floats]:
    """Means and sizes of the trial that loses least in all columns; centres are clipped before scoring."""
    found = [recover_means(probe, select_centres(probe, settings, t)) for t in range(settings.trials)]
    if len(found) == 1:
        return found[0]
    points = inside_ball(np.rint(np.concatenate([centres for centres, _ in found])).astype(np.int64))
    source = CandidateDistances(Encoded.of(probe.plan.domain), points, probe.plan.objective)
    sets = np.arange(len(points)).reshape(settings.trials, probe.plan.k)
    return found[int(probe.measure("trial", SetLosses(source, sets))[0])]
