"""Informers at work, each in a process of its own, so that processor time and memory are its own.

    python -m benchmarks.informer_clients plimsoll-sync KUBECONFIG COUNT
    python -m benchmarks.informer_clients official-sync KUBECONFIG COUNT      so many pods, chosen by label
    python -m benchmarks.informer_clients plimsoll-watch KUBECONFIG COUNT     so many events, from history
    python -m benchmarks.informer_clients official-watch KUBECONFIG COUNT

One JSON object on standard output. Memory is what the peak grew by after everything was imported, connected and tried
with one object.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.real_pods import APPS
from plimsoll.kube.client import Client
from plimsoll.kube.configuration import find_access
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.informer import Informer
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.pods import Pod
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from plimsoll.kube.transport import Request, Response, Transport

_TICK_S: Final = 0.002
_PATIENCE_S: Final = 300.0
_OTHER_OBJECTS: Final = 500


class ResourceMeter:
    """From its making on: seconds of the wall and of the processor, and by how much the peak of memory grew."""

    def __init__(self) -> None:
        gc.collect()
        self._peak_kib = _peak_kib()
        self._cpu_s = time.process_time()
        self._wall_s = time.perf_counter()

    def read(self) -> dict[str, float]:
        return {
            "wall_s": time.perf_counter() - self._wall_s,
            "cpu_s": time.process_time() - self._cpu_s,
            "peak_mib": (_peak_kib() - self._peak_kib) / 1024,
        }


def _peak_kib() -> int:
    """Not `getrusage`: its figure starts at what the parent had when it started us."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


class LoopStalls:
    """How late a timer comes, at worst: what a lease renewal or a health check on the same loop would feel."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.longest_cpu_s = 0.0
        """Processor time of the loop's thread between two ticks, without that of other processes."""

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        due_s, cpu_s = loop.time() + _TICK_S, time.thread_time()
        while True:
            await asyncio.sleep(_TICK_S)
            now_s, now_cpu_s = loop.time(), time.thread_time()
            self.longest_s = max(self.longest_s, now_s - due_s)
            self.longest_cpu_s = max(self.longest_cpu_s, now_cpu_s - cpu_s)
            due_s, cpu_s = now_s + _TICK_S, now_cpu_s

    def read(self) -> dict[str, float]:
        return {"stall_ms": self.longest_s * 1e3, "stall_cpu_ms": self.longest_cpu_s * 1e3}


# ---- Plimsoll


@asynccontextmanager
async def _connected(
    kubeconfig: str, wrapped: Callable[[Transport], Transport] = lambda transport: transport
) -> AsyncIterator[Client]:
    clock = RealClock()
    access = find_access(kubeconfig=kubeconfig, environment=os.environ, clock=clock)
    async with HttpTransport(access, user_agent="plimsoll-bench") as transport:
        yield Client(wrapped(transport), clock=clock, entropy=SystemEntropy())


async def plimsoll_sync(kubeconfig: str, count: int) -> dict[str, float]:
    """Until the informer has synced all of the server's pods."""
    async with _connected(kubeconfig) as client:
        await anext(client.iterate_pages(Pod, Selection(page_size=1)))
        informer = Informer(client, Pod, clock=RealClock(), entropy=SystemEntropy())
        stalls, meter = LoopStalls(), ResourceMeter()
        watching = asyncio.create_task(stalls.watch())
        running = asyncio.create_task(informer.run())
        async with asyncio.timeout(_PATIENCE_S):
            await informer.wait_until_synced()
        found = meter.read()
        await asyncio.sleep(10 * _TICK_S)  # the stall that ends the sync counts too
        assert len(informer.cache) == count, len(informer.cache)
        await _ended(watching, running)
    return {**found, **stalls.read()}


async def plimsoll_watch(kubeconfig: str, count: int) -> dict[str, float]:
    """Until so many events were decoded, put into the cache and delivered to a handler."""
    seen, done = 0, asyncio.Event()

    def handle(_change: object) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            done.set()

    async with _connected(kubeconfig, lambda transport: RewoundTransport(transport, count)) as client:
        informer = Informer(client, Pod, clock=RealClock(), entropy=SystemEntropy())
        informer.add_handler(handle, name="bench")
        stalls, meter = LoopStalls(), ResourceMeter()
        watching = asyncio.create_task(stalls.watch())
        running = asyncio.create_task(informer.run())
        async with asyncio.timeout(_PATIENCE_S):
            await done.wait()
        found = meter.read()
        await _ended(watching, running)
    return {**found, **stalls.read()}


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


class RewoundTransport:
    """A transport that lists nothing, at the version before the last so many pods: all of them are news to a watch."""

    def __init__(self, transport: Transport, count: int) -> None:
        self._transport = transport
        self._count = count

    async def send(self, call: Request) -> Response:
        if call.is_stream:
            return await self._transport.send(call)
        reply = await self._transport.send(call._replace(query=[("limit", "1")]))
        newest = json.loads(reply.body)["metadata"]["resourceVersion"]
        listed = {"kind": "PodList", "metadata": {"resourceVersion": _before(newest, self._count)}, "items": []}
        return reply._replace(body=json.dumps(listed).encode())

    async def aclose(self) -> None:
        await self._transport.aclose()


def _before(newest: str, count: int) -> str:
    """A version with so many pods after it. After the pods the server wrote a few objects of its own."""
    return str(int(newest) - count - _OTHER_OBJECTS)


# ---- the official client


def official_sync(kubeconfig: str, count: int) -> dict[str, float]:
    """Its own informer, until the cache is filled."""
    from kubernetes import client, config  # noqa: PLC0415 - half a second and 60 MiB that the others must not pay
    from kubernetes.informer import SharedInformer  # noqa: PLC0415 - likewise

    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()
    api.list_pod_for_all_namespaces(limit=1)
    informer = SharedInformer(api.list_pod_for_all_namespaces, label_selector=_selector(api, count))
    meter = ResourceMeter()
    informer.start()
    while len(informer.cache.list_keys()) < count:
        time.sleep(0.05)
    return meter.read()


def _selector(api: Any, count: int) -> str:
    """As many applications as make up so many pods, whose numbers are dealt out to applications in turn."""
    total = 1 + (api.list_pod_for_all_namespaces(limit=1).metadata.remaining_item_count or 0)
    chosen, rest = divmod(count * APPS, total)
    assert not rest, f"{count} of {total} pods cannot be chosen by application"
    return f"app.kubernetes.io/name in ({','.join(f'app-{number}' for number in range(chosen))})"


def official_watch(kubeconfig: str, count: int) -> dict[str, float]:
    from kubernetes import client, config, watch  # noqa: PLC0415 - likewise

    config.load_kube_config(kubeconfig)
    api: Any = client.CoreV1Api()
    newest = api.list_pod_for_all_namespaces(limit=1).metadata.resource_version
    meter = ResourceMeter()
    events = watch.Watch().stream(api.list_pod_for_all_namespaces, resource_version=_before(newest, count))
    assert sum(1 for _ in itertools.islice(events, count)) == count
    return meter.read()


_MEASURES: Final[dict[str, Callable[[str, int], Any]]] = {
    "plimsoll-sync": lambda kubeconfig, count: asyncio.run(plimsoll_sync(kubeconfig, count)),
    "plimsoll-watch": lambda kubeconfig, count: asyncio.run(plimsoll_watch(kubeconfig, count)),
    "official-sync": official_sync,
    "official-watch": official_watch,
}


if __name__ == "__main__":
    print(json.dumps(_MEASURES[sys.argv[1]](sys.argv[2], int(sys.argv[3]))), flush=True)
    # The official informer's thread reads on; a plain exit would pull the interpreter from under it.
    os._exit(0)
