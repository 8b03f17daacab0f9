"""The sampler is exact: the slow path agrees with two hundred digits, and the assumed errors hold."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri

from core.mechanisms import sampler
from tests.support.bits import RepeatableBytes, inject_bytes

SCALES = [0.3, 1.0, 7.5, 1e3, 1e6, 1e11]


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every byte that the sampler draws, in order."""
    drawn: list[bytes] = []
    source = RepeatableBytes(7)

    def record(count: int) -> bytes:
        drawn.append(source(count))
        return drawn[-1]

    monkeypatch.setattr(sampler, "random_bytes", record)
    return drawn


def force_slow_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend the library may err a lot: nothing is certain before mpmath has spoken."""
    monkeypatch.setattr(sampler, "ULPS", 2**80)


def read_bits(words: list[bytes], first: int, first_bits: int) -> mpmath.mpf:
    """The uniform whose leading bits are `first` and whose next ones are the little-endian words."""
    value, bits = first, first_bits
    for word in words:
        value, bits = (value << 64) | int.from_bytes(word, "little"), bits + 64
    return (mpmath.mpf(value) + mpmath.mpf("0.5")) / mpmath.mpf(2) ** bits


@pytest.mark.parametrize("scale", SCALES)
def test_the_slow_gaussian_agrees_bit_for_bit_with_two_hundred_digits(
    scale: float, tape: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    force_slow_path(monkeypatch)
    for _ in range(60):
        tape.clear()
        value = int(sampler.gaussian(scale, 1)[0])
        word = int.from_bytes(tape[0], "little")
        with mpmath.workdps(200):
            tail = read_bits(tape[1:], word & (2**63 - 1), 64)
            real = mpmath.mpf(scale) * mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * tail)
            expected = int(mpmath.floor(real + mpmath.mpf("0.5")))
        assert value == (-expected if word >> 63 else expected)
        assert len(tape) >= 2


@pytest.mark.parametrize("scale", SCALES)
def test_the_slow_laplace_agrees_bit_for_bit_with_two_hundred_digits(
    scale: float, tape: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    force_slow_path(monkeypatch)
    for _ in range(60):
        tape.clear()
        value = int(sampler.laplace(scale, 1)[0])
        word = int.from_bytes(tape[0], "little")
        with mpmath.workdps(200):
            uniform = read_bits(tape[2:], (word & (2**63 - 1)) << 1 | (tape[1][0] & 1), 64)
            expected = int(mpmath.floor(-mpmath.mpf(scale) * mpmath.log(uniform) + mpmath.mpf("0.5")))
        assert value == (-expected if word >> 63 else expected)


@pytest.mark.parametrize("draw", [sampler.gaussian, sampler.laplace])
@pytest.mark.parametrize("scale", SCALES)
def test_fast_and_slow_paths_agree_on_the_same_leading_bits(
    draw: Callable[[float, int], np.ndarray], scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    inject_bytes(monkeypatch, 3)
    fast = draw(scale, 300)
    inject_bytes(monkeypatch, 3)
    force_slow_path(monkeypatch)
    assert np.array_equal(fast, draw(scale, 300))


def test_vectors_of_l2_noise_agree_on_both_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = np.arange(12).reshape(4, 3) * 1000
    for scale, grid in ((0.7, 1), (1e4, 1), (1e9, 1 << 15)):
        inject_bytes(monkeypatch, 9)
        fast = sampler.l2_vectors(totals, np.full((4, 3), scale), grid)
        inject_bytes(monkeypatch, 9)
        with monkeypatch.context() as patched:
            force_slow_path(patched)
            slow = sampler.l2_vectors(totals, np.full((4, 3), scale), grid)
        assert np.array_equal(fast, slow)
        assert (fast % grid == 0).all()


def worst_error_in_ulps(
    values: np.ndarray, exact: Callable[[float], mpmath.mpf], points: np.ndarray
) -> float:
    worst = 0.0
    with mpmath.workdps(40):
        for value, point in zip(values.tolist(), points.tolist(), strict=True):
            real = exact(point)
            if real != 0:
                worst = max(worst, float(abs(mpmath.mpf(value) - real) / abs(real)) / 2.0**-52)
    return worst


def test_the_library_errs_by_less_than_is_assumed() -> None:
    draw = np.random.default_rng(0)
    tails = np.concatenate(
        [
            draw.uniform(0, 0.5, 1500),
            0.5 - draw.uniform(0, 1, 500) ** 8 * 0.5,
            2.0 ** -draw.uniform(1, 64, 1500),
            np.array([0.5 - 2.0**-53, 2.0**-64, math.exp(-2), math.nextafter(math.exp(-2), 0), 0.25]),
        ]
    )
    tails = tails[tails < 0.5]
    quantile = worst_error_in_ulps(
        ndtri(tails), lambda p: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(p)), tails
    )
    units = np.concatenate([2.0 ** -draw.uniform(0, 64, 3000), draw.uniform(0, 1, 1000)])
    logarithm = worst_error_in_ulps(np.log(units), mpmath.log, units)
    small = draw.uniform(0, 0.75, 3000) ** 4
    shifted = worst_error_in_ulps(np.log1p(-small), lambda p: mpmath.log(1 - mpmath.mpf(p)), small)
    assert max(quantile, logarithm, shifted) < sampler.ULPS / 2


def test_the_slow_path_is_rare_where_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    slowly = sampler._gaussian_slowly

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return slowly(*arguments)

    monkeypatch.setattr(sampler, "_gaussian_slowly", counted)
    sampler.gaussian(1e6, 1_000_000)
    assert len(calls) <= 20  # about 0.01 expected
    calls.clear()
    sampler.gaussian(1e11, 100_000)
    assert 0 < len(calls) <= 1000  # about 100 expected


def test_scales_may_differ_by_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = np.array([1.0, 1e6] * 500)
    inject_bytes(monkeypatch, 2)
    mixed = sampler.gaussian(scales, 1000)
    inject_bytes(monkeypatch, 2)
    small = sampler.gaussian(1.0, 1000)
    assert np.array_equal(mixed[::2], small[::2])
    with pytest.raises(ValueError, match="one per draw"):
        sampler.gaussian(scales, 7)


def test_a_choice_never_overflows() -> None:
    assert sampler.choices(np.array([0, 10**15]), 1.0)[0] == 1
    assert sampler.choices(np.array([-(10**15), -(10**15) + 10_000]), 1.0)[0] == 1
    assert sampler.choices(np.array([5]), 1e-9)[0] == 0


def test_an_uncertain_choice_is_settled_by_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A uniform at exactly one half lies on the border of two equal weights until more bits are known."""
    for following, expected in ((b"\x01" * 8, 1), (b"\xff" * 8, 1)):
        words = iter([(2**63).to_bytes(8, "little"), following])
        monkeypatch.setattr(sampler, "random_bytes", lambda count, words=words: next(words))
        assert sampler.choices(np.array([0, 0]), 1.0)[0] == expected
    words = iter([(2**63 - 1).to_bytes(8, "little"), b"\xf0" * 8])
    monkeypatch.setattr(sampler, "random_bytes", lambda count: next(words))
    assert sampler.choices(np.array([0, 0]), 1.0)[0] == 0


def test_a_skip_stops_at_its_limit() -> None:
    assert sampler.geometric_skip(1e-30, lambda: mpmath.mpf(1e-30), 10**6) == 10**6
    assert sampler.geometric_skip(700.0, lambda: mpmath.mpf(700), 10**6) == 0


def test_no_function_takes_a_seed() -> None:
    public = [f for name, f in vars(sampler).items() if inspect.isfunction(f) and not name.startswith("_")]
    assert len(public) > 5
    for function in public:
        assert not {"seed", "rng", "random_state"} & set(
            function.__code__.co_varnames[: function.__code__.co_argcount]
        )
