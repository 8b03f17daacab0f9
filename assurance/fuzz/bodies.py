"""Bodies of JSON made to do damage: wrong types, huge numbers, deep nesting, odd text, in every place."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

_DEEP: Any = 0
for _ in range(30):
    _DEEP = [_DEEP]

#: Values for any place of a body.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    2**31,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    10**30,
    10**400,
    0.1,
    -0.0,
    1e-320,
    1e308,
    -1e308,
    1.5,
    1e100,
    "",
    " ",
    "0",
    "1e309",
    "-1e-400",
    "1e999999999",
    "NaN",
    "Infinity",
    "0x10",
    "1_000",
    "٣",
    "1" * 64,
    "0." + "0" * 60 + "1",
    "x" * 5000,
    "../../etc/passwd",
    "a'; DROP TABLE jobs; --",
    "%s%n{0}{{7*7}}${jndi}",
    "\u202eevil\u202c",
    "\ufeff\u200b",
    "é" * 64,
    "😀" * 32,
    "\x7f",
    "line\nbreak",
    "constructor",
    "__proto__",
    "auto",
    "latest",
    [],
    {},
    [[]],
    [None],
    [True, 1],
    [0.0] * 1000,
    [1e308] * 3,
    ["a"] * 300,
    {"": ""},
    {"a": {"b": {"c": [1, {"d": None}]}}},
    {"box": {"low": [1e100], "high": [-1e100]}},
    {"epsilon": True, "delta": []},
    _DEEP,
)

#: Bodies that are no JSON, or not what JSON should be.
RAW: tuple[bytes, ...] = (
    b"",
    b"null",
    b"true",
    b"[]",
    b'"text"',
    b"{",
    b"}",
    b'{"k": NaN}',
    b'{"k": Infinity}',
    b'{"k": -Infinity}',
    b'{"k": 1e309}',
    b'{"k": 1e-999999}',
    b'{"k": ' + b"9" * 5000 + b"}",
    b'{"k": 0x10}',
    b'{"k": 01}',
    b'{"k": 1, "k": 2}',
    b'{"\\u0000": 1}',
    b'{"name": "a\\u0000b"}',
    b'{"name": "a\x00b"}',
    b'{"name": "\\ud800"}',
    b'{"name": "\xff\xfe"}',
    b"\x00" * 100,
    b"\xef\xbb\xbf{}",
    "{}".encode("utf-16"),
    "{}".encode("utf-32"),
    b"[" * 100_000,
    b"[" * 60 + b"]" * 60,
    b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(20_000)) + b"}",
    b'{"options": {"rounds": ' + b"1" * 4000 + b"}}",
    b"a=b&c=d",
    b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    b"--boundary\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--boundary--",
    b" " * (1 << 19),
    b"x" * (2 << 20),
)

KINDS = (
    "application/json",
    "application/json; charset=utf-16",
    "application/problem+json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=boundary",
    "",
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a body."""
    found = [path]
    if isinstance(value, dict):
        for name in value:
            found += places(value[name], (*path, name))
    elif isinstance(value, list):
        for number, each in enumerate(value[:5]):
            found += places(each, (*path, number))
    return found


def spoiled(good: Any, chance: random.Random) -> Any:
    """A good body with one to three values changed, left out or added."""
    body = copy.deepcopy(good)
    for _ in range(chance.randint(1, 3)):
        way = chance.choice(places(body))
        if not way:
            if isinstance(body, dict) and chance.random() < 0.8:
                name = chance.choice(("extra", "options", "delta", "", "sites", "id_column", "quote"))
                body[name] = pick(chance)
                continue
            return pick(chance)
        inside = body
        for step in way[:-1]:
            inside = inside[step]
        if chance.random() < 0.15:
            del inside[way[-1]]
        else:
            inside[way[-1]] = pick(chance)
    return body


def pick(chance: random.Random) -> Any:
    return copy.deepcopy(chance.choice(VALUES))


def encode(body: Any) -> bytes:
    """As JSON, with what the standard encoder would refuse."""
    return json.dumps(body).encode()
