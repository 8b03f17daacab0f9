"""Which tests share a test process under `pytest -n`: those that share a service, a browser or long work.

xdist's own way to say so, the mark `xdist_group`, does nothing with this version of pytest: it appends the
group to a test's private id, which pytest has since renamed. So the scheduler itself is told, by directory.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Everything in one of these directories or files runs in one process, where its service is started once, or
#: what all its tests need is computed once.
TOGETHER = (
    "tests/acceptance/test_demo.py",
    "tests/acceptance/test_image.py",
    "tests/acceptance/test_story.py",
    "tests/acceptance/test_upload.py",
    "tests/acceptance/test_wheels.py",
    "tests/client/",
    "tests/cluster/",
    "tests/console/",
    "tests/contracts/test_golden.py",
    "tests/core/algorithms/test_summit_public.py",
    "tests/core/statistics/test_base.py",
    "tests/fuzz/test_authorisation.py",
    "tests/fuzz/test_campaign.py",
    "tests/fuzz/test_hostile_files.py",
    "tests/fuzz/test_real_server.py",
    "tests/fuzz/test_side_channels.py",
    "tests/service/jobs/results/test_answers.py",
    "tests/service/jobs/results/test_transcripts.py",
    "tests/service/jobs/test_quotes.py",
    "tests/test_tidy.py",
)


def home_of(test: str) -> str:
    """What a test shares its process with: its directory, or nothing but itself."""
    return next((folder for folder in TOGETHER if test.startswith(folder)), test)


class ByHome(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out whole homes, the largest first, so that the single tests fill the rest of the time."""

    def _split_scope(self, nodeid: str) -> str:
        return home_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """The scheduler of `--dist loadscope`."""
    return ByHome(config, log) if config.getvalue("dist") == "loadscope" else None
