"""A whole embedded server with objects to scale, bind and evict: for the tests of subresources."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plimsoll.runtime.virtual_run import VirtualRun
from tests.conformance.exchanges import ClientRequests, Reply
from tests.conformance.servers import ADMIN_TOKEN, RECORDED_DAY, embedded_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.storage.drivers.interface import Driver

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


class ServerClient:
    """One client of one server; `send` is for one request, `send_all` for many at the same moment."""

    def __init__(self, run: VirtualRun, driver: Driver | None) -> None:
        self._run = run
        self._server = run.run_until(embedded_server(run.clock, driver=driver))
        self.store = self._server.store
        self._headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "User-Agent": "tests/1.0"}
        self._client = ClientRequests(run, self._server.transport, headers=self._headers)

    def send(self, method: str, path: str, body: Any = None, *, media: str = "application/json", **query: str) -> Reply:
        return self._client.send(method, path, body=body, headers={"Content-Type": media}, query=query)

    def made(self, path: str, body: Json) -> Json:
        reply = self.send("POST", path, body)
        assert reply.status == 201, reply.text
        found: Json = reply.body
        return found

    def get(self, path: str) -> Json:
        reply = self.send("GET", path)
        assert reply.status == 200, reply.text
        found: Json = reply.body
        return found

    def send_all(self, requests: list[tuple[str, Json]]) -> list[int]:
        """POST all of them at the same moment; the status codes of the answers."""
        headers = {**self._headers, "Content-Type": "application/json"}
        transport = self._server.transport

        async def answers() -> list[int]:
            posts = (
                transport.request("POST", path, headers=headers, body=json.dumps(body).encode())
                for path, body in requests
            )
            return [answer.status for answer in await asyncio.gather(*posts)]

        return self._run.run_until(answers())

    def set_status(self, path: str, status: Json) -> None:
        reply = self.send("PATCH", f"{path}/status", {"status": status}, media="application/merge-patch+json")
        assert reply.status == 200, reply.text

    def pod(self, name: str, *, ready: bool = True, phase: str = "Running", **spec: Any) -> Json:
        """A pod that works, by default."""
        self.made(PODS, pod(name, **spec))
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        self.set_status(f"{PODS}/{name}", {"phase": phase, "conditions": conditions})
        return self.get(f"{PODS}/{name}")

    def budget(self, name: str = "b", *, labels: Json | None = None, spec: Json | None = None, **status: Any) -> None:
        """A budget that its controller has looked at."""
        selector = {"matchLabels": {"app": "w"} if labels is None else labels}
        body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector, **(spec or {})}}
        self.made(BUDGETS, body)
        known = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0}
        self.set_status(f"{BUDGETS}/{name}", {**known, "expectedPods": 1, **status})

    def evict(self, name: str, **eviction: Any) -> Reply:
        return self.send("POST", f"{PODS}/{name}/eviction", {"metadata": {"name": name}, **eviction})


@contextmanager
def cluster(driver: Driver | None = None) -> Iterator[ServerClient]:
    with VirtualRun(start=RECORDED_DAY) as run:
        yield ServerClient(run, driver)


def pod(name: str, **spec: Any) -> Json:
    container = {"name": "c", "image": "nginx:1.27"}
    metadata = {"name": name, "labels": {"app": "w"}}
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": [container], **spec}}


def deployment(name: str = "d", *, replicas: int = 1) -> Json:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
