"""The public keys of the service, at a well-known address that needs no key."""

from fastapi import APIRouter
from pydantic import Field

from service.http.context import Services
from service.http.problems import answers
from service.http.wire import Answer, example

router = APIRouter(tags=["operations"])
_KEY = {
    "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    "kty": "OKP",
    "crv": "Ed25519",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    "alg": "EdDSA",
    "use": "sig",
}


class PublicKey(Answer, json_schema_extra=example(_KEY)):
    """A public key as a JSON Web Key (RFC 8037)."""

    kid: str = Field(description="its thumbprint (RFC 7638); signatures name it")
    kty: str
    crv: str
    x: str = Field(description="the 32 bytes of the key in base64url")
    alg: str
    use: str


class PublicKeys(Answer, json_schema_extra=example({"keys": [_KEY]})):
    """A JSON Web Key Set (RFC 7517)."""

    keys: list[PublicKey]


@router.get("/.well-known/cairn-keys.json", responses=answers(anonymous=True))
def get_public_keys(context: Services) -> PublicKeys:
    """Get the public keys that verify receipts: first the one that signs now, then those before it."""
    return PublicKeys.model_validate(context.signing_keys.to_json())
