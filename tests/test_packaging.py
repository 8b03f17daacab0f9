"""What is shipped can be imported with what it asks for, and no more."""

import subprocess
import sys
import tomllib
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

from tests.markdown import ROOT

# Stands in for an environment with only these distributions (and what they need themselves).
IMPORT_ALL_OF_CORE = """
import importlib, pkgutil, sys

WITH_THESE = {"core", "numpy", "scipy", "sklearn", "mpmath", "joblib"}
WITH_THESE |= {"cloudpickle", "threadpoolctl", "narwhals"}

class NothingElse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in WITH_THESE | set(sys.stdlib_module_names) and not top.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, NothingElse())
import core
for module in pkgutil.walk_packages(core.__path__, "core."):
    importlib.import_module(module.name)
    print(module.name)
"""


def test_core_needs_only_its_numerical_libraries() -> None:
    command = [sys.executable, "-c", IMPORT_ALL_OF_CORE]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_every_installed_dependency_is_pinned() -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {Requirement(line).name.lower().replace("_", "-") for line in pins if line.strip()}
    wanted = {Requirement(line).name.lower().replace("_", "-") for line in requires("cairn") or []}
    assert wanted - {"cairn"} - pinned == set()


@pytest.mark.parametrize("package", ["core", "service", "cairn_client"])
def test_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


def test_arguments_and_type_markers_are_shipped_with_the_code() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert {"*.md", "py.typed"} <= set(configuration["package-data"]["*"])
