"""The service's Ed25519 keys: sign receipts and checkpoints, verify what was signed, publish the public keys.

One PEM file holds the private key that signs, followed by the public keys of those that signed before it. It
is kept outside the database, so that access to the database is not enough to sign.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from joserfc.jwk import OKPKey

from service.operations.settings import Settings

ALGORITHM = "Ed25519"
_BLOCK = re.compile(rb"-----BEGIN (PRIVATE|PUBLIC) KEY-----.+?-----END \1 KEY-----\n?", re.DOTALL)
_DIGEST_KEY = re.compile(rb"-----BEGIN DIGEST KEY-----\n(.+?)\n-----END DIGEST KEY-----")


class SigningKeyError(Exception):
    """The file of the signing key is missing or cannot be read; the message says what to do."""


class SigningKeys:
    """The key that signs now, the public keys by which anything signed is verified, and the key of digests.

    The key of digests never changes: it is the digest of the first private key.
    """

    def __init__(
        self,
        private: Ed25519PrivateKey,
        earlier: Iterable[Ed25519PublicKey] = (),
        digest_key: bytes | None = None,
    ):
        self._private = private
        first = hashlib.sha256(b"cairn digests" + private.private_bytes_raw())
        self._digest_key = digest_key or first.digest()
        self._known = {key_id(key): key for key in (private.public_key(), *earlier)}
        self.current = key_id(private.public_key())

    def knowing(self, others: Iterable[Ed25519PublicKey]) -> SigningKeys:
        """Return these keys with further public keys."""
        return SigningKeys(self._private, (*self.public_keys[1:], *others), self._digest_key)

    def followed_by(self, private: Ed25519PrivateKey) -> SigningKeys:
        """Return these keys with a new one that signs from now on."""
        return SigningKeys(private, self.public_keys, self._digest_key)

    def keyed_digest(self, text: str) -> str:
        """Return a digest that nobody can compute without the file of the keys (HMAC-SHA-256)."""
        return hmac.new(self._digest_key, text.encode(), hashlib.sha256).hexdigest()

    def sign(self, purpose: str, text: str) -> dict[str, str]:
        """Sign a text; no signature holds for another purpose than its own."""
        value = self._private.sign(_message(purpose, text))
        return {"algorithm": ALGORITHM, "key": self.current, "value": base64.b64encode(value).decode()}

    def verifies(self, purpose: str, text: str, signature: Mapping[str, Any]) -> bool:
        """Return True if a key of this service signed the text for the purpose."""
        key = self._known.get(str(signature.get("key")))
        if key is None or signature.get("algorithm") != ALGORITHM:
            return False
        try:
            key.verify(base64.b64decode(str(signature.get("value"))), _message(purpose, text))
        except (InvalidSignature, ValueError):
            return False
        return True

    def to_json(self) -> dict[str, Any]:
        """Return the public keys as a JSON Web Key Set (RFC 7517, RFC 8037), the one that signs first."""
        facts = {"alg": "EdDSA", "use": "sig"}
        return {"keys": [{**_jwk(key).as_dict(kid=kid), **facts} for kid, key in self._known.items()]}

    def to_pem(self) -> bytes:
        """Return the content of the keys' file."""
        private = self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        earlier = [key for kid, key in self._known.items() if kid != self.current]
        digest_key = base64.b64encode(self._digest_key)
        block = b"-----BEGIN DIGEST KEY-----\n" + digest_key + b"\n-----END DIGEST KEY-----\n"
        return (
            private
            + block
            + b"".join(
                key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
                for key in earlier
            )
        )

    @property
    def public_keys(self) -> tuple[Ed25519PublicKey, ...]:
        """Every public key, the one that signs first."""
        return tuple(self._known.values())


def key_id(key: Ed25519PublicKey) -> str:
    """Return the thumbprint of a public key (RFC 7638)."""
    return _jwk(key).thumbprint()


@lru_cache(maxsize=8)
def open_keys(settings: Settings) -> SigningKeys:
    """Read the keys, once in a process; the first start makes them.

    Several machines share a PostgreSQL and must share the keys too, so there production mode makes none.
    """
    path = settings.signing_key_path()
    if not path.exists():
        if settings.mode == "production" and not settings.uses_sqlite:
            raise SigningKeyError(
                f"{path} is missing: copy it from another machine of this deployment, or from its back-up; "
                "a new deployment makes it once with `cairn-server new-signing-key`"
            )
        make(path)
    return load(path)


def load(path: Path) -> SigningKeys:
    """Read the keys from their file."""
    return _parse(path.read_bytes(), str(path))


def _parse(pem: bytes, source: str) -> SigningKeys:
    blocks = [match[0] for match in _BLOCK.finditer(pem)]
    try:
        private = serialization.load_pem_private_key(blocks[0], None)
        earlier = [serialization.load_pem_public_key(block) for block in blocks[1:]]
    except (IndexError, TypeError, ValueError) as error:
        raise SigningKeyError(f"{source} holds no signing key; restore it from its back-up") from error
    public = [key for key in earlier if isinstance(key, Ed25519PublicKey)]
    if not isinstance(private, Ed25519PrivateKey) or len(public) != len(earlier):
        raise SigningKeyError(f"{source} holds a key of another kind than Ed25519")
    digest_key = _DIGEST_KEY.search(pem)
    return SigningKeys(private, public, base64.b64decode(digest_key[1]) if digest_key else None)


def make(path: Path) -> None:
    """Make the first key, unless another process was quicker."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = _write_beside(path, SigningKeys(Ed25519PrivateKey.generate()))
    try:
        os.link(new, path)  # all of the file at once, and never in the place of another
    except FileExistsError:
        pass
    finally:
        new.unlink()


def rotate(path: Path) -> SigningKeys:
    """Make a new key that signs from now on; what was signed so far still verifies."""
    keys = load(path).followed_by(Ed25519PrivateKey.generate())
    _write_beside(path, keys).replace(path)
    return keys


def restore(path: Path, saved: bytes) -> bool:
    """Put a saved key back; False if the file knows it already, as the key that signs or an earlier one.

    What the present key signed can still be verified.
    """
    present, kept = load(path), _parse(saved, "the back-up")
    if kept.current in {key_id(key) for key in present.public_keys}:
        return False
    _write_beside(path, kept.knowing(present.public_keys)).replace(path)
    return True


def _write_beside(path: Path, keys: SigningKeys) -> Path:
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
        file.write(keys.to_pem())
        file.flush()
        os.fsync(file.fileno())
    return new


def _message(purpose: str, text: str) -> bytes:
    return f"cairn {purpose}\n{text}".encode()


def _jwk(key: Ed25519PublicKey) -> OKPKey:
    return OKPKey.import_key(
        key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
