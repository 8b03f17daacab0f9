"""Documents that never change while the process runs: made once, compressed, sent with an ETag."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from fastapi import Depends, Header, Response

_Short = Annotated[str, Header(max_length=500)]


@dataclass(frozen=True)
class Known:
    """What a caller has of a document already, and whether it may be compressed."""

    tags: str
    encodings: str


async def _known(if_none_match: _Short = "", accept_encoding: _Short = "") -> Known:
    return Known(if_none_match, accept_encoding)


KnownToCaller = Annotated[Known, Depends(_known)]


@dataclass(frozen=True)
class Document:
    """The bytes of a document, plain and compressed."""

    content: bytes
    zipped: bytes
    media_type: str
    tag: str

    @classmethod
    def of(cls, content: bytes, media_type: str) -> Self:
        """Compress a document and compute its tag, once."""
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return cls(content, gzip.compress(content, mtime=0), media_type, tag)

    def response(self, known: Known, headers: Mapping[str, str] | None = None) -> Response:
        """Return the document, or 304 if the caller has it. Browsers ask again before each use."""
        sent = {
            **(headers or {}),
            "Cache-Control": "no-cache",
            "ETag": f"W/{self.tag}",  # weak: the same document, compressed or not
            "Vary": "Accept-Encoding",
        }
        if self.tag in known.tags:
            return Response(status_code=304, headers=sent)
        if "gzip" in known.encodings:
            sent["Content-Encoding"] = "gzip"
            return Response(self.zipped, media_type=self.media_type, headers=sent)
        return Response(self.content, media_type=self.media_type, headers=sent)
