"""Receipts and their digests."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(receipt: Mapping[str, Any]) -> str:
    """SHA-256 of the receipt without its digest: keys sorted, no spaces, ASCII."""
    rest = {name: value for name, value in receipt.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def is_whole(receipt: Mapping[str, Any]) -> bool:
    """Return True if the receipt matches its digest."""
    return receipt.get("digest") == digest_of(receipt)
