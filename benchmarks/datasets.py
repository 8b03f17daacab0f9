"""Rows to measure on, by name: MNIST, synthetic data that stress one thing each, or a `.npy` file.

Every maker is deterministic. Bounds are round numbers that hold the rows, never the rows' own extremes, and
rows are clipped to them, as `core` would: the non-private baseline and the private run see the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_blobs

from core.data import Dense

__all__ = ["DATASETS", "SURVEY_WHOLE", "Dataset", "load"]

Floats = npt.NDArray[np.float64]

#: Where MNIST lies unless told otherwise: beside the repository.
MNIST_VARIABLE = "CAIRN_MNIST"
MNIST_DEFAULT = Path(__file__).parent.parent.parent / "shared" / "data" / "mnist-train.npz"


def in_unit_ball(rows: npt.ArrayLike) -> Floats:
    """Rows as PE-means (arXiv 2606.00342) takes them: about their exact mean, with a largest norm of one."""
    given = np.asarray(rows, dtype=np.float64)
    centred = given - given.mean(axis=0)
    scaled: Floats = centred / np.linalg.norm(centred, axis=1).max()
    return scaled


def pe_blobs(size: int, columns: int, k: int) -> Floats:
    """The `blobs` of PE-means' table, to the last digit: their generator and its seed are public."""
    return in_unit_ball(make_blobs(size, columns, centers=k, random_state=1)[0].round(4))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with what is public about them, and numbers of clusters that make sense for them."""

    name: str
    rows: Floats
    domain: Dense
    clusters: tuple[int, ...]


def _box(name: str, rows: Floats, low: float, high: float, *clusters: int) -> Dataset:
    domain = Dense.box(low, high, dimension=rows.shape[1], scaling="none", size=len(rows))
    return Dataset(name, np.clip(rows, low, high), domain, clusters)


def _ball(name: str, rows: Floats, radius: float, *clusters: int) -> Dataset:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    domain = Dense.ball(radius, dimension=rows.shape[1], size=len(rows))
    return Dataset(name, rows * np.minimum(1.0, radius / norms), domain, clusters)


def gaussians(
    draw: np.random.Generator, count: int, centres: Floats, spread: float, shares: Floats | None = None
) -> Floats:
    """Rows about centres, in equal or given shares, with a spherical normal spread."""
    equal = np.full(len(centres), 1 / len(centres))
    labels = draw.choice(len(centres), size=count, p=equal if shares is None else shares)
    rows: Floats = centres[labels] + draw.normal(scale=spread, size=(count, centres.shape[1]))
    return rows


def power_shares(count: int, exponent: float) -> Floats:
    """Shares of clusters that fall as a power of their rank."""
    weights: Floats = np.arange(1.0, count + 1.0) ** -exponent
    return weights / float(weights.sum())


def mostly_zero(draw: np.random.Generator, count: int, width: int, entries: int, height: float) -> Floats:
    """Centres that are zero but for some entries each, which are plus or minus the height."""
    centres = np.zeros((count, width))
    for centre in centres:
        centre[draw.choice(width, size=entries, replace=False)] = draw.choice([-height, height], size=entries)
    return centres


def centres_apart(draw: np.random.Generator, count: int, width: int, reach: float, least: float) -> Floats:
    """Centres drawn uniformly from a cube around the origin, none closer to another than `least`."""
    centres: list[Floats] = []
    while len(centres) < count:
        one = draw.uniform(-reach, reach, size=width)
        if all(np.linalg.norm(one - other) >= least for other in centres):
            centres.append(one)
    return np.array(centres)


def mnist(path: Path | None = None) -> Dataset:
    """60,000 handwritten digits, 784 pixels in [0, 1]."""
    found = path or Path(os.environ.get(MNIST_VARIABLE, MNIST_DEFAULT))
    if not found.exists():
        raise FileNotFoundError(
            f"{found} is not there: give --mnist, or set {MNIST_VARIABLE}, to an .npz file with `pixels`"
        )
    return _box("mnist", np.load(found)["pixels"].astype(np.float64) / 255, 0, 1, 10, 64)


def mixture(count: int = 100_000) -> Dataset:
    """64 unit Gaussians in 100 dimensions whose centres are N(0, 25^2), in a ball of radius 300."""
    draw = np.random.default_rng(64)
    rows = gaussians(draw, count, draw.normal(scale=25, size=(64, 100)), 1.0)
    return _ball("mixture", rows, 300, 4, 16, 64)


def spheres(columns: int) -> Dataset:
    """8 Gaussians, 50,000 rows: the same distances between and within clusters in any number of columns."""
    draw = np.random.default_rng(8)
    centres = draw.normal(size=(8, columns))
    centres *= 2 / np.linalg.norm(centres, axis=1, keepdims=True)
    return _ball("spheres", gaussians(draw, 50_000, centres, columns**-0.5), 4, 8)


def blobs3() -> Dataset:
    """Three tight blobs in 3 dimensions, 10,000 rows; the ball is twice as wide as the data."""
    draw = np.random.default_rng(3)
    rows = gaussians(draw, 10_000, np.eye(3), 0.05)
    return _ball("blobs3", rows, 2 * 1.2, 3)


def unequal() -> Dataset:
    """20 clusters in 10 dimensions, 50,000 rows: the largest holds a third of them, the smallest 0.5%."""
    draw = np.random.default_rng(20)
    rows = gaussians(draw, 50_000, draw.uniform(-80, 80, size=(20, 10)), 5.0, power_shares(20, 1.4))
    return _box("unequal", rows, -100, 100, 10, 20)


def heavy() -> Dataset:
    """10 clusters in 8 dimensions, 50,000 rows with the tails of Student's t of 2 degrees of freedom."""
    draw = np.random.default_rng(2)
    centres = draw.uniform(-60, 60, size=(10, 8))
    rows = centres[draw.integers(10, size=50_000)] + 4 * draw.standard_t(2, size=(50_000, 8))
    return _box("heavy", rows, -200, 200, 10)


def many() -> Dataset:
    """200 clusters in 4 dimensions, 200,000 rows."""
    draw = np.random.default_rng(200)
    rows = gaussians(draw, 200_000, draw.uniform(-90, 90, size=(200, 4)), 3.0)
    return _box("many", rows, -100, 100, 50, 200)


def wide() -> Dataset:
    """Few rows of many columns: 5 clusters in 500 dimensions, 5,000 rows, differing in 20 columns each."""
    draw = np.random.default_rng(500)
    centres = mostly_zero(draw, 5, 500, 20, 6.0)
    return _box("wide", gaussians(draw, 5_000, centres, 1.0), -12, 12, 5)


def small() -> Dataset:
    """As few rows as are of use: 4 clusters in 5 dimensions, 2,000 rows."""
    draw = np.random.default_rng(5)
    return _box("small", gaussians(draw, 2_000, draw.uniform(-6, 6, size=(4, 5)), 0.7), -10, 10, 4)


def uniform() -> Dataset:
    """No clusters at all: 30,000 rows uniform in a cube of 6 dimensions."""
    return _box("uniform", np.random.default_rng(6).uniform(0, 1, size=(30_000, 6)), 0, 1, 8)


def city() -> Dataset:
    """Places of a town in two dimensions: dense quarters, straight roads, farms, and a lake without any."""
    draw = np.random.default_rng(1200)
    places = []
    for _ in range(60):  # quarters, the denser the closer to the middle
        middle, spread = draw.normal(50, 14, size=2), draw.uniform(0.4, 2.5)
        places.append(middle + draw.normal(scale=spread, size=(int(draw.pareto(1.5) * 800 + 800), 2)))
    for _ in range(12):  # roads
        start, end = draw.uniform(0, 100, size=(2, 2))
        along = draw.uniform(size=(2_500, 1))
        places.append(start + along * (end - start) + draw.normal(scale=0.15, size=(2_500, 2)))
    places.append(draw.uniform(0, 100, size=(15_000, 2)))
    rows = np.concatenate(places)
    rows = rows[np.hypot(rows[:, 0] - 63, rows[:, 1] - 41) > 7]  # the lake
    rows = rows[draw.permutation(len(rows))[:200_000]]
    return _box("city", rows, 0, 100, 8, 32)


def few() -> Dataset:
    """2,000 rows again, in twice as many dimensions and five clusters that nearly touch."""
    draw = np.random.default_rng(7)
    return _box("few", gaussians(draw, 2_000, draw.uniform(-3, 3, size=(5, 10)), 1.0), -10, 10, 5)


def tails() -> Dataset:
    """No clusters, but lognormal tails: the best eight centres of 50,000 rows spend three on 313 of them."""
    draw = np.random.default_rng(7)
    return _box("tails", draw.lognormal(0, 1.5, size=(50_000, 3)) * 2, 0, 500, 8)


def zipf() -> Dataset:
    """30 clusters in 6 dimensions, 100,000 rows, shares as 1/i^2: from 62% down to 0.07%."""
    draw = np.random.default_rng(7)
    rows = gaussians(draw, 100_000, draw.uniform(-80, 80, size=(30, 6)), 4.0, power_shares(30, 2))
    return _box("zipf", rows, -100, 100, 10, 30)


def columns() -> Dataset:
    """3,000 rows of 20,000 columns in bounds far too wide: 3 clusters that differ in 400 columns each."""
    draw = np.random.default_rng(1)
    centres = mostly_zero(draw, 3, 20_000, 400, 3.0)
    return _box("columns", gaussians(draw, 3_000, centres, 0.2), -10, 10, 3)


def million() -> Dataset:
    """A million rows of 8 columns in 40 clusters."""
    draw = np.random.default_rng(10**6)
    rows = gaussians(draw, 1_000_000, draw.uniform(-80, 80, size=(40, 8)), 6.0)
    return _box("million", rows, -100, 100, 40)


def millions() -> Dataset:
    """Ten million rows of 2 columns in 6 clusters that touch."""
    draw = np.random.default_rng(10**7)
    return _box("millions", gaussians(draw, 10_000_000, draw.uniform(-8, 8, size=(6, 2)), 1.5), -20, 20, 6)


def towns() -> Dataset:
    """Homes in a country of 40 towns of unequal sizes, two dimensions, 100,000 rows."""
    draw = np.random.default_rng(40)
    shares = draw.dirichlet(np.ones(40))
    return _box("towns", gaussians(draw, 100_000, draw.uniform(5, 95, size=(40, 2)), 1.5, shares), 0, 100, 20)


def overlap() -> Dataset:
    """8 clusters in 8 dimensions that overlap, in shares from 37% down to 5%, 20,000 rows."""
    draw = np.random.default_rng(88)
    rows = gaussians(draw, 20_000, draw.normal(scale=1.5, size=(8, 8)), 1.0, power_shares(8, 1.0))
    return _box("overlap", rows, -10, 10, 8)


def separated() -> Dataset:
    """8 equal clusters in 8 dimensions, at least 6 deviations apart, 20,000 rows."""
    draw = np.random.default_rng(86)
    return _box("separated", gaussians(draw, 20_000, centres_apart(draw, 8, 8, 0.7, 0.48), 0.08), -1, 1, 8)


def costs() -> Dataset:
    """Age, admissions and yearly cost of 40,000 people, each scaled to [-1, 1]; 1.5% cost a lot."""
    draw = np.random.default_rng(15)
    rare = draw.uniform(size=40_000) < 0.015
    age = np.where(rare, draw.normal(70, 10, 40_000), draw.normal(45, 18, 40_000))
    admissions = np.where(rare, draw.poisson(6, 40_000), draw.poisson(0.7, 40_000))
    cost = np.where(rare, draw.lognormal(10, 0.9, 40_000), draw.lognormal(6.5, 1.0, 40_000))
    rows = np.clip(np.stack([age, admissions, cost], axis=1), 0, [110, 30, 200_000])
    rows = rows / np.array([55.0, 15.0, 100_000.0]) - 1
    return _box("costs", rows, -1, 1, 3)


def clinic() -> Dataset:
    """6,000 rows of 12 columns: 9 unequal clusters of different spreads, long in a direction of their own."""
    draw = np.random.default_rng(1906)
    labels = draw.choice(9, size=6_000, p=power_shares(9, 0.8))
    centres, spreads = draw.uniform(-60, 60, size=(9, 12)), draw.uniform(6, 16, size=9)
    ways = draw.normal(size=(9, 12))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    rows = centres[labels] + spreads[labels, None] * draw.normal(size=(6_000, 12))
    rows += ways[labels] * draw.normal(scale=30, size=(6_000, 1))
    return _box("clinic", rows, -150, 150, 9)


#: The column of `survey` that has six values.
SURVEY_WHOLE = 4


def survey() -> Dataset:
    """10,000 rows of 6 columns: 12 clusters that overlap, with columns that are skewed or bounded."""
    draw = np.random.default_rng(1910)
    rows = gaussians(
        draw, 10_000, draw.uniform(0.2, 0.8, size=(12, 6)), 0.09, draw.dirichlet(np.full(12, 4.0))
    )
    rows[:, 1] = rows[:, 1] ** 3
    rows[:, SURVEY_WHOLE] = np.round(5 * rows[:, SURVEY_WHOLE]) / 5
    return _box("survey", rows, 0, 1, 12)


DATASETS: dict[str, Callable[[], Dataset]] = {
    maker.__name__: maker
    for makers in (
        (mnist, mixture, blobs3, unequal, heavy, many, wide, small, uniform, city, towns),
        (
            few,
            tails,
            zipf,
            columns,
            million,
            millions,
            overlap,
            separated,
            costs,
            clinic,
            survey,
        ),  # what others find hard
    )
    for maker in makers
}


def load(name: str, bounds: tuple[float, float] | None = None, mnist_path: Path | None = None) -> Dataset:
    """The dataset of that name, or the rows of a `.npy` file inside the given bounds."""
    if name == "mnist":
        return mnist(mnist_path)
    if name in DATASETS:
        return DATASETS[name]()
    if not name.endswith(".npy"):
        raise ValueError(f"there is no dataset {name!r}: choose one of {', '.join(DATASETS)}, or a .npy file")
    if bounds is None:
        raise ValueError(f"{name} needs --bounds LOW HIGH, numbers known without looking at its rows")
    rows = np.asarray(np.load(name, mmap_mode="r"), dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"{name} must hold a two-dimensional array")
    return _box(Path(name).stem, rows, *bounds, 8)
