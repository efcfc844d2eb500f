"""A simulated OCM in virtual time, with a client that reads and writes JSON."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.local.ocm.documents import BASE
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import Request, RequestFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock

URL = "http://ocm.test"
STANDARD: dict[str, Any] = {
    "id": "kafka-standard",
    "instance_type": "r5.xlarge",
    "autoscaling": {"min_replicas": 3, "max_replicas": 18},
    "labels": {"bf2.org/kafkaInstanceProfileType": "standard"},
    "taints": [{"key": "bf2.org/kafkaInstanceProfileType", "value": "standard", "effect": "NoExecute"}],
}


class Answer(NamedTuple):
    status: int
    document: Any


class OcmWorld:
    def __init__(self, clock: Clock, **options: Any) -> None:
        self.clock = clock
        self.ocm = SimulatedOcm(clock=clock, entropy=SeededEntropy("ocm"), **options)
        self._client = AsgiClient(self.ocm.application)

    async def call(self, method: Any, path: str, body: Any = None, *, token: str = "") -> Answer:
        """Status 0: no answer."""
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = await self._client.send(Request(method=method, url=f"{URL}{path}", body=content, headers=headers))
        if isinstance(answer, RequestFailed):
            return Answer(0, answer.problem)
        return Answer(answer.status, json.loads(answer.body) if answer.body else None)

    async def create(self, name: str = "mk-1", **changes: Any) -> str:
        answer = await self.call("POST", f"{BASE}/clusters", build_cluster(name, **changes))
        assert answer.status == 201, answer
        cluster_id: str = answer.document["id"]
        return cluster_id

    async def create_ready(self, name: str = "mk-1") -> str:
        cluster_id = await self.create(name)
        await self.clock.sleep(661)
        assert await self.get_state(cluster_id) == "ready"
        return cluster_id

    async def get_state(self, cluster_id: str) -> str:
        """`gone` if there is no such cluster."""
        answer = await self.call("GET", f"{BASE}/clusters/{cluster_id}")
        return "gone" if answer.status == 404 else str(answer.document["status"]["state"])


def build_cluster(name: str = "mk-1", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "Cluster",
        "name": name,
        "cloud_provider": {"kind": "CloudProvider", "id": "aws"},
        "region": {"kind": "CloudRegion", "id": "us-east-1"},
        "multi_az": True,
        "nodes": {
            "compute_machine_type": {"kind": "MachineType", "id": "m5.2xlarge"},
            "autoscale_compute": {"kind": "MachinePoolAutoscaling", "min_replicas": 3, "max_replicas": 18},
        },
    } | changes


def play(story: Callable[[OcmWorld], Awaitable[None]], **options: Any) -> None:
    """Runs the service and a story in virtual time."""

    async def run(clock: Clock) -> None:
        world = OcmWorld(clock, **options)
        running = asyncio.create_task(world.ocm.run())
        try:
            await story(world)
        finally:
            running.cancel()
            await asyncio.wait((running,))
        if not running.cancelled():
            running.result()

    run_virtual(run)
