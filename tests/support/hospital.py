"""A hospital's table as people have it: nine columns of every kind, gaps, and a heavy tail."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

NAMES = ("patient_id", "age", "sex", "region", "admissions", "cost", "bmi", "visited", "smoker")
REGIONS = ("north", "south", "east", "west")


def hospital(rows: int = 20_000) -> list[list[str]]:
    """Rows of text: old and expensive patients in the south, young and cheap ones anywhere; 5% lack a BMI."""
    draw = np.random.default_rng(18)
    found = []
    for number in range(rows):
        old = draw.random() < 0.4
        age = int(np.clip(draw.normal(74 if old else 31, 7), 0, 110))
        region = "south" if old and draw.random() < 0.9 else REGIONS[draw.integers(4)]
        cost = float(np.exp(draw.normal(9 if old else 6, 1.0)))
        bmi = "" if draw.random() < 0.05 else f"{draw.normal(28 if old else 23, 3):.1f}"
        visited = date(2024, 1, 1) + timedelta(days=int(draw.integers(0, 366)))
        smoker = "yes" if draw.random() < (0.15 if old else 0.3) else "no"
        admissions = int(draw.poisson(4 if old else 1))
        sex = "female" if draw.random() < 0.5 else "male"
        found.append([f"p{number}", str(age), sex, region, str(admissions), f"{cost:.2f}", bmi,
                      visited.isoformat(), smoker])  # fmt: skip
    return found


def as_text(rows: list[list[str]], separator: str = ",") -> str:
    """A delimited text file with a header."""
    return "\n".join(separator.join(row) for row in [list(NAMES), *rows]) + "\n"
