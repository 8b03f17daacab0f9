"""The console at `/`: a page without a build step that uses the public API as any client does.

Every file under `static/` is read once and served under `/console/`, with a policy that lets the page load
nothing from anywhere else, run no inline script or style, and be framed by nobody.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Response

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
# Browsers revalidate a cached file each time, so that an upgrade never mixes versions.
_CACHING = "no-cache"

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class _File:
    content: bytes
    zipped: bytes
    kind: str
    tag: str


@cache
def _static() -> dict[str, _File]:
    """Files that may be served, by path; any other path does not exist, whatever dots it contains."""
    return dict(_read(files("service.console") / "static", ""))


def _read(folder: Traversable, prefix: str) -> list[tuple[str, _File]]:
    found = []
    for each in folder.iterdir():
        ending = each.name.rpartition(".")[2]
        if each.is_dir():
            found += _read(each, f"{prefix}{each.name}/")
        elif ending in _KINDS:
            content = each.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found.append(
                (prefix + each.name, _File(content, gzip.compress(content, mtime=0), _KINDS[ending], tag))
            )
    return found


_Short = Annotated[str, Header(max_length=500)]


@router.get("/")
def page(if_none_match: _Short = "", accept_encoding: _Short = "") -> Response:
    """The console's only page."""
    return _serve("index.html", if_none_match, accept_encoding)


@router.get("/console/{path:path}")
def asset(path: str, if_none_match: _Short = "", accept_encoding: _Short = "") -> Response:
    """A script, the style sheet or a picture of the console."""
    return _serve(path, if_none_match, accept_encoding)


def _serve(path: str, known: str, encodings: str) -> Response:
    file = _static().get(path)
    if file is None:
        raise HTTPException(404)
    headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": _CACHING,
        "ETag": f"W/{file.tag}",  # weak: the same file, zipped or not
        "Vary": "Accept-Encoding",
    }
    if file.tag in known:
        return Response(status_code=304, headers=headers)
    if "gzip" in encodings:
        headers["Content-Encoding"] = "gzip"
        return Response(file.zipped, media_type=file.kind, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)
