"""The API page: calls with their fields, for people."""

from __future__ import annotations

import re

from tests.support.service import House


def page(house: House, path: str) -> str:
    answer = house.client.request("GET", path)
    assert answer.status_code == 200
    return answer.text


def test_api_page_lists_the_fields_of_bodies_and_responses(shared_house: House) -> None:
    text = page(shared_house, "/docs")
    submit = text[text.index("<code>/v1/jobs</code>") :]
    assert "<td><code>dataset</code></td><td>string</td><td>required</td>" in submit
    assert "<td><code>k</code></td><td>integer or object or null</td><td>optional</td>" in submit
    assert "<td><code>rehearsal</code></td><td>boolean</td><td>optional</td>" in submit
    assert re.search(
        "<code>delta</code></td><td>string or integer or number or null</td><td>optional", submit
    )
    assert "&quot;means&quot; or &quot;medians&quot;" in submit


def test_pages_show_no_raw_backticks(shared_house: House) -> None:
    for path in ("/docs", "/problems/bad-rows", "/problems/unauthorized"):
        assert "`" not in re.sub("<pre.*?</pre>", "", page(shared_house, path), flags=re.S)
    assert "<code>Authorization: Bearer &lt;key&gt;</code>" in page(shared_house, "/problems/unauthorized")
