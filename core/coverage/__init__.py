"""Families of sets for maximum coverage, and the loop that picks from them."""

from core.coverage.coins import Coins
from core.coverage.families import Balls, Family, SetCounts, SiteBalls
from core.coverage.grid_balls import GridBalls
from core.coverage.loop import CoverageLoop, LoopRound

__all__ = [
    "Balls",
    "Coins",
    "CoverageLoop",
    "Family",
    "GridBalls",
    "LoopRound",
    "SetCounts",
    "SiteBalls",
]
