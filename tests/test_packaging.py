"""What is shipped is named, versioned and pinned as it should be, and can be imported with what it asks for.

tests/acceptance/test_wheels.py builds it, installs it and uses it.
"""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, requires, version

import pytest
from packaging.requirements import Requirement

from tests.markdown import ROOT
from tests.test_tidy import lines_matching

FOLDERS = {"cairn-dp": ROOT, "cairn-client": ROOT / "client", "cairn-dp-kernels": ROOT / "kernels"}
PACKAGES = {
    "core": "core",
    "service": "service",
    "cairn_client": "client/cairn_client",
    "cairn_kernels": "kernels/cairn_kernels",
}


def installed() -> list[str]:
    """The distributions of this repository that are installed: compiled kernels may be missing."""
    names = {distribution.name for distribution in distributions()}
    return [name for name in FOLDERS if name in names]


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


@pytest.mark.parametrize("name", installed())
def test_every_installed_dependency_is_pinned(name: str) -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {Requirement(line).name.lower().replace("_", "-") for line in pins if line.strip()}
    wanted = {Requirement(line).name.lower().replace("_", "-") for line in requires(name) or []}
    assert wanted - set(FOLDERS) - pinned == set()


@pytest.mark.parametrize(("compiler", "built"), [("nosuchcompiler", False), (sys.executable, True)])
def test_kernels_are_built_only_where_there_is_a_compiler(compiler: str, built: bool) -> None:
    command = ["make", "-n", "dist", f"CC={compiler}"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert ("./kernels" in printed.split()) is built


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT / PACKAGES[package] / "py.typed").exists()


# --- names and versions -------------------------------------------------------------------------------------


def project(name: str) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())["project"]
    return table


def test_all_distributions_have_one_version() -> None:
    stated = {project(name)["version"] for name in FOLDERS}
    assert len(stated) == 1
    assert {version(name) for name in installed()} == stated


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_states_the_name_of_its_distribution(name: str) -> None:
    assert project(name)["name"] == name


#: pip, told to install a package of that name: the names `cairn` and `cairn-core` on PyPI are other people's.
STRANGER = re.compile(
    r"""\bpipx?3?\b[^`|;&]* (?:un)?install\b[^`|;&]*?[ '"](?:cairn|cairn-core)(?=[\s'"`\[=<>~,;.]|$)"""
)


def elsewhere(pattern: re.Pattern[str]) -> list[str]:
    """Lines of the repository that match, but for the examples below."""
    return [line for line in lines_matching(pattern) if not line.startswith("tests/test_packaging.py:")]


def test_nothing_tells_anybody_to_install_a_strangers_package() -> None:
    assert elsewhere(STRANGER) == []


def test_nothing_asks_for_the_version_of_a_strangers_package() -> None:
    assert elsewhere(re.compile(r"""version\(["']cairn["']\)""")) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pip install cairn", True),
        ("`pip install 'cairn[plot]'` brings both", True),
        ("python -m pip install -U cairn==0.1", True),
        ("pip uninstall -y cairn", True),
        ("pip install cairn-core", True),
        ("pip install cairn-client", False),
        ("pip install 'cairn-dp[server]'", False),
        ("pip install ./client && cairn login", False),
    ],
)
def test_the_search_for_a_strangers_package_finds_it(line: str, found: bool) -> None:
    assert bool(STRANGER.search(line)) is found
