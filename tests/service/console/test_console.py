"""How the console is served: whole, from here alone, under a policy that allows nothing else."""

import asyncio
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from service import console
from tests.markdown import ROOT

STATIC = ROOT / "service" / "console" / "static"
FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())


def get(path: str, **headers: str) -> Response:
    """What the console answers, without the rest of the service."""
    app = FastAPI()
    app.include_router(console.router)

    async def ask() -> Response:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def test_the_page_is_served_under_a_strict_policy() -> None:
    answer = get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == "'none'"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(STATIC)))
def test_every_file_is_served_as_what_it_is(path: Path) -> None:
    answer = get(f"/console/{path.relative_to(STATIC).as_posix()}")
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
    assert answer.status_code == 200
    assert answer.content == path.read_bytes()
    assert answer.headers["content-type"].startswith(kinds[path.suffix])


@pytest.mark.parametrize(("accepted", "zipped"), [("gzip, br", True), ("identity", False)])
def test_files_are_zipped_for_browsers_that_can_read_them(accepted: str, zipped: bool) -> None:
    answer = get("/console/main.js", **{"Accept-Encoding": accepted})
    assert (answer.headers.get("content-encoding") == "gzip") is zipped
    assert answer.content == (STATIC / "main.js").read_bytes()
    assert answer.headers["vary"] == "Accept-Encoding"


def test_the_scripts_of_the_first_page_are_fetched_at_once() -> None:
    """The page names every module that its first script needs, directly or not."""
    needed, waiting = set(), [STATIC / "main.js"]
    while waiting:
        path = waiting.pop()
        for name in re.findall(r'(?m)^import [^;]* from "(\S+)";', path.read_text()):
            found = (path.parent / name).resolve()
            if found not in needed:
                needed.add(found)
                waiting.append(found)
    named = re.findall(r'rel="modulepreload" href="/console/(\S+)"', (STATIC / "index.html").read_text())
    assert sorted(named) == sorted(path.relative_to(STATIC).as_posix() for path in needed)


def test_a_file_the_browser_has_already_is_not_sent_again() -> None:
    tag = get("/console/main.js").headers["etag"]
    again = get("/console/main.js", **{"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == console.POLICY


@pytest.mark.parametrize("path", ["no-such-file.js", "../__init__.py", "%2e%2e/__init__.py", "pages", ""])
def test_nothing_else_is_served(path: str) -> None:
    assert get(f"/console/{path}").status_code == 404


def test_the_page_holds_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", page) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(STATIC)))
def test_no_file_names_another_host_or_parses_markup(path: Path) -> None:
    namespaces = r"http://www\.w3\.org/2000/svg|http://schemas\.openxmlformats\.org/\S+"
    text = re.sub(namespaces, "", path.read_text())
    assert re.findall(r"https?://|//[a-z0-9-]+\.[a-z]{2,}/|@import", text) == []
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
        == []
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(STATIC)))
def test_modules_say_what_they_are_for(path: Path) -> None:
    if path.suffix == ".js":
        assert path.read_text().startswith("// ")


def test_every_module_is_used() -> None:
    scripts = [path for path in FILES if path.suffix == ".js"]
    everything = "\n".join(path.read_text() for path in [*scripts, STATIC / "index.html"])
    assert [path.name for path in scripts if f"/{path.name}" not in everything] == []


def test_both_ways_to_dark_colours_are_the_same() -> None:
    sheet = (STATIC / "console.css").read_text()
    preferred = re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', sheet, re.S)
    chosen = re.search(r'\n:root\[data-theme="dark"\] \{(.*?)\}', sheet, re.S)
    assert preferred
    assert chosen
    assert preferred[1].split() == chosen[1].split()
