"""The signing key: made once, kept outside the database, rotated without losing what was signed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from service.operations import signing
from service.operations.settings import Settings
from service.operations.signing import SigningKeyError
from tests.support.service import House

ADDRESS = "/.well-known/cairn-keys.json"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "deep" / "signing-key.pem"
    signing.make(made)
    return made


def test_a_signature_holds_for_its_text_and_purpose_alone(path: Path) -> None:
    keys = signing.load(path)
    signature = keys.sign("receipt", "text")
    assert keys.verifies("receipt", "text", signature)
    assert not keys.verifies("receipt", "another text", signature)
    assert not keys.verifies("checkpoint", "text", signature)


@pytest.mark.parametrize("change", [{"value": "AAAA"}, {"value": "%"}, {"value": None}, {"key": "other"}])
def test_a_malformed_signature_verifies_nothing(path: Path, change: dict[str, object]) -> None:
    keys = signing.load(path)
    assert not keys.verifies("receipt", "text", {**keys.sign("receipt", "text"), **change})


def test_the_key_of_another_service_verifies_nothing(path: Path, tmp_path: Path) -> None:
    signing.make(tmp_path / "other.pem")
    signature = signing.load(tmp_path / "other.pem").sign("receipt", "text")
    assert not signing.load(path).verifies("receipt", "text", signature)


def test_what_was_signed_before_two_rotations_still_verifies(path: Path) -> None:
    first = signing.load(path)
    signature = first.sign("receipt", "text")
    second = signing.rotate(path)
    third = signing.rotate(path)
    assert signing.load(path).verifies("receipt", "text", signature)
    known = [key["kid"] for key in signing.load(path).to_json()["keys"]]
    assert known == [third.current, second.current, first.current]


def test_an_earlier_key_no_longer_signs_after_a_rotation(path: Path) -> None:
    earlier = path.read_bytes()
    signing.rotate(path)
    assert earlier not in path.read_bytes()
    assert path.read_bytes().count(b"PRIVATE KEY") == 2  # the begin and the end of one


def test_only_its_owner_may_read_the_file(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o400
    signing.rotate(path)
    assert path.stat().st_mode & 0o777 == 0o400
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_processes_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/cairn.sqlite3")
    with ThreadPoolExecutor(8) as pool:
        opened = pool.map(lambda _: signing.open_keys(settings).current, range(16))
    assert len(set(opened)) == 1
    assert (tmp_path / "signing-key.pem").exists()


def test_production_on_postgresql_makes_no_key_by_itself(tmp_path: Path) -> None:
    """Machines that share the database would each make another."""
    settings = Settings(
        mode="production",
        database_url="postgresql+psycopg://cairn:a-long-random-password@db/cairn",
        signing_key_file=tmp_path / "key.pem",
    )
    with pytest.raises(SigningKeyError, match="copy it from another machine"):
        signing.open_keys(settings)
    signing.make(tmp_path / "key.pem")
    signing.open_keys(settings)


@pytest.mark.parametrize("kind", ["empty", "public", "other"])
def test_a_file_that_holds_no_signing_key_is_refused(path: Path, tmp_path: Path, kind: str) -> None:
    pem = serialization.Encoding.PEM
    content = {
        "empty": b"",
        "public": signing.load(path)
        .public_keys[0]
        .public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
        "other": generate_private_key(SECP256R1()).private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    }[kind]
    (tmp_path / "bad.pem").write_bytes(content)
    with pytest.raises(SigningKeyError):
        signing.load(tmp_path / "bad.pem")


def test_public_keys_are_published_without_their_private_parts(house: House) -> None:
    (key,) = house.client.request("GET", ADDRESS).json()["keys"]
    keys = signing.load(house.settings.signing_key_path())
    assert key["kid"] == keys.current
    assert set(key) == {"kid", "kty", "crv", "x", "alg", "use"}


def test_id_of_a_key_is_its_thumbprint() -> None:
    """The example of RFC 8037, appendix A."""
    from service.http.public_keys import _KEY

    raw = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(raw))
    assert signing.key_id(public) == _KEY["kid"]
    assert signing._jwk(public)["x"] == _KEY["x"]


def command(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {f"CAIRN_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "service.cli", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_makes_a_key_and_then_rotates_it(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    for number in (1, 2):
        done = command("new-signing-key", signing_key_file=str(file))
        keys = signing.load(file)
        assert f"Key {keys.current} is in {file}" in done.stdout
        assert len(keys.public_keys) == number


@pytest.mark.parametrize("words", [("serve", "--workers", "0"), ("worker",)])
def test_nothing_starts_without_a_key_that_may_not_be_made(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = command(
        *words,
        mode="production",
        database_url="postgresql+psycopg://cairn:a-long-random-password@127.0.0.1:1/cairn",
        signing_key_file=str(tmp_path / "key.pem"),
    )
    assert done.returncode == 1
    assert "cairn-server new-signing-key" in done.stderr
    assert not (tmp_path / "key.pem").exists()
