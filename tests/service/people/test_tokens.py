"""Access tokens of a real provider at the API: what opens it, and every forgery that does not."""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from joserfc.jwk import RSAKey

from service.operations.openid import published
from service.operations.openid.providers import ProvidersError, load
from tests.support.identity_provider import ROOT, IdentityProvider, identity_provider
from tests.support.service import House, Person


@pytest.fixture(scope="module")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityProvider]:
    folder = tmp_path_factory.mktemp("provider")
    with identity_provider(folder, ["http://localhost/sign-in/uni/callback"]) as started:
        yield started


class Institution(House):
    """A service whose people sign in by the provider."""

    def __init__(
        self,
        url: str,
        folder: Path,
        idp: IdentityProvider,
        keys: dict[str, str] | None = None,
        **changes: Any,
    ):
        super().__init__(url, folder, keys=keys, providers_file=idp.file(folder, **changes))
        self.idp = idp
        idp.now = lambda: self.clock.now().timestamp()

    def whoami(self, token: str) -> Response:
        return Person(self.client, "", token).get("/v1/whoami")

    def told(self, action: str) -> list[str]:
        events = self.carla.get("/v1/audit").json()["items"]
        return [each["words"] for each in events if each["action"] == action]


@pytest.fixture
def institution(sqlite_url: str, tmp_path: Path, idp: IdentityProvider) -> Iterator[Institution]:
    with closing(Institution(sqlite_url, tmp_path, idp)) as made:
        yield made


def test_token_of_the_provider_opens_the_api(institution: Institution, idp: IdentityProvider) -> None:
    found = institution.whoami(idp.token(sub="123", preferred_username="Zoë M.", groups=["researchers"]))
    assert (found.status_code, found.json()) == (200, {"name": "zo-m", "role": "analyst"})
    curator = institution.whoami(idp.token(sub="9", preferred_username="cora", groups=["data-office"]))
    assert curator.json() == {"name": "cora", "role": "curator"}
    assert len(institution.told("sign-in")) == 2  # not one for each request
    institution.whoami(idp.token(sub="123"))
    assert len(institution.told("sign-in")) == 2


def forgeries(idp: IdentityProvider) -> dict[str, str]:
    strange = RSAKey.generate_key(2048)
    now = int(idp.now())
    head, claims, _ = idp.token().split(".")
    return {
        "another issuer": idp.token(iss="https://login.example.org"),
        "no issuer": idp.token(iss=None),
        "another audience": idp.token(aud="urn:other:api"),
        "an id token": idp.token(aud="cairn", nonce="n"),
        "no audience": idp.token(aud=None),
        "no end": idp.token(exp=None),
        "expired": idp.token(iat=now - 300, exp=now - 61),
        "from the future": idp.token(iat=now + 61, exp=now + 900),
        "not yet valid": idp.token(nbf=now + 61),
        "too old": idp.token(iat=now - 3601, exp=now + 900),
        "no subject": idp.token(sub=None),
        "algorithm none": f"{_encoded({'alg': 'none', 'kid': idp.key.kid})}.{claims}.",
        "HS256 with the public key": _hs256(idp, claims),
        "RS384, which is not ours": idp.token({"alg": "RS384"}, _of_any_algorithm(idp.key)),
        "a strange key of the same id": idp.token(key=strange),
        "an unknown key": idp.token({"kid": "second"}, strange),
        "no key id": idp.token({"kid": ""}),
        "a changed claim": ".".join([head, _changed(claims), idp.token().split(".")[2]]),
        "brackets": f"{head}.{base64.urlsafe_b64encode(b'[' * 9000).decode()}.x",
    }


def _of_any_algorithm(key: RSAKey) -> RSAKey:
    described = {name: value for name, value in key.as_dict(private=True).items() if name != "alg"}
    return RSAKey.import_key(described)


def _hs256(idp: IdentityProvider, claims: str) -> str:
    """The mistake of libraries that take the algorithm from the token: our public key as its secret."""
    signed = f"{_encoded({'alg': 'HS256', 'kid': idp.key.kid})}.{claims}"
    value = hmac.digest(idp.key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(value).decode().rstrip('=')}"


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def _changed(claims: str) -> str:
    found = json.loads(base64.urlsafe_b64decode(claims + "=="))
    return _encoded(found | {"sub": "eve"})


def test_forged_tokens_are_refused(institution: Institution, idp: IdentityProvider) -> None:
    answers = {kind: institution.whoami(token) for kind, token in forgeries(idp).items()}
    assert {kind: each.status_code for kind, each in answers.items()} == dict.fromkeys(answers, 401)
    assert {each.json()["type"] for each in answers.values()} == {"/problems/unauthorized"}
    assert institution.told("sign-in") == []


def test_clocks_may_differ_by_a_minute(institution: Institution, idp: IdentityProvider) -> None:
    now = int(idp.now())
    ahead, behind = (
        idp.token(iat=now + 59, nbf=now + 59, exp=now + 900),
        idp.token(iat=now - 300, exp=now - 58),
    )
    assert [institution.whoami(token).status_code for token in (ahead, behind)] == [200, 200]


def test_unknown_keys_lead_to_one_fetch_and_no_address_of_a_token_is_asked(
    institution: Institution, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fetch = published.fetch

    def counted(provider: Any, address: str, **sent: Any) -> Any:
        asked.append(address)
        return fetch(provider, address, **sent)

    monkeypatch.setattr(published, "fetch", counted)
    strange = RSAKey.generate_key(2048)
    for number in range(20):
        addresses = dict.fromkeys(("jku", "x5u"), "http://127.0.0.1:1/keys")
        token = idp.token({"kid": f"key-{number}", **addresses}, strange)
        assert institution.whoami(token).status_code == 401
    assert asked == [f"{idp.issuer}/.well-known/openid-configuration", f"{idp.issuer}/jwks"]
    assert institution.whoami(idp.token()).status_code == 200


def test_group_decides_and_a_person_without_one_is_out_at_once(
    institution: Institution, idp: IdentityProvider
) -> None:
    assert institution.whoami(idp.token(sub="7", preferred_username="gus")).status_code == 200
    for groups in ([], ["visitors"], ["data-office"], None):
        refused = institution.whoami(idp.token(sub="7", groups=groups))
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/sign-in-refused")
    assert len(institution.told("refuse-sign-in")) == 1  # a client that repeats itself fills no log
    assert institution.whoami(idp.token(sub="7")).status_code == 200


def test_name_of_somebody_else_opens_no_account(institution: Institution, idp: IdentityProvider) -> None:
    refused = institution.whoami(idp.token(sub="666", preferred_username="carla", groups=["data-office"]))
    assert (refused.status_code, "taken" in refused.json()["detail"]) == (403, True)


def test_curator_links_an_account_to_an_identity(institution: Institution, idp: IdentityProvider) -> None:
    body = {"provider": "uni", "subject": "ada-7"}
    path = "/v1/principals/ada/identities"
    assert institution.carla.post(path, body).status_code == 204
    assert institution.carla.post(path, body).status_code == 409
    assert institution.whoami(idp.token(sub="ada-7")).json()["name"] == "ada"
    assert institution.ada.get("/v1/whoami").status_code == 200  # and the key still works


def test_disabled_account_is_closed_to_tokens(institution: Institution, idp: IdentityProvider) -> None:
    assert institution.whoami(idp.token(sub="8", preferred_username="hal")).status_code == 200
    assert institution.carla.delete("/v1/principals/hal").status_code == 204
    assert institution.whoami(idp.token(sub="8")).status_code == 403
    assert institution.carla.post("/v1/principals/hal/enable").status_code == 204
    assert institution.whoami(idp.token(sub="8")).status_code == 200


def test_unknown_people_wait_or_are_refused_as_the_operator_says(
    sqlite_url: str, tmp_path: Path, idp: IdentityProvider
) -> None:
    with closing(Institution(sqlite_url, tmp_path, idp, unknown="wait")) as house:
        token = idp.token(sub="5", preferred_username="wim")
        assert "waits" in house.whoami(token).json()["detail"]
        assert house.carla.post("/v1/principals/wim/enable").status_code == 204
        assert house.whoami(token).status_code == 200
        refusing = Institution(sqlite_url, tmp_path, idp, unknown="refuse", keys=_keys(house))
        assert "no account" in refusing.whoami(idp.token(sub="6", preferred_username="xu")).json()["detail"]
        assert refusing.whoami(token).status_code == 200
        refusing.close()


def _keys(house: House) -> dict[str, str]:
    return {each.name: each.key for each in (house.carla, house.ada, house.ben)}


def test_second_factor_and_the_end_of_keys(sqlite_url: str, tmp_path: Path, idp: IdentityProvider) -> None:
    with closing(Institution(sqlite_url, tmp_path, idp, required_amr=["mfa"], keys_days=30)) as house:
        assert "factor" in house.whoami(idp.token(amr=["pwd"])).json()["detail"]
        body = {"provider": "uni", "subject": "odo"}
        assert house.carla.post("/v1/principals/ada/identities", body).status_code == 204
        assert house.whoami(idp.token(amr=["pwd", "mfa"])).status_code == 200
        house.clock.move(30 * 86400 - 1)
        assert house.ada.get("/v1/whoami").status_code == 200
        house.clock.move(1)
        assert house.ada.get("/v1/whoami").status_code == 401
        assert house.ben.get("/v1/whoami").status_code == 200  # who has no identity
        assert house.whoami(idp.token(amr=["mfa"])).status_code == 200


def test_provider_that_is_down_keeps_nobody_out_who_is_in(
    institution: Institution, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = idp.token()
    assert institution.whoami(token).status_code == 200

    def down(provider: Any, address: str, **_: Any) -> Any:
        raise published.unavailable(provider)

    monkeypatch.setattr(published, "fetch", down)
    assert institution.whoami(token).status_code == 200
    assert institution.ada.get("/v1/whoami").status_code == 200


def test_sign_in_says_that_the_provider_is_down(
    sqlite_url: str, tmp_path: Path, idp: IdentityProvider
) -> None:
    with closing(Institution(sqlite_url, tmp_path, idp, issuer="http://127.0.0.1:1")) as house:
        answer = house.client.request("GET", "/sign-in/uni")
        assert (answer.status_code, "does not answer" in answer.text) == (503, True)
        assert house.whoami(idp.token(iss="http://127.0.0.1:1")).status_code == 503
        assert house.ada.get("/v1/whoami").status_code == 200


def test_jobs_of_a_person_who_is_removed_run_as_they_were_allowed(
    institution: Institution, idp: IdentityProvider
) -> None:
    """One is claimed, and one queued: both are charged once, and their results are kept."""
    assert institution.whoami(idp.token()).status_code == 200
    institution.ready(planned_release=False)
    institution.grant("odo")
    odo = Person(institution.client, "odo", idp.token())
    jobs = [institution.submit("0.1", who=odo, delta=delta).json()["id"] for delta in ("0", "0.0000001")]
    claim = institution.worker.claim()
    assert claim is not None
    institution.clock.move(1)
    removed = Person(institution.client, "odo", idp.token(groups=["former-staff"]))
    assert institution.submit("0.1", who=removed).status_code == 403
    assert institution.submit("0.1", who=odo).status_code == 401  # with the token of before
    assert institution.worker.carry_out(claim)
    assert institution.work()
    assert not institution.work()
    for job in jobs:
        assert institution.carla.get(f"/v1/jobs/{job}/result").status_code == 200
    kinds = [each["kind"] for each in institution.carla.get("/v1/datasets/flowers/ledger").json()["items"]]
    assert (kinds.count("reserve"), kinds.count("charge"), kinds.count("void")) == (2, 2, 0)
    assert institution.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]
    institution.clock.move(60)
    again = Person(institution.client, "odo", idp.token())
    assert [again.get(f"/v1/jobs/{job}/result").status_code for job in jobs] == [200, 200]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"issuer": "http://login.example.org"}, "https"),
        ({"audience": "cairn"}, "must differ"),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_file_of_providers_that_would_be_unsafe_is_refused(
    tmp_path: Path, idp: IdentityProvider, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ProvidersError, match=words):
        load(idp.file(tmp_path, **change))


def test_recipes_of_the_documents_are_files_of_providers(tmp_path: Path) -> None:
    recipes = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "sign-in.md").read_text(), re.DOTALL)
    assert len(recipes) == 4
    (tmp_path / "providers.toml").write_text("\n".join(recipes))
    assert [each.name for each in load(tmp_path / "providers.toml")] == ["uni", "keycloak", "entra", "google"]
