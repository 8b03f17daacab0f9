"""What a caller's own earlier release says about the accuracy of a planned job, beyond its noise.

A forecast knows public numbers only, so it counts noise. The intervals of a release that left k open also
hold what clipping may have cut off and what noise may have hidden, for the clusters that the data have.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from core.data import Dense, Geometry
from core.postprocessing.bounds import unit_length
from service.datasets.access import Right
from service.jobs.results import answers, stored
from service.jobs.wire import OpenK, PlanBody
from service.operations.states import JobState
from service.operations.tables import Job

#: Number of the caller's newest jobs on the dataset that are looked at.
_NEWEST = 20
#: A centre whose 95% interval reaches farther than this share of its cluster's spread is uncertain.
_UNCERTAIN = 0.5


def earlier_release(session: Session, right: Right, body: PlanBody, now: datetime) -> dict[str, Any] | None:
    """Return the uncertainty that the caller's newest comparable release states; None without one.

    Comparable are jobs of k-means that left k open, on the same columns with the same weights, as declared.
    """
    if body.kind != "cluster" or body.objective != "means" or body.scaling != "declared":
        return None
    # Only what was shown counts, even among the newest: a job that has ended unseen must not push one out.
    shown = select(Job).where(
        Job.principal_id == right.caller.id,
        Job.dataset_id == right.dataset.id,
        Job.state == JobState.SUCCEEDED,
        Job.released_at <= now,
    )
    newest = session.scalars(shown.order_by(Job.number.desc()).limit(_NEWEST).options(defer(Job.plan)))
    found = next((job for job in newest if _comparable(job, body)), None)
    return None if found is None else _stated(session, found, body)


def _comparable(job: Job, body: PlanBody) -> bool:
    asked: Mapping[str, Any] = job.request
    shape = (asked.get("columns"), asked.get("weights"), asked.get("scaling", "declared"))
    open_k = isinstance(asked.get("k"), dict) and not job.rehearsal
    return open_k and shape == (body.columns, body.weights, body.scaling)


def _stated(session: Session, job: Job, body: PlanBody) -> dict[str, Any] | None:
    """Return what the release states at the k that is asked for, or at its last one below that."""
    receipt = stored.receipt(session, job.id)
    most = body.k.last if isinstance(body.k, OpenK) else body.k
    assert most is not None  # clusterings have a k
    k = min(most, job.request["k"]["to"])
    found = answers.level_arrays(session, job.id, k)
    domain = answers.clustered(receipt["domain"])
    if found is None or not isinstance(domain, Dense | Geometry):
        return None
    low, high = (domain.encode_points(found[f"centre_{end}"]) for end in ("low", "high"))
    reach = np.linalg.norm((high - low) / 2, axis=1) * unit_length(domain)
    uncertain = int((reach > _UNCERTAIN * np.maximum(found["spreads"], 1e-12)).sum())
    epsilon = receipt["privacy"]["epsilon"]
    about = f"Your release at epsilon {epsilon}, with what clipping and noise may hide, "
    which = "all" if uncertain == 0 else f"{k - uncertain} of {k}"
    return {
        "job": job.id,
        "epsilon": epsilon,
        "k": k,
        "uncertain": uncertain,
        "sentence": f"{about}places {which} centres at k = {k} to within half the spread of their clusters.",
    }
