"""The pages of a controller process; debugging pages behind their guard: tests/nodes/reporting/http."""

from __future__ import annotations

import pytest

from plimsoll.operator.debug_access import DebugGuard
from plimsoll.operator.pages import OperatorPages
from plimsoll.web.responses import PageResponse, build_text_response
from tests.web.exchanges import exchange

pytestmark = pytest.mark.asyncio


async def show_debug(_request: object) -> PageResponse:
    return build_text_response("names of everything")


PAGES = OperatorPages(
    metrics=[lambda: b"a 1\n", lambda: b"b 2\n"],
    health={"/healthz": lambda: build_text_response("ok")},
    debug={"/plan": show_debug},
    guard=DebugGuard(),
)


async def test_metrics_of_several_sources_are_one_page():
    found = await exchange(PAGES, "/metrics")
    assert found.body == b"a 1\nb 2\n"
    assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/healthz", 200, b"ok\n"),
        ("HEAD", "/healthz", 200, b""),
        ("POST", "/healthz", 405, b"only GET\n"),
        ("POST", "/nothing", 405, b"only GET\n"),
        ("GET", "/healthz/", 404, b"no such page\n"),
        ("GET", "/", 404, b"no such page\n"),
    ],
)
async def test_other_paths_and_methods(method: str, path: str, status: int, body: bytes):
    found = await exchange(PAGES, path, method=method)
    assert (found.status, found.body) == (status, body)


async def test_debugging_pages_are_guarded():
    assert (await exchange(PAGES, "/plan", host="localhost:1")).status == 200
    assert (await exchange(PAGES, "/plan", host="rebound.example")).status == 403
