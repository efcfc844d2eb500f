"""Every response has the same headers, and none has a body for HEAD."""

from __future__ import annotations

import pytest

from plimsoll.web.responses import PageResponse, build_json_response, build_text_response
from tests.web.exchanges import exchange

pytestmark = pytest.mark.asyncio


async def test_text_is_a_line_that_is_neither_cached_nor_sniffed():
    found = await exchange(build_text_response("no such page", 404))
    assert (found.status, found.body) == (404, b"no such page\n")
    assert found.headers == {
        "content-type": "text/plain; charset=utf-8",
        "content-length": "13",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }


async def test_json_is_a_value_and_may_have_headers_of_its_own():
    found = await exchange(build_json_response({"error": "x"}, 405, headers={"allow": "POST"}))
    assert (found.status, found.body, found.headers["allow"]) == (405, b'{"error":"x"}', "POST")
    assert found.headers["content-type"] == "application/json"


async def test_head_gets_the_headers_of_get_and_no_body():
    found = await exchange(PageResponse(b"12345"), method="HEAD")
    assert (found.body, found.headers["content-length"]) == (b"", "5")


async def test_text_that_is_no_text_is_written_all_the_same():
    assert (await exchange(build_text_response("lone \ud800"))).body == b"lone ?\n"
