"""The console at 5,000 nodes and 50,000 pods against a tenth of it: the server's work.

Ratios: filling the map and encoding it grow with the cluster, one change does not. The longest stall is the longest
time in which filling the map lets nothing else run on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from plimsoll.console.cluster_map.cluster_map import ClusterMap
from plimsoll.kube.informer.events import Updated
from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Change

SMALL: Final = 500
LARGE: Final = 5_000
PODS_PER_NODE: Final = 10
CHANGES: Final = 200
ROUNDS: Final = 3
MOST_CHANGE_RATIO: Final = 2.0
MOST_STALL_RATIO: Final = 3.0
MOST_GROWTH: Final = 15.0


class CachedInformer:
    """An informer whose cache is filled by hand; `handler` is the one that was added."""

    def __init__(self) -> None:
        self.cache: WritableCache[Any] = WritableCache()
        self.handler: Callable[[Change[Any]], object]

    def add_handler(self, handler: Callable[[Change[Any]], object], *, name: str) -> None:
        assert name
        self.handler = handler


class MapUnderTest:
    """A map of so many nodes, with ten pods each."""

    def __init__(self, nodes: int) -> None:
        self.nodes, self.pods = CachedInformer(), CachedInformer()
        for number in range(nodes):
            self.nodes.cache.put(("", f"node-{number}"), build_node(number))
            for place in range(PODS_PER_NODE):
                pod = build_pod(number, place)
                self.pods.cache.put((pod.metadata.namespace, pod.metadata.name), pod)
        nodes_informer, pods_informer = cast("Informer[Node]", self.nodes), cast("Informer[Pod]", self.pods)
        self.map = ClusterMap(nodes_informer, pods_informer, clock=RealClock())

    def fill(self) -> tuple[float, float]:
        """The processor time of filling, and the longest stall of the loop meanwhile."""
        self.map.drop()
        return asyncio.run(_fill_beside_a_timer(self.map))

    def change(self) -> float:
        """The processor time of a change of one pod, from the handler to the encoded event."""
        began_s = time.process_time()
        for number in range(CHANGES):
            before = self.pods.cache.get("pod-0-0", "ns-0")
            after = build_pod(0, 0, cpu=f"{100 + number % 2}m")
            self.pods.cache.put(("ns-0", "pod-0-0"), after)
            self.pods.handler(Updated(old=before, new=after))
            assert self.map.take_changes() is not None
        return (time.process_time() - began_s) / CHANGES


async def _fill_beside_a_timer(cluster_map: ClusterMap) -> tuple[float, float]:
    stalls = [0.0]

    async def watch_loop() -> None:
        while True:
            before_s = time.perf_counter()
            await asyncio.sleep(0)
            stalls.append(time.perf_counter() - before_s)

    watching = asyncio.create_task(watch_loop())
    began_s = time.process_time()
    await cluster_map.fill()
    took_s = time.process_time() - began_s
    watching.cancel()
    return took_s, max(stalls)


def build_node(number: int) -> Node:
    labels = {"cloud.plimsoll.io/node-group": f"group-{number % 20}", "topology.kubernetes.io/zone": "abc"[number % 3]}
    status = {
        "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return msgspec.convert({"metadata": {"name": f"node-{number}", "labels": labels}, "status": status}, Node)


def build_pod(number: int, place: int, cpu: str = "900m") -> Pod:
    owner = {"kind": "ReplicaSet", "name": f"app-{(number * PODS_PER_NODE + place) % 400}", "controller": True}
    resources = {"requests": {"cpu": cpu, "memory": "2Gi"}}
    body = {
        "metadata": {"name": f"pod-{number}-{place}", "namespace": f"ns-{number % 60}", "ownerReferences": [owner]},
        "spec": {"nodeName": f"node-{number}", "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Running"},
    }
    return msgspec.convert(body, Pod)


def rows() -> Iterator[dict[str, Any]]:
    small, large = MapUnderTest(SMALL), MapUnderTest(LARGE)
    small_fill, large_fill = (min(under_test.fill() for _ in range(ROUNDS)) for under_test in (small, large))
    yield row("map of 5,000 nodes, 50,000 pods: fill, CPU", large_fill[0], "s")
    yield ratio("fill against a tenth of the cluster", large_fill[0] / small_fill[0], MOST_GROWTH)
    stalls = [min(under_test.fill()[1] for _ in range(ROUNDS)) for under_test in (small, large)]
    yield row("longest stall of the loop while it is filled", stalls[1] * 1e3, "ms")
    yield ratio("longest stall against a tenth of the cluster", stalls[1] / stalls[0], MOST_STALL_RATIO)
    began_s = time.process_time()
    snapshot = large.map.encode_snapshot()
    yield row("whole map: encoding, CPU", (time.process_time() - began_s) * 1e3, "ms")
    yield row("whole map: size", len(snapshot) / 1e6, "MB")
    changes = [min(under_test.change() for _ in range(ROUNDS)) for under_test in (small, large)]
    yield row("one change to the encoded event, CPU", changes[1] * 1e6, "us")
    yield ratio("one change against a tenth of the cluster", changes[1] / changes[0], MOST_CHANGE_RATIO)


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


def ratio(name: str, value: float, most: float) -> dict[str, Any]:
    found: dict[str, Any] = row(name, value, "x", target=f"<= {most:g}", met=value <= most)
    return found
