"""What is built works: both wheels, installed into empty environments, far from the checkout.

Nothing here runs from the sources: a file that a wheel lacks, or a requirement that it does not state, is
missing in these tests as it would be on a stranger's machine.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from playwright.sync_api import expect

from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import RunningService, server
from tests.acceptance.test_story import tell_the_story
from tests.markdown import ROOT, fences
from tests.support.browser import chromium
from tests.support.environments import Environment, install
from tests.test_tidy import files

SERVER, CLIENT, KERNELS = "cairn_dp", "cairn_client", "cairn_dp_kernels"
#: Where the packages of each wheel lie in the repository.
PACKAGES = {SERVER: ("core/", "service/", "migrations/"), CLIENT: ("client/cairn_client/",)}
GUIDE = "docs/analyst.md"
DEMO = "http://127.0.0.1:8000"  # the address that the guides use


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both wheels as `make dist` builds them, from a copy of the repository that is gone afterwards."""
    folder = tmp_path_factory.mktemp("wheels")
    checkout = folder / "checkout"
    for name in files():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    # The tools are those of the running tests; nothing is installed for the copy.
    command = ["make", "dist", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.test-ready"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (checkout / "dist").rename(folder / "dist")
    shutil.rmtree(checkout)
    return {path.name.partition("-")[0]: path for path in (folder / "dist").iterdir()}


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the server, and without the client."""
    return install(wheels[SERVER], tmp_path_factory.mktemp("server"), "server")


@pytest.fixture(scope="module")
def demo(installed: Environment) -> Iterator[RunningService]:
    """`cairn-server demo` of the installed server."""
    with server("", installed.home, program=installed.program("cairn-server"), command=("demo",)) as running:
        yield running


@pytest.fixture(scope="module")
def analyst_key(installed: Environment, demo: RunningService) -> str:
    return (installed.home / "var" / "demo-keys.txt").read_text().split()[1]


def test_all_wheels_are_built(wheels: dict[str, Path]) -> None:
    compiled = {KERNELS} if shutil.which("cc") else set()
    assert set(wheels) == {SERVER, CLIENT} | compiled


@pytest.mark.parametrize("name", [SERVER, CLIENT])
def test_a_wheel_holds_the_files_of_its_packages_and_no_others(name: str, wheels: dict[str, Path]) -> None:
    expected = {
        path.removeprefix("client/"): (ROOT / path).read_bytes()
        for path in files()
        if path.startswith(PACKAGES[name])
    }
    with ZipFile(wheels[name]) as archive:
        held = {each: archive.read(each) for each in archive.namelist() if ".dist-info/" not in each}
    assert set(held) == set(expected)
    assert [each for each in held if held[each] != expected[each]] == []


# --- the server ---------------------------------------------------------------------------------------------


def test_the_installed_server_migrates_a_database_and_serves_the_whole_story(
    installed: Environment, postgres: Server, tmp_path: Path
) -> None:
    name = postgres.create()
    url = postgres.url(name)
    installed.run("cairn-server", "migrate", CAIRN_DATABASE_URL=url)
    command = ("serve", "--workers", "2", "--no-migrate")
    with server(url, tmp_path, program=installed.program("cairn-server"), command=command) as service:
        tell_the_story(service)
    assert "Traceback" not in service.log.read_text()
    postgres.drop(name)


def test_the_installed_server_needs_no_checkout(installed: Environment) -> None:
    program = "import core, service, migrations; print(core.__file__, service.__file__, migrations.__file__)"
    places = installed.run("python", "-c", program).split()
    assert [place for place in places if not Path(place).is_relative_to(installed.folder)] == []
    assert CLIENT.replace("_", "-") not in installed.distributions()


def test_the_installed_server_serves_every_file_of_the_console(demo: RunningService) -> None:
    static = ROOT / "service" / "console" / "static"
    with httpx.Client(base_url=demo.address) as client:
        for path in static.rglob("*"):
            if path.is_file():
                answer = client.get(f"/console/{path.relative_to(static).as_posix()}")
                assert answer.status_code == 200, path
                assert answer.content == path.read_bytes(), path


def test_the_console_of_the_installed_server_opens_in_a_browser(
    demo: RunningService, analyst_key: str
) -> None:
    complaints: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(demo.address)
        page.get_by_label("Your key").fill(analyst_key)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("link", name="visits")).to_be_visible(timeout=60_000)
    assert complaints == []


def test_the_library_alone_can_be_imported_whole(wheels: dict[str, Path], tmp_path: Path) -> None:
    library = install(wheels[SERVER], tmp_path)
    assert {"fastapi", "sqlalchemy", "httpx", "typer"}.isdisjoint(library.distributions())
    program = (
        "import core, importlib, pkgutil\n"
        "for module in pkgutil.walk_packages(core.__path__, 'core.'): importlib.import_module(module.name)"
    )
    library.run("python", "-c", program)


# --- the kernels --------------------------------------------------------------------------------------------

BODIES = "from core.kernels.backend import bodies; print(*bodies())"


def test_the_library_without_compiled_kernels_computes_in_numpy(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    assert install(wheels[SERVER], tmp_path).run("python", "-W", "error", "-c", BODIES) == "numpy\n"


@pytest.mark.skipif(not shutil.which("cc"), reason="the kernels are compiled only where a compiler is")
def test_the_library_finds_the_kernels_that_are_installed_beside_it(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    library = install(wheels[SERVER], tmp_path)
    library.add(wheels[KERNELS])
    assert "plain" in library.run("python", "-W", "error", "-c", BODIES).split()


@pytest.mark.skipif(not shutil.which("cc"), reason="the kernels are compiled only where a compiler is")
def test_the_wheel_of_the_kernels_is_for_one_platform_and_every_python(wheels: dict[str, Path]) -> None:
    assert re.fullmatch(r"cairn_dp_kernels-[\d.]+-py3-none-(?!any)\w+\.whl", wheels[KERNELS].name)
    with ZipFile(wheels[KERNELS]) as archive:
        names = set(archive.namelist())
    assert {"cairn_kernels/__init__.py", "cairn_kernels/py.typed", "cairn_kernels/plain.so"} <= names


# --- the client ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the client alone."""
    return install(wheels[CLIENT], tmp_path_factory.mktemp("client"))


def test_the_client_brings_what_its_page_lists(client: Environment) -> None:
    (listed,) = (fence.code for fence in fences("docs/client.md") if fence.language == "text")
    assert client.distributions() == {"cairn-client", *listed.split()}


def test_the_client_brings_no_numerical_libraries_and_nothing_of_the_server(client: Environment) -> None:
    unwanted = {"cairn-dp", "scipy", "scikit-learn", "pyarrow", "pandas", "matplotlib"}
    unwanted |= {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "psycopg", "dask"}
    assert unwanted.isdisjoint(client.distributions())


def test_importing_the_client_loads_only_what_it_needs(client: Environment) -> None:
    """Its time is mostly that of numpy and httpx: `python -X importtime -c 'import cairn_client'`."""
    program = "import sys, json, cairn_client; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(client.run("python", "-c", program))
    tops = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert {"cairn_client", "httpx", "numpy"} <= tops
    assert {"typer", "pydantic", "pandas", "matplotlib", "scipy", "IPython"}.isdisjoint(tops)
    assert {"cairn_client.cli", "cairn_client.commands"}.isdisjoint(loaded)


def test_the_first_script_runs_with_the_client_alone(
    client: Environment, demo: RunningService, analyst_key: str
) -> None:
    shutil.copy(ROOT / "examples" / "getting_started.py", client.home)
    shown = client.run("python", "-W", "error", "getting_started.py", demo.address, analyst_key)
    assert "Refused: 9 asked" in shown


def test_the_analysts_guide_runs_with_the_extras_that_it_names(
    wheels: dict[str, Path], demo: RunningService, analyst_key: str, tmp_path: Path
) -> None:
    reader = install(wheels[CLIENT], tmp_path, "plot,verify")
    (reader.home / "guide.py").write_text(as_script(demo.address, analyst_key, reader))
    reader.run("python", "-W", "error", "guide.py", HOME=str(reader.home), XDG_CONFIG_HOME="")
    assert (reader.home / "centres.png").exists()
    assert json.loads((reader.home / "receipt.json").read_text())["dataset"] == "visits"


def as_script(address: str, key: str, reader: Environment) -> str:
    """The blocks of the analyst's guide as one script: Python as it stands, a shell line as a call."""
    lines = ["import subprocess"]
    for fence in fences(GUIDE):
        if fence.role is None:
            continue
        if fence.language == "python":
            lines.append(fence.code)
            continue
        for line in re.sub(r"\\\n\s*", " ", fence.code).splitlines():
            program, *words = shlex.split(line.replace(DEMO, address))
            typed = f"{key}\n" if words[0] == "login" else ""
            call = [reader.program(program), *words]
            lines.append(f"subprocess.run({call}, input={typed!r}, text=True, check=True)")
    return "\n".join(lines)
