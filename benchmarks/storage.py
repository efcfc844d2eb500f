"""The store of the embedded API server: writes, reads, watches, memory, and what all that costs as the store grows.

Pods are 6 KB of JSON, as real ones are; the growth rows use small objects, because there the structures count and not
the bytes. Every figure stands beside one taken in the same run: a plain copy of the same bytes, or a smaller store.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import tempfile
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.storage import (
    Delete,
    Durability,
    HistoryLimits,
    Key,
    ListQuery,
    MemoryDriver,
    Put,
    SqliteDriver,
    Store,
)
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from plimsoll.local.apiserver.storage.drivers.interface import Driver

    Clock = Callable[[], float]

PODS = 10_000
WRITERS = 100
EVENTS = 10_000
SIZES = (1_000, 10_000, 100_000)
SAMPLE = 500
ROUNDS = 20


def rows() -> Iterator[dict[str, Any]]:
    yield from writes()
    yield from reads()
    yield from watches()
    yield from memory()
    yield from growth()


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


def pod(number: int) -> dict[str, Any]:
    """About 6 KB, most of it what containers, conditions and managed fields bring along."""
    name = f"web-{number:06d}"
    container = {"name": "app", "image": f"registry.example/app:{number}", "env": [env(index) for index in range(40)]}
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"} for kind in "ABCDE"]
    fields: dict[str, Any] = {f"f:field-{index}": {".": {}, "f:name": {}, "f:value": {}} for index in range(40)}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": f"ns-{number % 50}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "labels": {"app": f"app-{number % 100}", "pod-template-hash": "5d4f8c7b9", "tier": "web"},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {"nodeName": f"node-{number % 500}", "containers": [container]},
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1"},
    }


def env(index: int) -> dict[str, Any]:
    return {"name": f"VARIABLE_{index}", "value": f"value of variable {index}, some text"}


def small(number: int) -> dict[str, Any]:
    metadata = {"name": f"o-{number:06d}", "namespace": f"ns-{number % 50}", "labels": {"app": f"app-{number % 100}"}}
    return {"metadata": metadata, "data": {"text": "x" * 200}}


def key_of(body: dict[str, Any]) -> Key:
    return Key("pods", body["metadata"]["namespace"], body["metadata"]["name"])


def opened(driver: Driver) -> Store:
    store = Store.open(driver, clock=RealClock(), limits=HistoryLimits())
    store.select_fields("pods", lambda body: {"spec.nodeName": body.get("spec", {}).get("nodeName", "")})
    return store


async def fill(
    store: Store, bodies: list[dict[str, Any]], *, writers: int = WRITERS, clock: Clock = time.perf_counter
) -> float:
    """Seconds to create them all by so many writers at a time."""

    async def write(share: list[dict[str, Any]]) -> None:
        for body in share:
            await store.update(key_of(body), lambda _, body=body: Put(body))  # type: ignore[misc]

    start = clock()
    await asyncio.gather(*(write(bodies[number::writers]) for number in range(writers)))
    return clock() - start


def writes() -> Iterator[dict[str, Any]]:
    bodies = [pod(number) for number in range(PODS)]
    for durability in Durability:
        for writers, count in ((WRITERS, PODS), (1, PODS // 10)):
            with tempfile.TemporaryDirectory() as directory:
                driver = SqliteDriver(directory, durability=durability)
                seconds = asyncio.run(filling(driver, bodies[:count], writers))
            note = f"6 KB each, {writers} at a time"
            yield row(f"creates, sqlite, durability={durability}", count / seconds, "writes/s", note=note)
    seconds = asyncio.run(filling(MemoryDriver(), bodies, 1))
    yield row("creates, memory", PODS / seconds, "writes/s", note="6 KB each, one after the other")


async def filling(driver: Driver, bodies: list[dict[str, Any]], writers: int) -> float:
    store = opened(driver)
    try:
        return await fill(store, bodies, writers=writers)
    finally:
        await store.aclose()


def reads() -> Iterator[dict[str, Any]]:
    store = asyncio.run(filled([pod(number) for number in range(PODS)]))
    keys = [key_of(pod(number)) for number in range(PODS)]
    seconds = best(lambda: [store.get(key) for key in keys])
    yield row("get", PODS / seconds, "reads/s")

    def listed() -> bytes:
        return b",".join([stored.data for stored in store.list("pods").items])

    whole = listed()
    seconds = best(listed)
    chunks = [bytes(stored.data) for stored in store.list("pods").items]
    copied = best(lambda: b",".join(chunks))
    yield row("list 10,000 pods", seconds * 1_000, "ms", note=f"{len(whole) / 1e6:.0f} MB")
    yield row(
        "list 10,000 pods", len(whole) / seconds / 1e6, "MB/s", note=f"plain copy: {len(whole) / copied / 1e6:,.0f}"
    )
    ratio = seconds / copied
    yield row("list 10,000 pods against a plain copy", ratio, "times", target="<= 2", met=ratio <= 2)
    seconds = best(lambda: store.list("pods", matches=lambda stored: stored.labels.get("app") == "app-7"))
    yield row("list 10,000 pods by label, 100 found", seconds * 1_000, "ms")
    seconds = best(lambda: store.list("pods", ListQuery(limit=500, start="ns-25/")))
    yield row("one page of 500 of 10,000", seconds * 1_000, "ms")


def best(action: Callable[[], object], *, times: int = 5) -> float:
    def once() -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    return min(once() for _ in range(times))


async def filled(bodies: list[dict[str, Any]]) -> Store:
    store = opened(MemoryDriver())
    await fill(store, bodies, writers=1)
    return store


def watches() -> Iterator[dict[str, Any]]:
    """Seconds of the processor, because the target is one core's; the note takes off what the writes alone cost."""
    body = pod(0)
    alone = min(asyncio.run(watched(body, 0)) for _ in range(3))
    for watchers in (1, 10, 100):
        seconds = min(asyncio.run(watched(body, watchers)) for _ in range(3))
        rate = EVENTS / seconds
        each = max(seconds - alone, 0) / EVENTS / watchers
        note = f"writes included; {each * 1e6:.2f} µs a delivery, {alone / EVENTS * 1e6:.0f} µs a write"
        target, met = ("", None) if watchers < 100 else (">= 10,000", rate >= 10_000)
        yield row(f"watch events to {watchers} watchers", rate, "events/s", target=target, met=met, note=note)


async def watched(body: dict[str, Any], watchers: int) -> float:
    """Seconds of the processor until every watcher has the bytes of every event, writes included."""
    store = opened(MemoryDriver())
    watches = [store.watch("pods", since=store.revision) for _ in range(watchers)]

    async def follow(number: int) -> int:
        size = seen = 0
        while seen < EVENTS:
            batch = await watches[number].wait_for_batch()
            seen += len(batch)
            size += sum(len(event.wire) for event in batch)
        return size

    async def write() -> int:
        for _ in range(EVENTS):
            await store.update(key_of(body), lambda _: Put(body))
        return 0

    jobs: list[Awaitable[int]] = [*map(follow, range(watchers)), write()]
    start = time.process_time()
    await asyncio.gather(*jobs)
    seconds = time.process_time() - start
    await store.aclose()
    return seconds


def memory() -> Iterator[dict[str, Any]]:
    gc.collect()
    tracemalloc.start()
    store = asyncio.run(filled([pod(number) for number in range(PODS)]))
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    data = sum(len(stored.data) for stored in store.list("pods").items)
    yield row("memory of 10,000 pods", held / 1e6, "MB", note=f"JSON {data / 1e6:.0f} MB, history of 10,000 included")
    ratio = held / data
    yield row("memory against the bytes of the objects", ratio, "times", target="<= 1.5", met=ratio <= 1.5)


def growth() -> Iterator[dict[str, Any]]:
    """The cost of one operation in stores of growing size; of the two steps the worse one counts."""
    for driver in ("sqlite", "memory"):
        costs = asyncio.run(costs_by_size(driver))
        for operation in costs[SIZES[0]]:
            figures = [costs[size][operation] for size in SIZES]
            worst = max(later / earlier for earlier, later in itertools.pairwise(figures))
            note = "µs with 1k, 10k, 100k objects: " + ", ".join(f"{figure * 1e6:.2f}" for figure in figures)
            name = f"ten times the objects: {operation}, {driver}"
            yield row(name, worst, "times", target="<= 1.2", met=worst <= 1.2, note=note)


async def costs_by_size(driver: str) -> dict[int, dict[str, float]]:
    """The stores are measured in turns, many times, and the best counts: what else the machine does hits all alike."""
    clock = time.perf_counter if driver == "sqlite" else time.process_time
    with contextlib.ExitStack() as stack:
        stores: dict[int, Store] = {}
        for size in SIZES:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            stores[size] = opened(SqliteDriver(directory) if driver == "sqlite" else MemoryDriver())
            await fill(stores[size], [small(number) for number in range(size)])
        gc.collect()
        gc.freeze()
        costs: dict[int, dict[str, float]] = {size: {} for size in SIZES}
        for _ in range(ROUNDS):
            for size, store in stores.items():
                for operation, seconds in (await costs_once(store, size, clock)).items():
                    costs[size][operation] = min(seconds, costs[size].get(operation, seconds))
        gc.unfreeze()
        for store in stores.values():
            await store.aclose()
    return costs


async def costs_once(store: Store, size: int, clock: Clock) -> dict[str, float]:
    new = [small(number) for number in range(size, size + SAMPLE)]
    old = [small(number) for number in range(0, size, size // SAMPLE)]
    keys = [key_of(body) for body in old]
    page = ListQuery(limit=100, start="ns-25/")
    costs = {
        "create": await fill(store, new, clock=clock) / SAMPLE,
        "update": await fill(store, old, clock=clock) / SAMPLE,
    }
    start = clock()
    await asyncio.gather(*(store.update(key_of(body), lambda _: Delete()) for body in new))
    costs["delete"] = (clock() - start) / SAMPLE
    costs["get"] = best(lambda: [store.get(key) for key in keys]) / SAMPLE
    costs["page of 100"] = best(lambda: store.list("pods", page), times=50)
    return costs
