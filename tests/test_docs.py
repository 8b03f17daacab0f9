"""The documents stay true: links resolve, examples run, every target, command and setting is described."""

import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from benchmarks.__main__ import commands as benchmark_commands
from tests.markdown import ROOT, Fence, anchors, commands, fences, links, pages

MAKEFILE = (ROOT / "Makefile").read_text()
# The documents for users; the changelog is history, and arguments beside the code are for reviewers.
GUIDES = ["README.md", "client/README.md", *(page for page in pages() if page.startswith("docs/"))]
COMMAND_LINES = {"cairn": "cairn_client.cli", "cairn-server": "service.cli"}


def documented() -> str:
    return "\n".join((ROOT / page).read_text() for page in GUIDES)


def test_every_test_that_a_document_names_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", documented()))
    assert named
    missing = [f"{path}::{test}" for path, test in sorted(named) if not _has_test(path, test)]
    assert missing == []
    written = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    alone = set(re.findall(r"`(test_\w+)`", documented()))
    assert [test for test in sorted(alone) if f"def {test}(" not in written] == []


@pytest.mark.parametrize("page", ["docs/attacks.md", "docs/threat-model.md"])
def test_every_line_on_an_attack_names_its_test_or_says_that_there_is_none(page: str) -> None:
    text = (ROOT / page).read_text().split("## What an analyst can observe")[-1]  # not who is who
    tables = re.findall(r"(?m)^\|---.*\n((?:\|.*\n)+)", text)
    lines = [line for table in tables for line in table.splitlines()]
    assert len(lines) > 15
    assert [line for line in lines if not re.search(r"`[^`]*test_\w+|\| none", line)] == []


def _has_test(path: str, test: str) -> bool:
    file = ROOT / path
    return file.is_file() and (not test or f"def {test}(" in file.read_text())


# --- make -------------------------------------------------------------------------------------------------


def make_targets() -> list[str]:
    phony = re.search(r"(?m)^\.PHONY:(.*)$", MAKEFILE)
    assert phony, "the Makefile should declare its targets .PHONY"
    return phony[1].split()


def test_every_make_target_describes_itself_in_help() -> None:
    help_text = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    described = set(re.findall(r"(?m)^\s+make (\S+)\s+\S", help_text))
    assert set(make_targets()) == described


def test_every_make_target_is_in_the_documents() -> None:
    assert [t for t in make_targets() if not re.search(rf"\bmake {t}\b", documented())] == []


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    readme = [words for f in fences("README.md") if f.language == "sh" for words in commands(f.code)]
    assert ["make", "test"] in readme
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == "make test"


# --- links and code ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages())
def test_relative_links_resolve(page: str) -> None:
    def resolves(link: str) -> bool:
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not target.exists():
            return False
        return not anchor or anchor in anchors(target.relative_to(ROOT).as_posix())

    relative = [link for link in links(page) if not re.match(r"[a-z]+:", link)]
    assert [link for link in relative if not resolves(link)] == []


@pytest.mark.parametrize("page", pages())
def test_every_fence_names_its_language(page: str) -> None:
    assert [fence.place for fence in fences(page) if not fence.language] == []


@pytest.mark.parametrize("page", pages())
def test_a_note_on_a_fence_says_whose_service_it_runs_against(page: str) -> None:
    """There is no note that keeps a block from being run."""
    assert [fence.place for fence in fences(page) if fence.note and fence.role is None] == []


def python_blocks(page: str) -> list[Fence]:
    """Those that need no service; the others run in tests/client/test_guides.py."""
    return [fence for fence in fences(page) if fence.language == "python" and fence.role is None]


@pytest.mark.parametrize("page", [page for page in GUIDES if python_blocks(page)] or ["README.md"])
def test_python_in_the_guides_runs(page: str, tmp_path: Path) -> None:
    """A page's blocks in order, in one namespace, in an empty directory, with warnings as errors."""
    # Blank lines keep the line numbers of a traceback those of the page.
    script = ""
    for block in python_blocks(page):
        script += "\n" * (block.line - script.count("\n")) + block.code
    (tmp_path / "page.py").write_text(script)
    command = [sys.executable, "-W", "error", "page.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"{page}:\n{run.stderr}"


# --- shell blocks: what a line may start with, and how the rest of it is checked ----------------------------


def command_tree(command: Any) -> dict[str, Any]:
    """Sub-commands by name, nested; a command without any is an empty tree."""
    inner = getattr(command, "commands", {})
    return {name: command_tree(below) for name, below in inner.items() if not below.hidden}


def command_line(name: str) -> dict[str, Any] | None:
    """What the command of that name offers, or None while its module does not exist."""
    module = COMMAND_LINES[name]
    if importlib.util.find_spec(module) is None:
        return None
    app = importlib.import_module(module).app
    return command_tree(typer.main.get_command(app))


def is_make_target(words: list[str]) -> bool:
    """Make itself knows the targets, and says what it would run; only `run` and `test` run elsewhere."""
    known = all(word in make_targets() for word in words[1:] if "=" not in word)
    return known and subprocess.run([*words, "-n"], cwd=ROOT, capture_output=True).returncode == 0


def is_own_command(words: list[str]) -> bool:
    offered = command_line(words[0])
    for word in words[1:]:
        if not offered or word.startswith("-"):
            break
        offered = offered.get(word)
    return offered is not None


def is_script(words: list[str]) -> bool:
    makes_environment = words[1:3] == ["-m", "venv"] and len(words) == 4
    in_examples = len(words) > 1 and (ROOT / words[1]).parent == ROOT / "examples"
    return makes_environment or is_benchmark(words) or in_examples


def is_installation(words: list[str]) -> bool:
    """`pip install` of a folder of this repository, with extras that it has and constraints that exist."""
    found = re.fullmatch(r"pip install (?:-c (\S+) )?'?(\.(?:/\w+)?)(?:\[([\w,]+)\])?'?", " ".join(words))
    if not found or not (ROOT / (found[1] or ".")).exists() or not (ROOT / found[2]).is_dir():
        return False
    project = tomllib.loads((ROOT / found[2] / "pyproject.toml").read_text())["project"]
    return set(filter(None, (found[3] or "").split(","))) <= set(project["optional-dependencies"])


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("pip install -c constraints.txt '.[server,cluster]'", True),
        ("pip install './client[plot]'", True),
        ("pip install './client[server]'", False),
        ("pip install -c nowhere.txt .", False),
        ("pip install numpy", False),
    ],
)
def test_only_installations_from_this_repository_are_known(line: str, known: bool) -> None:
    assert is_installation(line.split()) is known


def is_benchmark(words: list[str]) -> bool:
    """Benchmarks take minutes, so they are not run here: their own parser reads every option and value."""
    return words[1:3] == ["-m", "benchmarks"] and parses(
        typer.main.get_command(benchmark_commands()), words[3:]
    )


def parses(command: Any, words: list[str]) -> bool:
    if words in ([], ["--help"]):
        return True
    if hasattr(command, "commands"):
        return words[0] in command.commands and parses(command.commands[words[0]], words[1:])
    try:
        command.make_context("benchmark", list(words))
    except Exception:  # whatever the parser has against it
        return False
    return True


def test_a_wrong_option_of_a_benchmark_is_noticed() -> None:
    good = ["python", "-m", "benchmarks", "figures", "balcan", "--runs", "5"]
    assert is_benchmark(good)
    assert not is_benchmark([*good[:-1], "many"])
    assert not is_benchmark([*good, "--fast"])
    assert not is_benchmark([*good[:4], "nobody"])


def is_kubectl(words: list[str]) -> bool:
    """Return True if it names only manifests, jobs and deployments that `deploy/kubernetes` has."""
    folder = ROOT / "deploy" / "kubernetes"
    manifests = "".join(path.read_text() for path in folder.rglob("*.yaml"))
    named = [word.rpartition("/")[2] for word in words if word.startswith(("job/", "deployment/"))]
    applied = [words[place + 1] for place, word in enumerate(words) if word == "-k"]
    return all(f"name: {name}\n" in manifests for name in named) and all(
        (ROOT / path / "kustomization.yaml").exists() for path in applied
    )


SHELL: dict[str, Callable[[list[str]], bool]] = {
    "make": is_make_target,
    "cairn": is_own_command,
    "cairn-server": is_own_command,
    "python": is_script,
    "pip": is_installation,
    ".": lambda words: len(words) == 2 and words[1].endswith("/bin/activate"),
    "git": lambda words: words[1] == "clone",
    "curl": lambda words: any(word.startswith("$HERE/") for word in words),  # see test_tour.py
    "cd": lambda words: len(words) == 2,
    "docker": lambda words: words[1] in ("compose", "run", "network"),
    "kubectl": is_kubectl,
    **{f"deploy/{script.name}": lambda _: True for script in (ROOT / "deploy").glob("*.sh")},
}


def unknown_commands(fence: Fence) -> Iterator[str]:
    for words in commands(fence.code):
        check = SHELL.get(words[0].removeprefix(".venv/bin/"))
        if check is None or not check([words[0].removeprefix(".venv/bin/"), *words[1:]]):
            yield f"{fence.place}: {' '.join(words)}"


@pytest.mark.parametrize("page", GUIDES)
def test_shell_blocks_name_only_what_exists(page: str) -> None:
    shell = [f for f in fences(page) if f.language in {"sh", "bash", "shell", "console"}]
    assert [line for fence in shell for line in unknown_commands(fence)] == []


# --- commands and settings --------------------------------------------------------------------------------


def leaves(offered: dict[str, Any], path: str) -> Iterator[str]:
    for name, below in offered.items():
        yield from leaves(below, f"{path} {name}") if below else [f"{path} {name}"]


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_every_command_is_in_the_documents(name: str) -> None:
    found = leaves(command_line(name) or {}, name)
    assert [path for path in found if not re.search(rf"{re.escape(path)}\b", documented())] == []


def setting_names() -> list[str]:
    """The environment variables that the service reads, none while it has no settings."""
    if importlib.util.find_spec("service.operations.settings") is None:
        return []
    from pydantic_settings import BaseSettings

    module = importlib.import_module("service.operations.settings")
    own = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, BaseSettings)]
    return [
        f"{settings.model_config.get('env_prefix', '')}{field}".upper()
        for settings in own
        if settings is not BaseSettings
        for field in settings.model_fields
    ]


def test_every_setting_is_in_the_documents() -> None:
    assert [name for name in setting_names() if not re.search(rf"\b{name}\b", documented())] == []


def test_every_file_of_figures_has_its_command_and_commit() -> None:
    page = (ROOT / "docs" / "figures.md").read_text()
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.csv")):
        assert re.search(
            rf"\| `{re.escape(path.name)}` \|.*\| [0-9a-f]{{8}} \| \d{{4}}-\d\d-\d\d \|", page
        ), path
