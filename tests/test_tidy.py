"""The house rules that no linter knows: modules that say what they are for, an argument beside what
needs one, nothing dead, nothing of this machine, no seeds and no hidden randomness where rows are read."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
SHIPPED = ("core", "service", "client")

# Modules of core (or packages of them) whose contents need a privacy argument beside the code.
ARGUED = (
    "core/algorithms",
    "core/coverage",
    "core/mechanisms",
    "core/questions",
    "core/statistics",
    "core/views",
)
# Protocols, caches, descriptions of bins and answers, and lists of names: nothing in them touches a record.
SCAFFOLDING = {"base", "columns", "kinds", "registry", "view"}
# Stages are argued for on the page of each algorithm that is made of them, as those of core/blocks are.
STAGES = "core/algorithms/papers/stages/"

SEED_NAMES = {"seed", "seeds", "random_seed", "random_state", "rng", "generator", "entropy"}
ROW_NAMES = {
    "rows",
    "row",
    "x",
    "data",
    "dataset",
    "source",
    "chunk",
    "chunks",
    "records",
    "probe",
    "samples",
}


@cache
def files() -> tuple[str, ...]:
    """Everything git tracks, or would track: ignored files are nobody's business."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted(name for name in set(listing.split("\0")) if name and (ROOT / name).is_file()))


@cache
def text(name: str) -> str:
    """The contents of a text file; empty for pictures and other binary files."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def modules(*packages: str) -> list[str]:
    return [f for f in files() if f.endswith(".py") and (not packages or f.split("/")[0] in packages)]


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(text(name), filename=name)


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name in files()
        for number, line in enumerate(text(name).splitlines(), 1)
        if pattern.search(line)
    ]


# --- shape of a module ------------------------------------------------------------------------------------


def test_modules_say_in_their_first_sentence_what_they_are_for() -> None:
    def sentence(name: str) -> str:
        return re.split(r"(?<=\.)\s|\n\n", ast.get_docstring(tree(name)) or "", maxsplit=1)[0]

    assert [n for n in modules() if not re.fullmatch(r"\S+(\s+\S+){2,}[.:]", sentence(n))] == []


# --- arguments beside the code ----------------------------------------------------------------------------


def needs_argument(name: str) -> bool:
    path = PurePosixPath(name)
    if path.stem in SCAFFOLDING or path.name.startswith("_") or name.startswith(STAGES):
        return False
    return name.removesuffix(".py").startswith(tuple(f"{place}/" for place in ARGUED)) or (
        name.removesuffix(".py") in ARGUED
    )


def argument(module: str) -> str:
    return module.removesuffix(".py") + ".md"


def test_what_touches_privacy_has_its_argument_beside_it() -> None:
    wanting = [name for name in modules("core") if needs_argument(name)]
    assert [name for name in wanting if argument(name) not in files()] == []


def measured_things(name: str) -> list[str]:
    """The mechanisms, statistics or views of a module: its public dataclasses that do something."""
    classes = [node for node in tree(name).body if isinstance(node, ast.ClassDef) and node.decorator_list]
    protocols = [c for c in classes if any(ast.unparse(base).startswith("Protocol") for base in c.bases)]
    return [c.name for c in classes if methods(c) and c not in protocols and not c.name.startswith("_")]


def test_an_argument_names_every_mechanism_statistic_and_view_of_its_module() -> None:
    argued = [n for n in modules("core") if needs_argument(n) and not n.startswith("core/algorithms/")]
    assert [
        f"{argument(name)} says nothing of {thing}"
        for name in argued
        for thing in measured_things(name)
        if argument(name) in files() and not re.search(rf"\b{thing}\b", text(argument(name)))
    ] == []


def test_an_argument_is_more_than_a_title() -> None:
    arguments = [f for f in files() if f.startswith("core/") and f.endswith(".md")]
    assert [name for name in arguments if len(text(name).split()) < 60] == []


def test_an_argument_lies_beside_the_code_it_argues_for() -> None:
    arguments = [f for f in files() if f.startswith("core/") and f.endswith(".md")]
    assert [a for a in arguments if a.removesuffix(".md") + ".py" not in files()] == []


# --- nothing dead -----------------------------------------------------------------------------------------


def dotted(name: str) -> str:
    return name.removeprefix("client/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_by(name: str) -> Iterator[str]:
    package = dotted(name) if name.endswith("__init__.py") else dotted(name).rpartition(".")[0]
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def is_entry(name: str) -> bool:
    """Started by a command, by a tool, by `python -m benchmarks` or by `python -m assurance`."""
    if name.endswith(("/__init__.py", "/__main__.py", "/cli.py")) or name.startswith(
        ("migrations/", "tests/", "examples/", "docs/", "deploy/", "kernels/setup.py")
    ):
        return True
    tops = {getattr(node, "name", None) for node in tree(name).body}
    started = name.startswith(("assurance/", "benchmarks/"))
    return started and bool(tops & {"main", "app"} or "app = " in text(name))


def test_every_module_is_used() -> None:
    used = {target for name in modules() for target in imported_by(name) if target != dotted(name)}
    assert [name for name in modules() if not is_entry(name) and dotted(name) not in used] == []


def test_every_other_file_is_mentioned_somewhere() -> None:
    """A file that no other file names is found by nobody; conventional names are found by their tools."""
    top = "LICENSE README.md CHANGELOG.md SECURITY.md Makefile Dockerfile docker-compose.yml pyproject.toml"
    tools = "biome.json tsconfig.json package.json package-lock.json"
    conventional = {*top.split(), *tools.split(), ".gitignore", ".dockerignore", "py.typed", "run"}
    everything = {name: text(name) for name in files()}

    def mentioned(name: str) -> bool:
        leaf = PurePosixPath(name).name
        return any(leaf in content for other, content in everything.items() if other != name)

    others = [
        f
        for f in files()
        if not f.endswith((".py", ".test.js")) and PurePosixPath(f).name not in conventional
    ]
    arguments = {argument(name) for name in modules("core")}
    assert [name for name in others if name not in arguments and not mentioned(name)] == []


def test_no_file_is_empty_but_type_markers_and_package_markers() -> None:
    allowed = ("py.typed", "__init__.py", ".gitkeep")
    assert [f for f in files() if not f.endswith(allowed) and (ROOT / f).stat().st_size == 0] == []


# --- nothing of one machine -------------------------------------------------------------------------------


def test_no_path_of_one_machine_is_written_down() -> None:
    home = re.compile(r"(?<![\w.:/$}-])/(?:work|root|home|Users)/[\w.]")
    images = ("Dockerfile", "docker-compose.yml")  # paths inside an image are the image's own
    assert [line for line in lines_matching(home) if not line.startswith(images)] == []


def test_no_package_registry_is_named() -> None:
    hosts = r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|deb\.debian\.org|docker\.io|ghcr\.io|quay\.io"
    options = r"--(?:extra-)?index-url\b"
    assert lines_matching(re.compile(f"{hosts}|{options}")) == []


# --- no seeds, no hidden randomness -----------------------------------------------------------------------


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    listed = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {argument.arg.lower() for argument in listed}


def methods(definition: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in definition.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def fields(definition: ast.ClassDef) -> set[str]:
    annotated = (node.target for node in definition.body if isinstance(node, ast.AnnAssign))
    return {target.id.lower() for target in annotated if isinstance(target, ast.Name)}


def seeds_where_rows_are_read(name: str) -> Iterator[str]:
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            if parameters(node) & SEED_NAMES and parameters(node) & ROW_NAMES:
                yield f"{name}:{node.lineno}: {node.name}"
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            made_from = fields(node).union(*(parameters(m) for m in methods(node) if m.name == "__init__"))
            touched = made_from.union(*(parameters(m) for m in methods(node)))
            wire_type = not name.startswith("core/")
            if made_from & SEED_NAMES and (wire_type or touched & ROW_NAMES):
                yield f"{name}:{node.lineno}: {node.name}"


def test_nothing_public_that_reads_rows_accepts_a_seed() -> None:
    assert [found for name in modules(*SHIPPED) for found in seeds_where_rows_are_read(name)] == []


# Rows made up for rehearsals and for the demo: no noise is drawn there, and no data are read.
MAKE_BELIEVE = {
    "service/workers/calibration.py",
    "service/workers/rehearsal.py",
    "service/demo.py",
    "service/demo_table.py",
}


def numpy_randomness(name: str) -> Iterator[str]:
    """Uses of `np.random`, but for the bare type `np.random.Generator` in an annotation."""
    called = {id(node.func) for node in ast.walk(tree(name)) if isinstance(node, ast.Call)}
    as_type = {
        id(node.value)
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr == "Generator" and id(node) not in called
    }
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"np.random", "numpy.random"}:
            if id(node) not in as_type:
                yield f"{name}:{node.lineno}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numpy"):
            if "random" in f"{node.module} {' '.join(alias.name for alias in node.names)}":
                yield f"{name}:{node.lineno}"
        elif isinstance(node, ast.Import) and any(a.name.startswith("numpy.random") for a in node.names):
            yield f"{name}:{node.lineno}"


def test_only_the_probe_makes_numpy_generators() -> None:
    others = [name for name in modules(*SHIPPED) if name not in {"core/probe.py", *MAKE_BELIEVE}]
    assert [found for name in others for found in numpy_randomness(name)] == []


def process_ends(name: str) -> Iterator[str]:
    """The functions that can end or signal the process they run in, whatever it is doing."""
    ways = {"os._exit", "os.abort", "os.kill", "os.killpg", "signal.raise_signal"}
    for function in ast.walk(tree(name)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            used = {ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
            if used & ways:
                yield f"{name}:{function.name}"


def test_only_a_workers_main_the_helper_and_an_armed_fault_can_end_a_process() -> None:
    found = {end for name in modules(*SHIPPED) for end in process_ends(name)}
    assert found == {
        "service/workers/worker.py:main",
        "service/operations/faults.py:meet",
        # The helper's own process, when the API that started it is gone.
        "service/operations/helper.py:_serve",
        "service/operations/helper.py:watch",
    }


def test_benchmarks_import_nothing_of_the_tests_and_campaigns() -> None:
    imported = {target for name in modules("benchmarks") for target in imported_by(name)}
    assert {target for target in imported if target.startswith(("tests", "assurance"))} == set()


def test_campaigns_import_nothing_of_the_tests_but_their_support() -> None:
    imported = {target for name in modules("assurance") for target in imported_by(name)}
    of_tests = {target for target in imported if target.startswith("tests")}
    assert {target for target in of_tests if not target.startswith("tests.support")} == set()
