"""Exact randomness for mechanisms: rounded real noise and choices, from the operating system's entropy.

Every function returns what exact real arithmetic would have returned on the same bits (`sampler.md`): a
fast path in doubles with bounds on their error, and more bits and `mpmath` where it is uncertain.
"""

import os
from collections.abc import Callable, Sequence

import mpmath
import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from core.arrays import Floats, Integers

#: Bound on the relative error of `ndtri`, `log` and `log1p`, in units in the last place (4 measured).
ULPS = 16
EPS = 2.0**-52
_BATCH = 1 << 18
Words = npt.NDArray[np.uint64]
#: All bits of a word but the top one, which is a sign.
_LOW_BITS = np.uint64(2**63 - 1)


def random_bytes(count: int) -> bytes:
    """Bytes from the operating system; the only source of randomness in `core`. Tests replace it."""
    return os.urandom(count)


def _words(count: int) -> Words:
    return np.frombuffer(random_bytes(8 * count), dtype="<u8")


class _Uniform:
    """A uniform real in (0, 1) of which more and more leading bits become known."""

    def __init__(self, word: int) -> None:
        self.bits = 64
        self.value = word

    def extend(self) -> None:
        self.value = (self.value << 64) | int.from_bytes(random_bytes(8), "little")
        self.bits += 64

    def ends(self) -> tuple[mpmath.mpf, mpmath.mpf]:
        scale = mpmath.ldexp(mpmath.mpf(1), -self.bits)
        return mpmath.mpf(self.value) * scale, mpmath.mpf(self.value + 1) * scale


def _refine(uniforms: Sequence[_Uniform], decide: Callable[[], int | None]) -> int:
    """Draw more bits of every uniform until `decide`, evaluated with enough digits, is certain."""
    while True:
        for uniform in uniforms:
            uniform.extend()
        with mpmath.workprec(2 * max(u.bits for u in uniforms) + 128):
            decided = decide()
        if decided is not None:
            return decided


def _nearest(low: mpmath.mpf, high: mpmath.mpf) -> int | None:
    """The integer both ends round to, if it is one. A slip of 2^-100 covers mpmath's own rounding."""
    width = (mpmath.fabs(low) + mpmath.fabs(high) + 1) * mpmath.ldexp(mpmath.mpf(1), 100 - mpmath.mp.prec)
    first, last = (int(mpmath.floor(x + mpmath.mpf(0.5))) for x in (low - width, high + width))
    return first if first == last else None


def _tail_quantile(tail: mpmath.mpf) -> mpmath.mpf:
    """The x > 0 with P[normal > x] = tail, for tail in (0, 1/2]; infinity at 0."""
    if tail == 0:
        return mpmath.inf
    return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * tail)


# --- noise in single entries ------------------------------------------------------------------


def gaussian(scale: float | Floats, count: int) -> Integers:
    """`count` integers round(scale * G), G standard normal; scale is one number or one per draw."""
    return _rounded(_normal_ends, _gaussian_slowly, scale, count)


def laplace(scale: float | Floats, count: int) -> Integers:
    """`count` integers round(scale * L), L of density exp(-|x|)/2; scale is one number or one per draw."""
    return _rounded(_exponential_ends, _laplace_slowly, scale, count)


def _rounded(
    ends: Callable[[Words], tuple[Floats, Floats]],
    slowly: Callable[[int, float], int],
    scale: float | Floats,
    count: int,
) -> Integers:
    """Round scaled magnitudes between their ends, settle what is uncertain, and apply the sign bit."""
    if np.ndim(scale) and np.shape(scale) != (count,):
        raise ValueError("one scale for all draws, or one per draw")
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), (count,))
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BATCH):  # batches keep the temporaries in cache
        some, magnitude = scales[start : start + _BATCH], out[start : start + _BATCH]
        words = _words(len(some))
        low, high = ends(words & _LOW_BITS)
        below, above = np.rint(low * some), np.rint(high * some)
        # Beyond 2^51 a double no longer tells halves apart, so such draws are always uncertain.
        uncertain = np.flatnonzero(~((below == above) & (above < 2.0**51)))
        below[uncertain] = 0
        magnitude[:] = below
        for i in uncertain:
            magnitude[i] = slowly(int(words[i] & _LOW_BITS), float(some[i]))
        np.negative(magnitude, out=magnitude, where=words > _LOW_BITS)
    return out


def _normal_ends(words: Words) -> tuple[Floats, Floats]:
    """Bounds on |G| whose tail, in (0, 1/2), begins with these 63 bits."""
    tails = words.astype(np.float64)
    low = tails * (2.0**-64 * (1 - 4 * EPS))
    high = (tails + 1) * (2.0**-64 * (1 + 4 * EPS))
    far = _grown(np.negative(ndtri(low)), up=True)
    return _grown(np.negative(ndtri(np.minimum(high, 0.5))), up=False), far


def _gaussian_slowly(word: int, scale: float) -> int:
    tail = _Uniform(word)

    def decide() -> int | None:
        low, high = tail.ends()  # a word below 2^63, read as a number in (0, 1/2)
        if low == 0:
            return None
        return _nearest(scale * _tail_quantile(high), scale * _tail_quantile(low))

    return _refine([tail], decide)


def _exponential_ends(words: Words) -> tuple[Floats, Floats]:
    """Bounds on -log(u) for u between word and word + 1 in units of 2^-63."""
    unit = 2.0**-63
    value = words.astype(np.float64)
    rest = (_LOW_BITS - words).astype(np.float64)
    upper_half = words >= np.uint64(2**62)
    with np.errstate(divide="ignore"):
        # Near u = 1 the distance to 1 carries the precision, near 0 the number itself does.
        largest = np.where(
            upper_half,
            -np.log1p(-np.minimum((rest + 1) * (unit * (1 + 4 * EPS)), 0.75)),
            -np.log(value * (unit * (1 - 4 * EPS))),
        )
        least = np.where(
            upper_half,
            -np.log1p(-rest * (unit * (1 - 4 * EPS))),
            -np.log(np.minimum((value + 1) * (unit * (1 + 4 * EPS)), 1.0)),
        )
    return _grown(least, up=False), _grown(largest, up=True)


def _laplace_slowly(word: int, scale: float) -> int:
    uniform = _Uniform(word << 1 | (random_bytes(1)[0] & 1))

    def decide() -> int | None:
        low, high = uniform.ends()
        return None if low == 0 else _nearest(-scale * mpmath.log(high), -scale * mpmath.log(low))

    return _refine([uniform], decide)


def _grown(values: Floats, *, up: bool) -> Floats:
    """Values of at least zero moved outwards by the assumed error of the function behind them."""
    grown: Floats = np.maximum(values * (1 + (ULPS if up else -ULPS) * EPS), 0.0)
    return grown


# --- L2-norm noise ----------------------------------------------------------------------------


def l2_vectors(totals: Integers, scales: Floats, grid: int = 1) -> Integers:
    """Each row of `totals` plus scales * Gamma(d) * a uniform direction, rounded to multiples of `grid`.

    The noise has density proportional to exp(-|x / scales|). A coarse grid keeps the slow path rare.
    Scales have the shape of the totals.
    """
    blocks, width = totals.shape
    signs, lengths = _words(blocks * width), _words(blocks * width)
    # A tail at the very end of its range gives an infinite end: then the row is uncertain, no more.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near, far = _normal_ends((signs & _LOW_BITS).reshape(blocks, width))
        least, most = _exponential_ends(lengths >> np.uint64(1))
        error = (width + 64) * EPS
        short = least.reshape(blocks, width).sum(axis=1) / np.sqrt((far * far).sum(axis=1)) * (1 - error)
        long = most.reshape(blocks, width).sum(axis=1) / np.sqrt((near * near).sum(axis=1)) * (1 + error)
        sign = np.where(signs >= np.uint64(2**63), -1.0, 1.0).reshape(blocks, width)
        one, other = sign * near * short[:, None] * scales, sign * far * long[:, None] * scales
        quotient, rest = np.divmod(totals, grid)
        # rest < grid and the noise are added in doubles, which rounds by less than one part in 2^51.
        low, high = np.minimum(one, other), np.maximum(one, other)
        slip = (np.abs(low) + np.abs(high) + grid) * (4 * EPS)
        below, above = np.rint((low + rest - slip) / grid), np.rint((high + rest + slip) / grid)
        certain = ((below == above) & (np.maximum(np.abs(below), np.abs(above)) < 2.0**51)).all(axis=1)
    below[~certain] = 0
    released: Integers = (quotient + below.astype(np.int64)) * grid
    for j in np.flatnonzero(~certain):
        row = slice(j * width, (j + 1) * width)
        released[j] = _l2_vector_slowly(totals[j], scales[j], grid, signs[row], lengths[row] >> np.uint64(1))
    return released


def _l2_vector_slowly(total: Integers, scales: Floats, grid: int, signs: Words, lengths: Words) -> Integers:
    tails = [_Uniform(int(word) & (2**63 - 1)) for word in signs]
    uniforms = [_Uniform(int(word) << 1 | (random_bytes(1)[0] & 1)) for word in lengths]
    negative = [int(word) >= 2**63 for word in signs]
    rounded: list[int] = []

    def decide() -> int | None:
        far, near = [], []
        for tail in tails:
            low, high = tail.ends()
            if low == 0:
                return None
            far.append(_tail_quantile(low))
            near.append(_tail_quantile(high))
        ends = [uniform.ends() for uniform in uniforms]
        if any(low == 0 for low, _ in ends):
            return None
        short = -mpmath.fsum(mpmath.log(h) for _, h in ends) / mpmath.sqrt(mpmath.fsum(x * x for x in far))
        long = -mpmath.fsum(mpmath.log(low) for low, _ in ends) / mpmath.sqrt(
            mpmath.fsum(x * x for x in near)
        )
        rounded.clear()
        each = zip(total.tolist(), scales.tolist(), negative, near, far, strict=True)
        for start, scale, minus, least, most in each:
            low, high = scale * least * short, scale * most * long
            low, high = (-high, -low) if minus else (low, high)
            nearest = _nearest((start + low) / grid, (start + high) / grid)
            if nearest is None:
                return None
            rounded.append(nearest * grid)
        return 0

    _refine([*tails, *uniforms], decide)
    return np.array(rounded, dtype=np.int64)


# --- choices ----------------------------------------------------------------------------------


def choices(scores: Integers, eta: float, picks: int = 1) -> Integers:
    """`picks` different indices, each of those left with probability proportional to exp(eta * score)."""
    left = scores.astype(np.int64)
    picked = np.zeros(len(left), dtype=bool)
    order = np.empty(picks, dtype=np.int64)
    for place in range(picks):
        best = int(left[~picked].max())
        gaps = np.where(picked, -np.inf, eta * (left - best))

        def exact(i: int, best: int = best) -> mpmath.mpf:
            return mpmath.mpf("-inf") if picked[i] else mpmath.mpf(eta) * (int(left[i]) - best)

        order[place] = categorical(gaps, exact)
        picked[order[place]] = True
    return order


def categorical(log_weights: Floats, exact: Callable[[int], mpmath.mpf]) -> int:
    """An index with probability proportional to exp(log_weight).

    `log_weights` are doubles near the real numbers that `exact` gives at any working precision: within four
    units in the last place of the larger of 745 and themselves. Their maximum should be about zero.
    """
    weights = np.exp(log_weights)
    # exp carries the absolute error of its argument (at most 745 counts) into a relative one.
    error = (len(weights) + 4096) * EPS
    cumulated = np.cumsum(weights)
    total = float(cumulated[-1])
    word = int(_words(1)[0])
    low, high = word * 2.0**-64 * total, (word + 1) * 2.0**-64 * total
    first = int(np.searchsorted(cumulated, low * (1 - 4 * error), side="right"))
    last = int(np.searchsorted(cumulated, high * (1 + 4 * error), side="left"))
    # Leading weights that underflow to zero can only be selected by a word of zero.
    if first == last < len(weights) and word > 0:
        return first
    uniform = _Uniform(word)

    def decide() -> int | None:
        exact_weights = [mpmath.exp(exact(i)) for i in range(len(log_weights))]
        whole = mpmath.fsum(exact_weights)
        slip = mpmath.ldexp(whole, 64 - mpmath.mp.prec)
        low, high = (end * whole for end in uniform.ends())
        running = mpmath.mpf(0)
        for i, weight in enumerate(exact_weights):
            running += weight
            if high + slip < running:
                return i
            if low - slip < running and i < len(exact_weights) - 1:
                return None
        return len(exact_weights) - 1

    return _refine([uniform], decide)


def uniform_below(limit: int) -> int:
    """A whole number from 0 to limit - 1, each as likely: bits are drawn again where they reach the limit."""
    width = (limit - 1).bit_length()
    while True:
        number = int.from_bytes(random_bytes((width + 7) // 8), "little") & ((1 << width) - 1)
        if number < limit:
            return number


def geometric_skip(rate: float, exact: Callable[[], mpmath.mpf], limit: int) -> int:
    """The number of failures before the first success, at most `limit`; rate = -log(P[failure]).

    `rate` is within four units in the last place of the real number that `exact` gives.
    """
    word = int(_words(1)[0]) >> 1
    low, high = _exponential_ends(np.array([word], dtype=np.uint64))
    least = np.floor(low[0] / (rate * (1 + 16 * EPS)))
    most = np.floor(high[0] / (rate * (1 - 16 * EPS)))
    if least >= limit:
        return limit
    if least == most and most < 2.0**51:
        return int(least)
    uniform = _Uniform(word << 1 | (random_bytes(1)[0] & 1))

    def decide() -> int | None:
        low, high = uniform.ends()
        if low == 0:
            return None
        slip = 1 + mpmath.ldexp(mpmath.mpf(1), 100 - mpmath.mp.prec)
        value = exact()
        least = int(mpmath.floor(-mpmath.log(high) / value / slip))
        most = int(mpmath.floor(-mpmath.log(low) / value * slip))
        return min(least, limit) if least == most or least >= limit else None

    return _refine([uniform], decide)
