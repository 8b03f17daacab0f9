"""Pages without scripts: the API page, the explanations of problems, the front page."""

import json
import re
from html import escape
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.responses import HTMLResponse

from service.errors import PROBLEMS, NotFound, ServiceError
from service.http.documents import Document, KnownToCaller
from service.http.problems import answers

router = APIRouter(tags=["operations"])
_HTML: dict[str, Any] = {
    "content": {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>"}}
}
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; color: #18201c; background: #fff; }
a { color: #1c6b57; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886; border-radius: .4rem; }
details { border: 1px solid #8886; border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
.verb { display: inline-block; min-width: 5rem; font-weight: 700; }
@media (prefers-color-scheme: dark) {
  :root { color: #e9eeeb; background: #111513; }
  a { color: #8edcc5; }
}
@media (max-width: 40rem) {
  body { overflow-wrap: anywhere; }
  th { display: none; }
  td { display: block; padding-right: 0; }
  tr { display: block; padding: .4rem 0; }
}
"""


_MAKING = Lock()


def _description(app: FastAPI) -> tuple[Document, Document]:
    """Return the description of the API and its page. Both are made at the first request for either."""
    with _MAKING:
        if not hasattr(app.state, "description"):
            openapi = app.openapi()
            app.state.description = (
                Document.of(json.dumps(openapi, ensure_ascii=False).encode(), "application/json"),
                Document.of(_api_page(openapi).encode(), "text/html; charset=utf-8"),
            )
    made: tuple[Document, Document] = app.state.description
    return made


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request, known: KnownToCaller) -> Response:
    """The description of this API in OpenAPI."""
    return _description(request.app)[0].response(known)


@router.get("/docs", response_class=HTMLResponse, responses={200: _HTML})
def api_page(request: Request, known: KnownToCaller) -> Response:
    """List every call of this API, with examples."""
    return _description(request.app)[1].response(known)


@router.get("/docs/style.css", include_in_schema=False)
def api_page_style() -> Response:
    """The style sheet of these pages."""
    return Response(_STYLE, media_type="text/css", headers={"cache-control": "max-age=3600"})


@router.get(
    "/problems/{slug}",
    response_class=HTMLResponse,
    responses={**answers("not-found", anonymous=True), 200: _HTML},
)
def problem_page(
    slug: Annotated[str, Path(max_length=64, description="last part of a problem's type")],
) -> str:
    """Explain a problem, and what to do about it."""
    if slug not in PROBLEMS:
        raise NotFound("there is no such problem")
    return _problem_page(PROBLEMS[slug])


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def front_page() -> str:
    """A short front page, where no console is installed."""
    return page(
        "Cairn",
        "<h1>Cairn</h1><p>Differentially private clustering for a trusted data curator.</p>"
        '<p><a href="/docs">The API, call by call</a> · <a href="/openapi.json">OpenAPI</a></p>',
    )


def page(title: str, content: str) -> str:
    """Return a page without scripts; the content is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="/docs/style.css"></head>'
        f"<body><main>{content}</main></body></html>"
    )


def _problem_page(problem: type[ServiceError]) -> str:
    return page(
        problem.title,
        f"<h1>{escape(problem.title)}</h1><p><code>{problem.slug}</code>, status {problem.status}</p>"
        f"<p>{_words(problem.__doc__ or '')}</p><p>{_words(problem.next_step)}</p>"
        '<p><a href="/docs">All calls and problems</a></p>',
    )


def _api_page(openapi: dict[str, Any]) -> str:
    parts = [f"<h1>{escape(openapi['info']['title'])} {escape(openapi['info']['version'])}</h1>"]
    parts += [f"<p>{_words(each)}</p>" for each in openapi["info"]["description"].split("\n\n")]
    parts.append('<p>The same for programs: <a href="/openapi.json">openapi.json</a></p>')
    groups: dict[str, list[str]] = {}
    for path, verbs in openapi["paths"].items():
        for verb, call in verbs.items():
            groups.setdefault(call["tags"][0], []).append(_call(openapi, path, verb, call))
    for group, calls in groups.items():
        parts.append(f"<h2>{escape(group.capitalize())}</h2>{''.join(calls)}")
    rows = "".join(
        f'<tr><td><a href="/problems/{slug}">{slug}</a></td><td>{each.status}</td>'
        f"<td>{escape(each.title)}</td></tr>"
        for slug, each in PROBLEMS.items()
    )
    parts.append(f"<h2>Problems</h2><table>{rows}</table>")
    return page("Cairn API", "".join(parts))


def _words(text: str) -> str:
    """Return text as HTML, with text in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split())))


def _call(openapi: dict[str, Any], path: str, verb: str, call: dict[str, Any]) -> str:
    body = [f"<p>{_words(call.get('description', ''))}</p>"]
    if call.get("parameters"):
        rows = "".join(
            f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}</td>"
            f"<td>{_words(each.get('description', ''))}</td></tr>"
            for each in call["parameters"]
        )
        body.append(f"<table>{rows}</table>")
    for kind, media in call.get("requestBody", {}).get("content", {}).items():
        body.append(_example(f"Send {kind}", openapi, media))
        body.append(_fields(openapi, media))
    for status, answer in sorted(call["responses"].items()):
        if status.startswith("2"):
            body += [
                _example(f"Response {status}, {k}", openapi, m) + _fields(openapi, m)
                for k, m in answer.get("content", {}).items()
            ]
    return (
        f'<details><summary><span class="verb">{verb.upper()}</span><code>{escape(path)}</code> '
        f"{escape(call.get('summary', ''))}</summary>{''.join(body)}</details>"
    )


def _fields(openapi: dict[str, Any], media: dict[str, Any]) -> str:
    """Return a table of the fields of a JSON body, or nothing."""
    schema = _resolved(openapi, media.get("schema", {}))
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_type(openapi, each))}</td>"
        f"<td>{'required' if name in schema.get('required', ()) else 'optional'}</td>"
        f"<td>{_words(each.get('description', ''))}</td></tr>"
        for name, each in schema.get("properties", {}).items()
    )
    head = "<tr><th>Field</th><th>Type</th><th>Presence</th><th>Meaning</th></tr>"
    return f"<table>{head}{rows}</table>" if rows else ""


def _type(openapi: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the type of a field in a few words."""
    if choices := schema.get("anyOf", schema.get("oneOf")):
        kinds = [_type(openapi, each) for each in choices]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema or "const" in schema:
        return " or ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")]))
    resolved = _resolved(openapi, schema)
    if resolved.get("type") == "array":
        return f"list of {_type(openapi, resolved.get('items', {}))}"
    return str(resolved.get("type", "any"))


def _resolved(openapi: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    found = openapi["components"]["schemas"][reference.rsplit("/", 1)[1]] if reference else schema
    return dict(found)


def _example(label: str, openapi: dict[str, Any], media: dict[str, Any]) -> str:
    named = media.get("examples")
    if named:
        return "".join(_one_example(f"{label}, {e['summary']}", e["value"]) for e in named.values())
    return _one_example(label, example_of(openapi, media))


def _one_example(label: str, value: Any) -> str:
    if value is None:
        return f"<p>{escape(label)}</p>"
    text = value if isinstance(value, str) else json.dumps(value, indent=2)
    return f'<p>{escape(label)}:</p><pre tabindex="0">{escape(text)}</pre>'


def example_of(openapi: dict[str, Any], media: dict[str, Any]) -> Any:
    """Return the example of a body or a response: its own, or that of its schema."""
    if "example" in media:
        return media["example"]
    if "examples" in media:
        return next(iter(media["examples"].values()))["value"]
    schema = _resolved(openapi, media.get("schema", {}))
    examples = schema.get("examples") or [None]
    return examples[0]
