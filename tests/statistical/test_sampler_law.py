"""The sampler's integers follow the exact law. Every test here raises a false alarm with probability 1e-8.

There are fewer than a hundred of them, so all together stay below 1e-6.
"""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2, gamma

from core.mechanisms import sampler
from core.mechanisms.choice import Choice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.privacy.sensitivity import Sensitivity

FALSE_ALARM = 1e-8
SCALES = [0.3, 1.0, 7.5, 1e3, 1e6, 1e11]
DRAWS = 300_000
BINS = 200

Law = Callable[[mpmath.mpf], mpmath.mpf]
SAMPLERS: dict[str, tuple[Callable[[float, int], np.ndarray], Law]] = {
    "gaussian": (sampler.gaussian, mpmath.ncdf),
    "laplace": (
        sampler.laplace,
        lambda x: mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2,
    ),
}


def require_law(observed: np.ndarray, expected: np.ndarray) -> None:
    """Pearson's chi-square; cells expected to hold few are pooled first."""
    order = np.argsort(expected)
    observed, expected = observed[order], expected[order]
    pooled = int(np.searchsorted(np.cumsum(expected), 10.0)) + 1
    observed = np.concatenate([[observed[:pooled].sum()], observed[pooled:]])
    expected = np.concatenate([[expected[:pooled].sum()], expected[pooled:]])
    if len(expected) < 2:
        return
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, len(expected) - 1) > FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_integers_follow_the_exact_law_of_rounded_noise(name: str, scale: float) -> None:
    draw, law = SAMPLERS[name]
    values = draw(scale, DRAWS)
    reference = np.sort(draw(scale, 20_000))
    cuts = np.unique(reference[np.linspace(0, len(reference) - 1, BINS).astype(int)])[:-1]
    with mpmath.workdps(40):
        below = [law((mpmath.mpf(int(cut)) + mpmath.mpf("0.5")) / mpmath.mpf(scale)) for cut in cuts]
        edges = np.array([float(p) for p in [mpmath.mpf(0), *below, mpmath.mpf(1)]])
    observed = np.bincount(np.searchsorted(cuts, values, side="left"), minlength=len(cuts) + 1)
    require_law(observed, np.diff(edges) * DRAWS)


@pytest.mark.parametrize("modulus", [2, 3, 16])
@pytest.mark.parametrize("scale", [1e3, 1e6, 1e11])
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_last_digits_are_uniform_at_large_scales(name: str, scale: float, modulus: int) -> None:
    values = SAMPLERS[name][0](scale, DRAWS)
    observed = np.bincount(values % modulus, minlength=modulus)
    require_law(observed, np.full(modulus, DRAWS / modulus))


def test_the_sign_is_fair_and_independent_of_the_size() -> None:
    values = sampler.gaussian(1e6, DRAWS)
    large = np.abs(values) > 674_490  # the median of |G|
    cells = 2 * large + (values < 0)
    require_law(np.bincount(cells, minlength=4), np.full(4, DRAWS / 4))


def test_a_wrong_scale_of_three_percent_would_be_noticed() -> None:
    values = sampler.gaussian(1.03e3, DRAWS)
    edges = np.linspace(-3, 3, 60)
    probabilities = np.array([float(mpmath.ncdf(x)) for x in edges])
    expected = np.diff(np.concatenate([[0], probabilities, [1]])) * DRAWS
    observed = np.bincount(np.searchsorted(edges, values / 1e3), minlength=61)
    with pytest.raises(AssertionError):
        require_law(observed, expected)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_l2_noise_has_a_gamma_radius_and_a_uniform_direction(width: int) -> None:
    blocks, scale = 40_000, 1e6
    scales = np.full((blocks, width), scale) * (1.0 + np.arange(width))
    noise = sampler.l2_vectors(np.zeros((blocks, width), dtype=np.int64), scales) / (1 + np.arange(width))
    radius = np.linalg.norm(noise.astype(float), axis=1) / scale
    edges = gamma.ppf(np.linspace(0, 1, 51), width)
    observed = np.bincount(np.searchsorted(edges[1:-1], radius), minlength=50)
    require_law(observed, np.full(50, blocks / 50))
    orthant = ((noise < 0) @ (1 << np.arange(width))).astype(int)
    require_law(np.bincount(orthant, minlength=2**width), np.full(2**width, blocks / 2**width))
    if width == 2:
        angle = np.arctan2(noise[:, 0].astype(float), noise[:, 1].astype(float))
        sectors = np.floor((angle + math.pi) / (2 * math.pi) * 40).astype(int) % 40
        require_law(np.bincount(sectors, minlength=40), np.full(40, blocks / 40))


def test_a_choice_follows_its_weights() -> None:
    scores, eta, draws = np.array([0, 3, 5, 5, -40]), 0.4, 20_000
    weights = np.exp(eta * scores)
    observed = np.bincount([sampler.choices(scores, eta)[0] for _ in range(draws)], minlength=5)
    require_law(observed, weights / weights.sum() * draws)


def test_skips_follow_the_geometric_law() -> None:
    success, draws = 0.07, 15_000
    rate = -math.log1p(-success)
    skips = [
        sampler.geometric_skip(rate, lambda: -mpmath.log1p(-mpmath.mpf(success)), 60) for _ in range(draws)
    ]
    law = success * (1 - success) ** np.arange(60)
    require_law(np.bincount(skips, minlength=61), np.append(law, (1 - success) ** 60) * draws)


# --- mechanisms add that noise, relative to what the statistic declares -----------------------


def deviation(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values.astype(np.float64) ** 2)))


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (GaussianNoise(0.5), 2.0 * 3.0),
        (LaplaceNoise(0.5), math.sqrt(2) * 2.0 * 5.0),
        (L2Noise(0.5), math.sqrt(4 + 1) * 2.0 * 3.0),
    ],
)
def test_noise_follows_the_declared_scales_and_norm(
    mechanism: GaussianNoise | LaplaceNoise | L2Noise, expected: float
) -> None:
    """The mean square of 20,000 draws errs by less than 10% except with probability below 1e-8."""
    scales = np.array([[1000.0], [7000.0]])
    declared = Sensitivity(scales, l1=5.0, l2=3.0)
    total = np.array([[5] * 4, [-9] * 4])
    noise = np.array([mechanism.release(total, declared) - total for _ in range(5_000)])
    for row in (0, 1):
        assert deviation(noise[:, row]) == pytest.approx(expected * scales[row, 0], rel=0.1)


def test_every_entry_gets_its_own_noise_the_empty_ones_included() -> None:
    noise = np.array([GaussianNoise(0.01).release(np.zeros(6, np.int64), Sensitivity()) for _ in range(3000)])
    correlation = np.corrcoef(noise.T)
    assert np.abs(correlation - np.eye(6)).max() < 0.12  # 6.5 standard errors
    assert (noise.std(axis=0) > 90).all()


@pytest.mark.parametrize("monotone", [True, False])
def test_a_choice_pays_for_scores_that_may_move_both_ways(monotone: bool) -> None:
    declared = Sensitivity(np.array([10.0]), linf=2.0, monotone=monotone)
    scores, draws = np.array([0, 20, 40]), 30_000
    eta = 1.5 / (20 if monotone else 40)
    weights = np.exp(eta * scores)
    picks = [int(Choice(1.5).release(scores, declared)[0]) for _ in range(draws)]
    require_law(np.bincount(picks, minlength=3), weights / weights.sum() * draws)


def test_l2_noise_refuses_statistics_that_one_record_touches_in_several_rows() -> None:
    with pytest.raises(ValueError, match="one row"):
        L2Noise(1.0).release(np.zeros((2, 2), np.int64), Sensitivity(one_block=False))
