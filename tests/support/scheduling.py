"""Which tests share a test process under `pytest -n`: those that share a service, a browser or long work.

xdist's own way to say so, the mark `xdist_group`, does nothing with this version of pytest: it appends the
group to a test's private id, which pytest has since renamed. So the scheduler itself is told, by path.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Each file of these directories runs in one process. A process keeps the service and the browser that it has
#: started from one file to the next, so these files come one after the other.
FILES_OF = ("tests/console/", "tests/client/")
#: Each of these runs in one process, where its service starts once, or what its tests need is computed once.
#: The longest come first, so that no process is left with one of them at the end.
TOGETHER = (
    *FILES_OF,
    "tests/acceptance/test_wheels.py",
    "tests/cluster/",
    "tests/acceptance/test_story.py",
    "tests/acceptance/test_upload.py",
    "tests/acceptance/test_demo.py",
    "tests/acceptance/test_image.py",
    "tests/fuzz/test_authorisation.py",
    "tests/fuzz/test_campaign.py",
    "tests/fuzz/test_hostile_files.py",
    "tests/fuzz/test_real_server.py",
    "tests/fuzz/test_side_channels.py",
    "tests/contracts/test_golden.py",
    "tests/core/algorithms/summit/test_public_rows.py",
    "tests/core/statistics/test_base.py",
    "tests/service/jobs/results/test_answers.py",
    "tests/service/jobs/results/test_transcripts.py",
    "tests/service/jobs/test_quotes.py",
    "tests/test_tidy.py",
)


def home_of(test: str) -> str:
    """What a test shares its process with: its directory, its file, or nothing but itself."""
    if test.startswith(FILES_OF):
        return test.split("::")[0]
    return next((place for place in TOGETHER if test.startswith(place)), test)


def _place_in_line(item: pytest.Item) -> int:
    lines = (number for number, place in enumerate(TOGETHER) if item.nodeid.startswith(place))
    return next(lines, len(TOGETHER))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", type=int, help="shuffle the tests, home by home, in the order of this number")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The homes first, so that the single tests fill the rest of the time."""
    items.sort(key=_place_in_line)
    if (order := config.getoption("--order")) is not None:
        chance = random.Random(order)
        places = {home_of(item.nodeid): chance.random() for item in items}
        items.sort(key=lambda item: places[home_of(item.nodeid)])


class ByHome(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out whole homes, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return home_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """The scheduler of `--dist loadscope`."""
    if config.getvalue("dist") != "loadscope":
        return None
    config.option.loadscopereorder = False
    return ByHome(config, log)
