"""Families of sets for maximum coverage, and the loop that picks from them."""

from core.coverage.balls import Balls, SiteBalls
from core.coverage.coins import Coins
from core.coverage.families import Family, SetCounts
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
