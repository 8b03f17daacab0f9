"""Configuration of the documentation site: `make docs` builds it with Sphinx from these Markdown files."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
REST_PAGE = "docs/reference/rest"

project = "Cairn"
copyright = "the Cairn developers"
release = importlib.metadata.version("cairn-dp")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "core/**.md", "kernels/*.md"]
exclude_patterns = [".venv", "build", "dist", "node_modules", "**/__pycache__"]
html_theme = "furo"
html_title = "Cairn"
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "exclude-members": "set_fit_request"}
suppress_warnings = ["toc.not_included"]  # arguments and problems are reached by links


def setup(app: Any) -> None:
    """Register what Sphinx does not know by itself: the calls of the API."""
    app.connect("source-read", _append_rest_calls)


def _append_rest_calls(_app: Any, page: str, source: list[str]) -> None:
    """Append the calls of the API, from its own schema, to the page that introduces them."""
    if page != REST_PAGE:
        return
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from service.app import create_app
    from service.operations.settings import Settings

    schema = create_app(Settings(database_url="sqlite:///unopened.sqlite3")).openapi()
    source[0] = "\n".join([source[0], *_calls(schema), *_types(schema)])


def _calls(schema: dict[str, Any]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, call in methods.items():
            yield f"\n## `{method.upper()} {path}`\n"
            yield call.get("description") or call["summary"]
            yield from _parameters(call.get("parameters", []))
            for kind, content in call.get("requestBody", {}).get("content", {}).items():
                yield f"\nBody (`{kind}`): {_type(content.get('schema', {}))}"
            yield "\n| answer | |\n|---|---|"
            yield from (f"| {status} | {_answer(answer)} |" for status, answer in call["responses"].items())


def _parameters(parameters: list[dict[str, Any]]) -> Iterator[str]:
    if not parameters:
        return
    yield "\n| parameter | in | type | meaning |\n|---|---|---|---|"
    for each in parameters:
        required = " (required)" if each.get("required") else ""
        meaning = _cell(each.get("description", ""))
        yield f"| `{each['name']}` | {each['in']}{required} | {_type(each['schema'])} | {meaning} |"


def _answer(answer: dict[str, Any]) -> str:
    problems = [
        name
        for content in answer.get("content", {}).values()
        for name in content.get("examples", {})
        if (ROOT / f"docs/problems/{name}.md").exists()
    ]
    if problems:
        return ", ".join(f"[{name}](../problems/{name}.md)" for name in sorted(problems))
    kinds = [
        f"{_type(content.get('schema', {}))} (`{kind}`)"
        for kind, content in answer.get("content", {}).items()
    ]
    return ", ".join(kinds) or _cell(answer["description"])


def _types(schema: dict[str, Any]) -> Iterator[str]:
    for name, definition in sorted(schema["components"]["schemas"].items()):
        if "enum" in definition:
            yield f"\n## {name}\n\n{definition.get('description', '')}\n\nOne of {_type(definition)}."
        if "properties" not in definition:
            continue
        yield f"\n## {name}\n\n{definition.get('description', '')}\n"
        yield "| field | type | meaning |\n|---|---|---|"
        for field, facts in definition["properties"].items():
            required = ", required" if field in definition.get("required", ()) else ""
            yield f"| `{field}` | {_type(facts)}{required} | {_cell(facts.get('description', ''))} |"


def _type(schema: dict[str, Any]) -> str:
    """The type of a value in a few words, with links to the types of this page."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
