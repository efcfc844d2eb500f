"""The simulated PD and Prometheus as ASGI: who is let in, and that what comes through is what was asked."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.tidb.server import SimulatedServers, guard_server
from plimsoll.web.bodies import MAX_BODY_BYTES
from tests.local.tidb.builders import LocalTidbCluster, base_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

TOKEN = "knock-knock"
BEARER = {"authorization": f"Bearer {TOKEN}"}
STORES = "/prod/db/pd/api/v1/stores"


@pytest.fixture
def world() -> Iterator[LocalTidbCluster]:
    with LocalTidbCluster() as world:
        world.make(base_cluster())
        world.after(60)
        yield world


def _ask(
    world: LocalTidbCluster,
    path: str,
    *,
    headers: dict[str, str],
    method: str = "GET",
    body: bytes = b"",
    query: str = "",
) -> tuple[int, bytes, dict[str, str]]:
    """What a server over a socket would get and give."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    named = {"host": "127.0.0.1:12379", **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    world.run.run_until(guard_server(SimulatedServers(world.tidb), token=TOKEN)(scope, receive, send))
    reported = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], sent[1]["body"], reported


@pytest.mark.parametrize(
    "headers",
    [BEARER, {"authorization": f"Basic {b64encode(f'me:{TOKEN}'.encode()).decode()}"}],
    ids=["bearer", "basic"],
)
def test_a_request_with_the_token_is_accepted(world: LocalTidbCluster, headers: dict[str, str]) -> None:
    status, body, _ = _ask(world, STORES, headers=headers)

    assert status == 200
    assert json.loads(body)["count"] == 3


@pytest.mark.parametrize(
    "given",
    ["", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", TOKEN, "Basic !!", f"Basic {b64encode(b'a:b').decode()}"],
    ids=["none", "empty", "wrong", "longer", "bare", "unreadable", "another"],
)
def test_a_request_without_the_token_is_refused(world: LocalTidbCluster, given: str) -> None:
    status, body, headers = _ask(world, STORES, headers={"authorization": given} if given else {})

    assert status == 401
    assert TOKEN not in body.decode()
    assert headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}], ids=["host", "origin"]
)
def test_pages_of_others_are_refused_even_with_the_token(world: LocalTidbCluster, headers: dict[str, str]) -> None:
    assert _ask(world, STORES, headers={**BEARER, **headers})[0] == 403


def test_health_is_public(world: LocalTidbCluster) -> None:
    assert _ask(world, "/healthz", headers={})[0] == 200


def test_metrics_are_text_and_queries_are_json(world: LocalTidbCluster) -> None:
    _, _, metrics = _ask(world, "/metrics", headers=BEARER)
    status, body, query = _ask(world, "/api/v1/query", headers=BEARER, query="query=tikv_server_cpu_cores_quota")

    assert metrics["content-type"].startswith("text/plain; version=0.0.4")
    assert (status, query["content-type"]) == (200, "application/json")
    assert len(json.loads(body)["data"]["result"]) == 3


def test_a_body_that_is_too_large_is_not_read_on(world: LocalTidbCluster) -> None:
    body = b"x" * (MAX_BODY_BYTES + 1)

    assert _ask(world, "/api/v1/query", headers=BEARER, method="POST", body=body)[0] == 413


def test_what_is_nowhere_is_not_found(world: LocalTidbCluster) -> None:
    assert _ask(world, "/", headers=BEARER)[0] == 404
    assert _ask(world, "/prod/other/pd/api/v1/stores", headers=BEARER)[0] == 503
