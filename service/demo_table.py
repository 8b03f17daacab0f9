"""The demo's table: made-up stays in a hospital, with a category, a date, gaps and a heavy tail."""

from datetime import date, timedelta

import numpy as np

from core.columns.boolean import Boolean
from core.columns.category import Category
from core.columns.dates import Date
from core.columns.number import Number
from service.datasets.wire import DatasetBody

_ROWS = 5_000
_WARDS = ("surgery", "medicine", "children", "elsewhere")


def facts() -> DatasetBody:
    """Return what its curator declares."""
    columns = (
        Number(name="age", low=0, high=110, whole=True),
        Category(name="ward", levels=_WARDS, other="elsewhere", weight=0.5),
        Date(name="admitted", low="2029-01-01", high="2029-12-31"),
        Number(name="cost", low=10, high=1_000_000, log=True),
        Boolean(name="smoker", weight=0.2, missing="fill", fill=False),
    )
    return DatasetBody.model_validate(
        {
            "name": "stays",
            "description": "Made-up stays in a hospital: who came, where to, when, and what it cost.",
            "table": [column.to_json() for column in columns],
            "size": _ROWS,
            "budget": {"epsilon": "10", "delta": "0.00002"},
        }
    )


def rows() -> bytes:
    """Draw children in winter, young people for surgery in summer, and old ones for medicine."""
    generator = np.random.default_rng(8)  # synthetic public rows, the same on every machine
    kind = generator.choice(3, _ROWS, p=[0.3, 0.3, 0.4])
    age = np.clip(generator.normal(np.array([6, 32, 74])[kind], np.array([3, 7, 8])[kind]), 0, 110)
    day = np.clip(generator.normal(np.array([40, 190, 260])[kind], 35), 0, 364)
    cost = np.exp(generator.normal(np.array([6, 8, 9.5])[kind], 0.8))
    ward = np.where(generator.random(_ROWS) < 0.9, np.array([2, 0, 1])[kind], 3)
    smoker = generator.choice(["yes", "no", ""], _ROWS, p=[0.2, 0.75, 0.05])
    lines = [
        f"{round(age[i])},{_WARDS[ward[i]]},{date(2029, 1, 1) + timedelta(days=int(day[i]))},{cost[i]:.2f},"
        f"{smoker[i]}"
        for i in range(_ROWS)
    ]
    return ("age,ward,admitted,cost,smoker\n" + "\n".join(lines) + "\n").encode()
