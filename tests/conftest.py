"""Configuration shared by all tests: plugins, and the Hypothesis profiles of `make test` and `make audit`."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.support.browser",
    "tests.support.databases",
    "tests.support.folders",
    "tests.support.live",
    "tests.support.running",
    "tests.support.scheduling",
    "tests.support.service",
    "tests.support.timing",
]

# `make test` must give the same answer twice, so its examples are fixed; `make audit` looks for new ones.
# No deadlines: the machine may be busy, and a slow example is no wrong example.
settings.register_profile("test", deadline=None, derandomize=True, database=None, max_examples=100)
settings.register_profile(
    "audit",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))
