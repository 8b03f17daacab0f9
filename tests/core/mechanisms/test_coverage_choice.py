"""The choice of a coverage loop: rates that satisfy the proofs, and picks by their law."""

import json
import math

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from core.mechanisms import sampler
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.kinds import mechanism_from_json, mechanism_to_json
from core.privacy.losses import Approximate, Pure
from core.statistics.counts import Count
from tests.support.coverage import DOMAIN


def test_the_mechanism_releases_nothing_outside_the_loop() -> None:
    with pytest.raises(ValueError, match="measuring a Cover"):
        CoverageChoice(1.0).release(np.array([3]), Count(DOMAIN.fingerprint).sensitivity)


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 1.0, 3.0, 40.0, 900.0])
def test_the_pure_rate_and_chance_satisfy_the_proof(epsilon: float) -> None:
    mechanism = CoverageChoice(epsilon)
    with mpmath.workprec(4000):
        q = mpmath.mpf(mechanism.keep) / 2**64
        limit = mpmath.exp(mpmath.mpf(epsilon))
        assert 1 - q >= 1 / limit
        assert 1 + q * mpmath.expm1(mpmath.mpf(mechanism.eta)) <= limit
    assert mechanism.loss == Pure(epsilon)


def test_the_effective_rate_at_epsilon_one_is_far_above_the_papers() -> None:
    mechanism = CoverageChoice(1.0)
    assert mechanism.keep / 2**64 * mechanism.eta == pytest.approx(0.83, abs=0.005)
    assert CoverageChoice(1.0, 1e-6, "jones").eta == pytest.approx(0.034, abs=0.0005)
    assert CoverageChoice(1.0, 1e-6, "chaturvedi").eta == pytest.approx(0.027, abs=0.0005)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 0.1), (10.0, 0.5), (700.0, 0.2)]
)
def test_the_approximate_rate_satisfies_the_proof_and_beats_its_closed_form(
    epsilon: float, delta: float
) -> None:
    mechanism = CoverageChoice(epsilon, delta, "approximate")
    with mpmath.workprec(2000):
        eta = mpmath.mpf(mechanism.eta)
        bound = -mpmath.expm1(-eta) * mpmath.exp(-(epsilon + eta) / mpmath.expm1(eta))
        assert bound <= delta
    assert mechanism.eta <= epsilon
    assert mechanism.eta >= min(math.log1p(epsilon / math.log(1 / delta)), epsilon, 499) * (1 - 1e-8)
    assert mechanism.loss == Approximate(epsilon, delta)


@pytest.mark.parametrize("accounting", ["jones", "chaturvedi"])
def test_a_papers_constant_is_never_used_where_it_is_wrong(accounting: str) -> None:
    for epsilon in (0.5, 2.0, 20.0, 200.0):
        assert (
            CoverageChoice(epsilon, 0.01, accounting).eta <= CoverageChoice(epsilon, 0.01, "approximate").eta
        )


@pytest.mark.parametrize("mechanism", [CoverageChoice(0.7), CoverageChoice(0.7, 1e-6, "jones")], ids=str)
def test_a_coverage_step_survives_its_receipt(mechanism: CoverageChoice) -> None:
    assert mechanism_from_json(json.loads(json.dumps(mechanism_to_json(mechanism)))) == mechanism


@pytest.mark.parametrize(("delta", "accounting"), [(0.1, "pure"), (0.0, "approximate"), (0.1, "other")])
def test_an_accounting_that_does_not_fit_its_delta_is_refused(delta: float, accounting: str) -> None:
    with pytest.raises(ValueError, match="delta"):
        CoverageChoice(1.0, delta, accounting)


def pick_law(
    mechanism: CoverageChoice, counts: list[int], size: int, monkeypatch: pytest.MonkeyPatch
) -> list[mpmath.mpf]:
    """The exact law of a pick: the weights the sampler is given, spread over the branches that follow."""
    weights: list[mpmath.mpf] = []

    def note(log_weights: npt.NDArray[np.float64], exact: object) -> int:
        weights.extend(mpmath.exp(exact(i)) for i in range(len(log_weights)))  # type: ignore[operator]  # mpmath
        close = [
            abs(float(w) - math.exp(x)) <= 1e-11 * math.exp(x) + 1e-300
            for w, x in zip(weights, log_weights, strict=True)
        ]
        assert all(close)
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(sampler, "categorical", note)
        mechanism.pick(np.arange(len(counts)), np.array(counts, dtype=np.int64), size)
    groups = sorted({c for c in counts if c > 0})
    law = [weights[0] / size] * size
    for index, count in enumerate(counts):
        if count:
            law[index] += weights[1 + groups.index(count)] / counts.count(count)
    total = mpmath.fsum(weights)
    return [weight / total for weight in law]


@pytest.mark.parametrize("counts", [[0, 3, 1, 3, 0, 7], [5], [0, 1], [2, 2, 2, 2], [10_000, 9_999, 0, 1]])
def test_a_pick_has_the_law_of_the_exponential_mechanism(
    counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, size = CoverageChoice(1.0), len(counts) + 3
    with mpmath.workprec(200):
        law = pick_law(mechanism, counts, size, monkeypatch)
        weights = [mpmath.exp(mpmath.mpf(mechanism.eta) * c) for c in [*counts, 0, 0, 0]]
        truth = [w / mpmath.fsum(weights) for w in weights]
        assert all(abs(a - b) <= b * mpmath.mpf(2) ** -150 for a, b in zip(law, truth, strict=True))


def test_weights_do_not_overflow_at_an_exponent_of_ten_thousand() -> None:
    mechanism = CoverageChoice(1.0)
    counts = np.array([math.ceil(10_000 / mechanism.eta), 3, 1])
    assert mechanism.eta * counts[0] >= 10_000
    with np.errstate(all="raise", under="ignore"):
        assert mechanism.pick(np.array([70, 8, 9]), counts, 10**18) == 70
        assert 0 <= mechanism.pick(np.array([70]), np.array([1]), 10**18) < 10**18
        assert 0 <= mechanism.pick(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 5) < 5
