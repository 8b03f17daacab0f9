"""Addresses of services as people type them."""

from urllib.parse import urlsplit

_LOCAL = ("localhost", "127.", "[::1]")


def full_address(address: str) -> str:
    """Complete an address as a person types it: `127.0.0.1:8000` becomes `http://127.0.0.1:8000`."""
    address = address.strip()
    if "://" not in address:
        address = ("http://" if address.startswith(_LOCAL) else "https://") + address
    return address.rstrip("/").removesuffix("/v1")


def is_here(address: str) -> bool:
    """Return True for an address on this machine."""
    host = urlsplit(address).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def is_open(address: str) -> bool:
    """Return True for an address to which everything is sent unencrypted."""
    return urlsplit(address).scheme == "http" and not is_here(address)
