"""Where the key is kept: readable by its owner alone, used for its own address alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cairn_client import NotSignedIn
from cairn_client.login import Login, find_login, forget_login, login_file, store_login

HERE = Login("http://127.0.0.1:8000", "a-secret")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("CAIRN_URL", raising=False)
    monkeypatch.delenv("CAIRN_KEY", raising=False)
    return tmp_path


def test_the_file_and_its_directory_are_for_their_owner_alone() -> None:
    path = store_login(HERE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_was_stored_is_found() -> None:
    store_login(HERE)
    assert find_login() == HERE


def test_storing_again_replaces_and_leaves_nothing_else_behind() -> None:
    store_login(HERE)
    path = store_login(Login(HERE.address, "another"))
    assert find_login().key == "another"
    assert [each.name for each in path.parent.iterdir()] == ["login.json"]


def test_what_is_given_comes_before_the_environment_and_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    store_login(HERE)
    monkeypatch.setenv("CAIRN_URL", "http://env")
    monkeypatch.setenv("CAIRN_KEY", "env-key")
    assert find_login() == Login("http://env", "env-key")
    assert find_login("http://given", "given-key") == Login("http://given", "given-key")


def test_a_stored_key_is_not_sent_to_another_address() -> None:
    store_login(HERE)
    with pytest.raises(NotSignedIn, match="the stored key is for"):
        find_login("http://elsewhere.example")


def test_the_same_address_may_be_written_shorter() -> None:
    store_login(HERE)
    assert find_login("127.0.0.1:8000/").key == HERE.key


def test_a_file_that_others_can_read_is_not_used() -> None:
    store_login(HERE).chmod(0o644)
    with pytest.raises(NotSignedIn, match="chmod 600"):
        find_login()


def test_a_damaged_file_says_what_to_do() -> None:
    store_login(HERE).write_text("{")
    with pytest.raises(NotSignedIn, match="run `cairn login` again"):
        find_login()


def test_without_anything_the_way_to_sign_in_is_told() -> None:
    with pytest.raises(NotSignedIn, match="sign in with `cairn login`, or set CAIRN_URL and CAIRN_KEY"):
        find_login()


def test_forgetting_deletes_the_file() -> None:
    store_login(HERE)
    assert forget_login()
    assert not login_file().exists()
    assert not forget_login()


def test_the_key_is_not_in_the_representation() -> None:
    assert HERE.key not in repr(HERE)
