"""The console at `/`: a page without a build step that uses the public API as any client does.

Every file under `static/` is read once and served under `/console/`, with a policy that lets the page load
nothing from anywhere else, run no inline script or style, and be framed by nobody.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, HTTPException, Response

from service.http.documents import Document, Known, KnownToCaller

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
router = APIRouter(include_in_schema=False)


def _read(folder: Traversable, prefix: str) -> list[tuple[str, Document]]:
    found = []
    for each in folder.iterdir():
        ending = each.name.rpartition(".")[2]
        if each.is_dir():
            found += _read(each, f"{prefix}{each.name}/")
        elif ending in _KINDS:
            found.append((prefix + each.name, Document.of(each.read_bytes(), _KINDS[ending])))
    return found


#: Files that may be served, by path; any other path does not exist, whatever dots it contains.
_STATIC = dict(_read(files("service.console") / "static", ""))


@router.get("/")
async def page(known: KnownToCaller) -> Response:
    """The console's only page."""
    return _serve("index.html", known)


@router.get("/console/{path:path}")
async def asset(path: str, known: KnownToCaller) -> Response:
    """A script, the style sheet or a picture of the console."""
    return _serve(path, known)


def _serve(path: str, known: Known) -> Response:
    document = _STATIC.get(path)
    if document is None:
        raise HTTPException(404)
    return document.response(known, {"Content-Security-Policy": POLICY})
