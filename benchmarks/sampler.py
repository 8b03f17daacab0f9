"""How fast exact noise is drawn: `python -m benchmarks sampler` prints draws per second of one core."""

import statistics
import time
from collections.abc import Callable
from typing import Annotated

import typer

from core.mechanisms import sampler

LAWS: dict[str, Callable[[float, int], object]] = {"Gaussian": sampler.gaussian, "Laplace": sampler.laplace}


def draws_per_second(law: Callable[[float, int], object], scale: float, draws: int, repeats: int) -> float:
    """The median over repeats, by CPU time: other programs and further cores neither help nor hurt."""
    law(scale, min(draws, 10_000))  # the first call loads libraries

    def seconds() -> float:
        start = time.process_time()
        law(scale, draws)
        return time.process_time() - start

    return draws / statistics.median(seconds() for _ in range(repeats))


def main(
    scale: Annotated[float, typer.Option(help="Standard deviation, or Laplace scale, of the noise.")] = 1e4,
    draws: Annotated[int, typer.Option(help="Integers per call.")] = 4_000_000,
    repeats: Annotated[int, typer.Option(help="Calls, of which the median counts.")] = 5,
) -> None:
    """Print how many exact noise integers one core draws per second."""
    for name, law in LAWS.items():
        millions = draws_per_second(law, scale, draws, repeats) / 1e6
        typer.echo(f"{name} at scale {scale:g}: {millions:.2f} million draws per second on one core")
