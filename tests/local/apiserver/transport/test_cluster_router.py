"""Clusters below one address: each has its own objects, and what is not there answers as kubectl expects it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.apiserver.in_process_server import InProcessServer, open_in_memory
from plimsoll.local.apiserver.transport.cluster_router import ClusterRouter
from plimsoll.local.apiserver.transport.in_process import InProcessTransport
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock

NAMESPACES = "/api/v1/namespaces"


class Clusters:
    def __init__(self, clock: Clock) -> None:
        self.servers = {name: open_in_memory(clock=clock, entropy=SeededEntropy(name)) for name in ("main", "c1", "c2")}
        self.router = ClusterRouter(self.servers["main"].application)
        for name in ("c1", "c2"):
            self.router.add(name, self.servers[name].application)
        self.address = InProcessTransport(self.router)

    def get(self, name: str) -> InProcessServer:
        return self.servers[name]

    async def call(self, method: str, path: str, body: Any = None, *, of: str = "main") -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.servers[of].token}", "content-type": "application/json"}
        answer = await self.address.request(method, path, headers=headers, body=content)
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)


def play(story: Callable[[Clusters], Awaitable[None]]) -> None:
    async def run(clock: Clock) -> None:
        clusters = Clusters(clock)
        await story(clusters)
        for server in clusters.servers.values():
            await server.aclose()

    run_virtual(run)


def test_each_cluster_has_its_own_objects_and_its_own_token():
    async def story(clusters: Clusters) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        assert (await clusters.call("POST", f"/clusters/c1{NAMESPACES}", body, of="c1"))[0] == 201
        assert (await clusters.call("GET", f"/clusters/c1{NAMESPACES}/shop", of="c1"))[0] == 200
        assert (await clusters.call("GET", f"/clusters/c2{NAMESPACES}/shop", of="c2"))[0] == 404
        assert (await clusters.call("GET", f"{NAMESPACES}/shop"))[0] == 404
        assert (await clusters.call("GET", f"/clusters/c2{NAMESPACES}", of="c1"))[0] == 401

    play(story)


@pytest.mark.parametrize("path", ["/clusters/c3/api/v1/pods", "/clusters/", "/clusters/c3", "/clusters//api"])
def test_a_cluster_that_is_not_there_is_answered_with_a_status(path: str):
    async def story(clusters: Clusters) -> None:
        status, document = await clusters.call("GET", path)
        assert (status, document["kind"], document["reason"]) == (404, "Status", "NotFound")

    play(story)


def test_a_removed_cluster_is_no_longer_reached_and_its_watches_end_when_it_is_closed():
    async def story(clusters: Clusters) -> None:
        headers = {"authorization": f"Bearer {clusters.get('c1').token}"}
        watch = await clusters.address.request("GET", f"/clusters/c1{NAMESPACES}?watch=1", headers=headers)
        assert not isinstance(watch.body, bytes)
        first_event, *_ = (await anext(watch.body)).splitlines()
        assert json.loads(first_event)["type"] == "ADDED"
        clusters.router.remove("c1")
        await clusters.get("c1").aclose()
        assert [chunk async for chunk in watch.body] == []
        assert (await clusters.call("GET", f"/clusters/c1{NAMESPACES}", of="c1"))[0] == 404
        assert (await clusters.call("GET", f"/clusters/c2{NAMESPACES}", of="c2"))[0] == 200

    play(story)
