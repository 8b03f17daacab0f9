"""A real identity provider in a process of its own, whose private key the tests have to forge tokens with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

ROOT = Path(__file__).parent.parent.parent
NODE = ROOT / ".venv" / "bin" / "node"
AUDIENCE = "urn:cairn:api"
_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass
class IdentityProvider:
    """A running provider."""

    issuer: str
    key: RSAKey
    folder: Path
    process: subprocess.Popen[str]
    #: Seconds since 1970 by the clock that made-up tokens follow.
    now: Callable[[], float] = time.time

    def person(self, name: str, *groups: str) -> None:
        """Let a person be in these groups."""
        self._change(lambda people: people | {name: {"groups": list(groups)}})

    def forget(self, name: str) -> None:
        """Know a person no longer."""
        self._change(lambda people: {each: facts for each, facts in people.items() if each != name})

    def _change(self, change: Any) -> None:
        path = self.folder / "people.json"
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    def token(self, header: Mapping[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """A token signed as the provider signs, with claims of the test's choice; None leaves one out."""
        now = int(self.now())
        made = {"iss": self.issuer, "sub": "odo", "aud": AUDIENCE, "iat": now, "exp": now + 300}
        made |= {"preferred_username": "odo", "groups": ["researchers"], **claims}
        signed = {name: value for name, value in made.items() if value is not None}
        head = {"alg": "RS256", "kid": self.key.kid, **(header or {})}
        return jwt.encode(head, signed, key or self.key, algorithms=[head["alg"]])

    def file(self, folder: Path, **changes: Any) -> Path:
        """The operator's file that describes it."""
        described = {
            "name": "uni",
            "title": "University of Elsewhere",
            "issuer": self.issuer,
            "client_id": "cairn",
            "client_secret_file": str(self._secret()),
            "unknown": "create",
            "audience": AUDIENCE,
            "command_client_id": "cairn-command",
            **changes,
        }
        groups = described.pop("groups", {"curator": ["data-office"], "analyst": ["researchers"]})
        lines = [f"{name} = {json.dumps(value)}" for name, value in described.items()]
        lines += ["[provider.groups]", *(f"{role} = {json.dumps(names)}" for role, names in groups.items())]
        path = folder / "providers.toml"
        path.write_text("[[provider]]\n" + "\n".join(lines) + "\n")
        return path

    def _secret(self) -> Path:
        path = self.folder / "client-secret"
        path.write_text("a secret of the tests\n")
        return path


@contextmanager
def identity_provider(folder: Path, callbacks: list[str]) -> Iterator[IdentityProvider]:
    """Start a provider, whose console clients may come back to `callbacks`."""
    key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"}, private=True)
    (folder / "people.json").write_text("{}")
    settings = {
        "people": str(folder / "people.json"),
        "jwks": {"keys": [key.as_dict(private=True)]},
        "clients": [
            {
                "client_id": "cairn",
                "client_secret": "a secret of the tests",
                "redirect_uris": callbacks,
                "post_logout_redirect_uris": [f"{each.partition('/sign-in/')[0]}/" for each in callbacks],
            },
            {
                "client_id": "cairn-command",
                "application_type": "native",
                "token_endpoint_auth_method": "none",
                "grant_types": [_DEVICE, "refresh_token"],
                "response_types": [],
                "redirect_uris": [],
            },
        ],
    }
    log = (folder / "identity-provider.log").open("w")
    process = subprocess.Popen(
        [NODE, ROOT / "tests" / "support" / "identity_provider.mjs"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,  # the command of the Python package starts node as a process of its own
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(settings))
        process.stdin.close()
        issuer = process.stdout.readline().strip()
        assert issuer, (folder / "identity-provider.log").read_text()
        yield IdentityProvider(issuer, key, folder, process)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        if process.stdout:
            process.stdout.close()
        log.close()
