"""The guards around an application; which names are ours: test_host_names.py."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from plimsoll.web.guards import HostGuard, HostNames, HostRefusal, TokenGuard
from plimsoll.web.responses import PageResponse, build_text_response
from tests.web.exchanges import exchange

pytestmark = pytest.mark.asyncio

TOKEN = "s3cret"


def refuse(refusal: HostRefusal) -> PageResponse:
    return build_text_response(refusal.message, refusal.status)


GUARDED = TokenGuard(build_text_response("inside"), token=TOKEN, public_paths=("/healthz",))
NAMED = HostGuard(build_text_response("inside"), names=HostNames(), refuse=refuse)


def basic(password: str) -> str:
    return f"Basic {b64encode(f'user:{password}'.encode()).decode()}"


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic(TOKEN)])
async def test_a_request_with_the_token_gets_in(authorization: str):
    assert (await exchange(GUARDED, authorization=authorization)).body == b"inside\n"


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer other", TOKEN, basic("other"), "Basic !!"])
async def test_any_other_is_asked_for_it(authorization: str):
    found = await exchange(GUARDED, authorization=authorization)
    assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer")
    assert TOKEN.encode() not in found.body


async def test_public_paths_need_no_token():
    assert (await exchange(GUARDED, "/healthz")).status == 200
    assert (await exchange(GUARDED, "/healthz/x")).status == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:1"}, 200),
        ({"host": "localhost", "origin": "https://localhost:8"}, 200),
        ({}, 400),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost", "origin": "https://evil.example"}, 403),
    ],
)
async def test_a_request_must_name_this_server(headers: dict[str, Any], status: int):
    assert (await exchange(NAMED, **headers)).status == status
