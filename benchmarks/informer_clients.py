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
import json
import os
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.real_pods import APPS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from plimsoll.kube.client import Client
    from plimsoll.kube.exchange import Call, Reply, Transport

_TICK_S: Final = 0.002
_PATIENCE_S: Final = 300.0


class Meter:
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


class Stalls:
    """How late a timer comes, at worst: what a lease renewal or a health check on the same loop would feel."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.longest_cpu_s = 0.0
        """Of the loop's thread between two ticks: without what the machine gave to others."""

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
async def _connected(kubeconfig: str, wrapped: Callable[[Transport], Transport] = lambda one: one) -> AsyncIterator[Client]:
    from plimsoll.kube.client import Client  # noqa: PLC0415 - what the official client's process must not pay
    from plimsoll.kube.configuration import find_access  # noqa: PLC0415
    from plimsoll.kube.http import HttpTransport  # noqa: PLC0415
    from plimsoll.runtime.chance import SystemEntropy  # noqa: PLC0415
    from plimsoll.runtime.clocks import RealClock  # noqa: PLC0415

    clock = RealClock()
    access = find_access(kubeconfig=kubeconfig, environment=os.environ, clock=clock)
    async with HttpTransport(access, user_agent="plimsoll-bench") as transport:
        yield Client(wrapped(transport), clock=clock, entropy=SystemEntropy())


async def plimsoll_sync(kubeconfig: str, count: int) -> dict[str, float]:
    """Until the informer has synced all of the server's pods."""
    from plimsoll.kube.informer import Informer  # noqa: PLC0415
    from plimsoll.objects.pods import Pod  # noqa: PLC0415

    async with _connected(kubeconfig) as client:
        await anext(aiter(client.pages(Pod, _one_pod())))
        informer = Informer(client, Pod, **_ports())
        stalls, meter = Stalls(), Meter()
        watching = asyncio.create_task(stalls.watch())
        running = asyncio.create_task(informer.run())
        async with asyncio.timeout(_PATIENCE_S):
            await informer.synced()
        found = meter.read()
        await asyncio.sleep(10 * _TICK_S)  # the stall that ends the sync counts too
        assert len(informer.cache) == count, len(informer.cache)
        await _ended(watching, running)
    return {**found, **stalls.read()}


async def plimsoll_watch(kubeconfig: str, count: int) -> dict[str, float]:
    """Until so many events were decoded, put into the cache and told to a handler."""
    from plimsoll.kube.informer import Informer  # noqa: PLC0415
    from plimsoll.objects.pods import Pod  # noqa: PLC0415

    seen, done = 0, asyncio.Event()

    def handle(_change: object) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            done.set()

    async with _connected(kubeconfig, lambda transport: Rewound(transport, count)) as client:
        informer = Informer(client, Pod, **_ports())
        running = asyncio.create_task(informer.run())
        await informer.synced()
        informer.add_handler(handle, name="bench")
        stalls, meter = Stalls(), Meter()
        watching = asyncio.create_task(stalls.watch())
        async with asyncio.timeout(_PATIENCE_S):
            await done.wait()
        found = meter.read()
        await _ended(watching, running)
    return {**found, **stalls.read()}


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


class Rewound:
    """A transport that opens every watch some versions before the one asked for, so that history comes first."""

    def __init__(self, transport: Transport, versions: int) -> None:
        self._transport = transport
        self._versions = versions

    async def send(self, call: Call) -> Reply:
        if call.is_stream:
            call = call._replace(query=[(key, self._earlier(key, value)) for key, value in call.query])
        return await self._transport.send(call)

    def _earlier(self, key: str, value: str) -> str:
        return str(int(value) - self._versions) if key == "resourceVersion" and int(value) else value

    async def aclose(self) -> None:
        await self._transport.aclose()


# ---- the official client


def official_sync(kubeconfig: str, count: int) -> dict[str, float]:
    """Its own informer, until the cache is filled."""
    from kubernetes import client, config  # noqa: PLC0415 - half a second and 60 MiB that the others must not pay
    from kubernetes.informer import SharedInformer  # noqa: PLC0415

    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()
    api.list_pod_for_all_namespaces(limit=1)
    informer = SharedInformer(api.list_pod_for_all_namespaces, label_selector=_selector(api, count))
    meter = Meter()
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
    from kubernetes import client, config, watch  # noqa: PLC0415

    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()
    newest = int(api.list_pod_for_all_namespaces(limit=1).metadata.resource_version)
    stream, seen = watch.Watch(), 0
    meter = Meter()
    for _ in stream.stream(api.list_pod_for_all_namespaces, resource_version=str(newest - count)):
        seen += 1
        if seen == count:
            break
    return meter.read()


_MEASURES: Final[dict[str, Callable[[str, int], Any]]] = {
    "plimsoll-sync": lambda kubeconfig, count: asyncio.run(plimsoll_sync(kubeconfig, count)),
    "plimsoll-watch": lambda kubeconfig, count: asyncio.run(plimsoll_watch(kubeconfig, count)),
    "official-sync": official_sync,
    "official-watch": official_watch,
}


if __name__ == "__main__":
    print(json.dumps(_MEASURES[sys.argv[1]](sys.argv[2], int(sys.argv[3]))))
