"""Receipts: check their digests and signatures, and write what they say for other people."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from cairn_client.errors import InvalidReceipt, MissingLibrary
from cairn_client.notebook import facts_html

_UNHASHED = ("digest", "signature")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
@page {{ size: A4; margin: 18mm; }}
body {{ font: 10.5pt/1.4 system-ui, sans-serif; max-width: 45rem; margin: 1rem auto; color: #111; }}
h1 {{ font-size: 15pt; }}
dt {{ font-weight: 600; margin-top: .5rem; }}
dd {{ margin: 0; }}
code {{ font-size: 8.5pt; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<h1>{title}</h1>
<dl>
{answers}
</dl>
</body>
</html>
"""


class Receipt(dict[str, Any]):
    """A receipt as the service sent it, which prints as what it says, not as its JSON."""

    def __repr__(self) -> str:
        return f"<Receipt of job {self.get('job')} on {self.get('dataset')}, {_guarantee(self)}>"

    def _repr_html_(self) -> str:
        """The receipt in a notebook."""
        answers = [(each["question"], each["answer"]) for each in self.get("explanation") or ()]
        facts = [
            ("Guarantee", _guarantee(self)),
            *answers,
            ("How to cite", self.get("citation")),
            ("Digest", self.get("digest")),
        ]
        return facts_html(f"Receipt of job {self.get('job')} on {self.get('dataset')}", facts)


def _guarantee(receipt: Mapping[str, Any]) -> str:
    privacy = receipt.get("privacy", {})
    return f"epsilon {privacy.get('epsilon')}, delta {privacy.get('delta')}"


def digest_of(receipt: Mapping[str, Any]) -> str:
    """SHA-256 of the receipt without its digest and its signature: keys sorted, no spaces, ASCII."""
    rest = {name: value for name, value in receipt.items() if name not in _UNHASHED}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def is_whole(receipt: Mapping[str, Any]) -> bool:
    """Return True if the receipt matches its digest; anybody can make a digest, so `verify` asks for more."""
    return receipt.get("digest") == digest_of(receipt)


def verify(receipt: Mapping[str, Any], keys: Mapping[str, Any]) -> str:
    """Return the id of the key that signed the receipt; raises InvalidReceipt if none of `keys` did.

    `keys` are the public keys of the service, from `client.public_keys()` or a copy of them; no connection is
    needed. The package `cryptography` is: install it with the extra `verify`.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise MissingLibrary(
            "verifying a signature needs cryptography: install it with `pip install cryptography`"
        ) from error
    if not is_whole(receipt):
        raise InvalidReceipt("the receipt was changed: its digest does not match; fetch it again")
    signature = receipt.get("signature")
    if not signature:
        raise InvalidReceipt(
            f"the receipt is not signed (format {receipt.get('format')}): its digest proves nothing by itself"
        )
    if signature.get("algorithm") != "Ed25519" or not all(signature.get(name) for name in ("key", "value")):
        raise InvalidReceipt(
            "the signature is incomplete or not of the kind Ed25519: fetch the receipt again"
        )
    known = {key.get("kid"): key for key in keys["keys"]}
    key = known.get(signature["key"])
    if key is None:
        raise InvalidReceipt("the receipt was signed with a key that is not among the service's public keys")
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(f"{key['x']}="))
    try:
        public.verify(base64.b64decode(signature["value"]), f"cairn receipt\n{receipt['digest']}".encode())
    except (InvalidSignature, ValueError):
        raise InvalidReceipt("the signature is wrong: the service did not sign this receipt") from None
    return str(signature["key"])


def report(receipt: Mapping[str, Any]) -> str:
    """A page in HTML that a data protection officer can print: questions about the release, answered."""
    asked = receipt.get("explanation")
    if not asked:
        raise InvalidReceipt("this receipt has no report: it is of a rehearsal, or of an earlier version")
    rows = [(each["question"], _with_code(each["answer"])) for each in asked]
    rows.append(("How should the release be cited?", escape(receipt["citation"])))
    rows.append(("Job, digest and key of the receipt", _codes(receipt)))
    answers = "\n".join(f"<dt>{escape(question)}</dt><dd>{answer}</dd>" for question, answer in rows)
    title = f"Report on a differentially private release from {receipt['dataset']}"
    return _PAGE.format(title=escape(title), answers=answers)


def _with_code(text: str) -> str:
    """Commands stand between backticks."""
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(text))


def _codes(receipt: Mapping[str, Any]) -> str:
    named = (receipt["job"], receipt["digest"], receipt["signature"]["key"])
    return "<br>".join(f"<code>{escape(each)}</code>" for each in named)


def registry_entry(receipt: Mapping[str, Any]) -> str:
    """The release as an entry of the public registry of differential privacy deployments, in YAML.

    Fields that begin with `FILL IN` are for you to write.
    """
    entry = receipt.get("registry")
    if not entry or "deployment" not in entry:
        raise InvalidReceipt("this receipt has no entry: it is of a rehearsal, or of an earlier version")
    return "".join(f"{line}\n" for line in _yaml(entry))


def _yaml(value: Any) -> Iterator[str]:
    """Write mappings and lists as indented blocks, and everything else as JSON, which is YAML too."""
    pairs = value.items() if isinstance(value, Mapping) else (("-", item) for item in value)
    for name, each in pairs:
        lead = name if name == "-" else f"{name}:"
        if isinstance(each, Mapping | list):
            yield lead
            yield from (f"  {line}" for line in _yaml(each))
        else:
            text = json.dumps(each, ensure_ascii=False)
            if isinstance(each, float) and "." not in text:  # many readers take 1e-06 for a word
                text = text.replace("e", ".0e")
            yield f"{lead} {text}"
