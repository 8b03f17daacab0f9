"""The sample configurations of reverse proxies are valid, and do what docs/operations.md asks of a proxy.

crossplane knows nginx's directives, their places and arguments; a Caddyfile is read by a small parser here.
Where nginx or Caddy is installed, the program itself checks its file too.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import crossplane
import pytest

from service.operations.settings import GIB, Settings

DEPLOY = Path(__file__).parent.parent.parent / "deploy"


# --- nginx --------------------------------------------------------------------------------------------------


@pytest.fixture
def nginx(tmp_path: Path) -> Path:
    """The whole configuration of a server that has this one site, with a certificate."""
    key, certificate = tmp_path / "privkey.pem", tmp_path / "fullchain.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=cairn.example.org"
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    site = (DEPLOY / "nginx.conf").read_text().replace("/etc/ssl/cairn", str(tmp_path))
    whole = tmp_path / "nginx.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "\n".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
    logs = f"error_log {tmp_path}/error.log;\npid {tmp_path}/pid;"
    whole.write_text(f"{logs}\nevents {{}}\nhttp {{\naccess_log off;\n{folders}\n{site}\n}}\n")
    return whole


def blocks(nginx: Path) -> list[dict[str, Any]]:
    parsed = crossplane.parse(str(nginx), strict=True, catch_errors=True)
    assert parsed["errors"] == []
    found: list[dict[str, Any]] = parsed["config"][0]["parsed"]
    return found


def inside(block: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each for each in block if each["directive"] == name]


def location(nginx: Path) -> list[dict[str, Any]]:
    (http,) = inside(blocks(nginx), "http")
    _, server = inside(http["block"], "server")
    (place,) = inside(server["block"], "location")
    return [*server["block"], *place["block"]]


def test_the_nginx_sample_is_valid(nginx: Path) -> None:
    assert blocks(nginx)
    if program := shutil.which("nginx"):
        done = subprocess.run(
            [program, "-t", "-c", nginx, "-e", "stderr"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_a_wrong_line_in_the_nginx_sample_would_be_noticed(nginx: Path) -> None:
    nginx.write_text(nginx.read_text().replace("proxy_request_buffering off", "proxy_request_buffering"))
    parsed = crossplane.parse(str(nginx), strict=True, catch_errors=True)
    assert parsed["errors"]


def test_the_nginx_sample_forwards_uploads_as_they_come_and_says_who_asks(nginx: Path) -> None:
    said = {each["directive"]: each["args"] for each in location(nginx)}
    headers = {each["args"][0]: each["args"][1] for each in inside(location(nginx), "proxy_set_header")}
    assert said["proxy_request_buffering"] == ["off"]
    assert int(said["client_max_body_size"][0].removesuffix("g")) * GIB == Settings().max_upload_bytes
    assert headers["X-Forwarded-For"] == "$remote_addr"
    assert headers["X-Forwarded-Proto"] == "$scheme"
    assert "limit_conn" in said


# --- Caddy --------------------------------------------------------------------------------------------------


def caddyfile(text: str) -> dict[str, Any]:
    """Directives with their arguments, nested as the braces are; fails where those do not match."""
    stack: list[dict[str, Any]] = [{}]
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words == ["}"]:
            stack.pop()
            assert stack, "a brace too many"
        elif words[-1] == "{":
            inner: dict[str, Any] = {}
            stack[-1][" ".join(words[:-1])] = inner
            stack.append(inner)
        else:
            assert not {"{", "}"} & set(words), f"a brace in the middle of a line: {line}"
            stack[-1][words[0]] = words[1:]
    assert len(stack) == 1, "a brace is missing"
    return stack[0]


def test_the_caddy_sample_is_valid() -> None:
    file = DEPLOY / "Caddyfile"
    sample = caddyfile(file.read_text())
    assert sample == {
        "cairn.example.org": {
            "request_body": {"max_size": ["16GiB"]},
            "reverse_proxy 127.0.0.1:8000": {
                "transport http": {"read_timeout": ["10m"], "write_timeout": ["10m"]}
            },
        }
    }
    assert Settings().max_upload_bytes == 16 * GIB
    if program := shutil.which("caddy"):
        command = [program, "validate", "--adapter", "caddyfile", "--config", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
