"""The embedded API server over real TLS sockets: creates, gets, lists, watches, memory, and what growth costs.

The server is a process of its own; clients share the machine with it, so beside what a client sees (the wall clock)
stands what the server spent (its processor time). Ratios compare two figures of the same run.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import tempfile
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.https_clients import Connection, Server, apiserver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Ask = Callable[[Connection, int], Awaitable[Any]]

PODS = int(os.environ.get("PLIMSOLL_BENCH_PODS", "10000"))
CLIENTS = 16
CREATES = 2_000
GETS = 4_000
EVENTS = PODS // 5
NAMESPACE = "/api/v1/namespaces/bench"
SIZES = (PODS // 10, PODS)
SAMPLE = 100
ROUNDS = 10


def rows() -> Iterator[dict[str, Any]]:
    for durability in ("power", "process"):
        with tempfile.TemporaryDirectory() as data, apiserver(data, "--durability", durability) as server:
            yield from asyncio.run(creates(server, durability))
    with tempfile.TemporaryDirectory() as data, apiserver(data) as server:
        yield from asyncio.run(large_server(server))
    yield from growth()


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


def pod(number: int) -> dict[str, Any]:
    """About 6 KB as it is stored, with what the server adds."""
    environment = [{"name": f"VARIABLE_{index}", "value": f"value of variable {index}"} for index in range(40)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"web-{number:06d}", "labels": {"app": f"app-{number % 100}"}},
        "spec": {
            "serviceAccountName": "default",
            "containers": [{"name": "app", "image": f"registry.example/app:{number}", "env": environment}],
        },
    }


def small(number: int) -> dict[str, Any]:
    metadata = {"name": f"o-{number:06d}", "labels": {"app": f"app-{number % 100}"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 200}}


class Cost(NamedTuple):
    """The cost of a piece of work: seconds a client sees, seconds of the server's processor."""

    wall_s: float
    cpu_s: float

    def note(self, count: int) -> str:
        return f"{self.cpu_s / count * 1e6:,.0f} µs of the server's processor each"


async def measured(server: Server, work: Awaitable[Any]) -> Cost:
    cpu_s, start = server.cpu_s(), time.perf_counter()
    await work
    return Cost(time.perf_counter() - start, server.cpu_s() - cpu_s)


async def build_layout(server: Server) -> list[Connection]:
    """The namespace, with the ServiceAccount that the server puts into it, and connections."""
    connections = [await server.connected() for _ in range(CLIENTS)]
    await connections[0].ask("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
    while b'"default"' not in await connections[0].ask("GET", f"{NAMESPACE}/serviceaccounts"):
        pass
    return connections


async def shared(
    connections: list[Connection], numbers: range, ask: Callable[[Connection, int], Awaitable[Any]]
) -> None:
    """Each connection takes its share of the numbers, one request after the other."""

    async def one(index: int) -> None:
        for number in numbers[index :: len(connections)]:
            await ask(connections[index], number)

    await asyncio.gather(*map(one, range(len(connections))))


def create_pod(connection: Connection, number: int) -> Awaitable[bytes]:
    return connection.ask("POST", f"{NAMESPACE}/pods", pod(number))


async def creates(server: Server, durability: str) -> list[dict[str, Any]]:
    connections = await build_layout(server)
    many = await measured(server, shared(connections, range(CREATES), create_pod))
    alone = await measured(server, shared(connections[:1], range(CREATES, CREATES + CREATES // 10), create_pod))
    name = f"creates of pods, durability={durability}"
    return [
        row(name, CREATES / many.wall_s, "writes/s", note=f"{CLIENTS} clients; {many.note(CREATES)}"),
        row(name, CREATES // 10 / alone.wall_s, "writes/s", note="one client"),
    ]


async def large_server(server: Server) -> list[dict[str, Any]]:
    connections = await build_layout(server)
    before = server.memory_bytes()
    await shared(connections, range(PODS - EVENTS), create_pod)
    page = json.loads(await connections[0].ask("GET", f"{NAMESPACE}/pods?limit=1"))
    await shared(connections, range(PODS - EVENTS, PODS), create_pod)
    grown = server.memory_bytes() - before
    body = await connections[0].ask("GET", f"{NAMESPACE}/pods")
    note = f"JSON {len(body) / 1e6:.0f} MB; what the process grew by, history included"
    return [
        row(f"memory of {PODS:,} pods", grown / 1e6, "MB", note=note),
        row("memory against the bytes of the objects", grown / len(body), "times"),
        *await gets(server, connections),
        *await lists(server, connections[0], body),
        *[await watches(server, count, since=page["metadata"]["resourceVersion"]) for count in (1, 10, 100)],
    ]


async def gets(server: Server, connections: list[Connection]) -> list[dict[str, Any]]:
    def ask(connection: Connection, number: int) -> Awaitable[bytes]:
        return connection.ask("GET", f"{NAMESPACE}/pods/web-{number % PODS:06d}")

    cost = await measured(server, shared(connections, range(GETS), ask))
    return [row("gets of pods", GETS / cost.wall_s, "reads/s", note=f"{CLIENTS} clients; {cost.note(GETS)}")]


async def lists(server: Server, connection: Connection, body: bytes) -> list[dict[str, Any]]:
    assert len(json.loads(body)["items"]) == PODS
    costs = [await measured(server, connection.ask("GET", f"{NAMESPACE}/pods")) for _ in range(5)]
    best = min(costs)
    copied = min(timed_copy(body) for _ in range(5))
    rate, copy_rate = len(body) / best.wall_s / 1e6, len(body) / copied / 1e6
    note = f"{len(body) / 1e6:.0f} MB; {best.cpu_s * 1e3:.0f} ms of the server's processor"
    return [
        row(f"list of {PODS:,} pods", best.wall_s * 1e3, "ms", note=note),
        row(f"list of {PODS:,} pods", rate, "MB/s", note=f"dense copy of the bytes: {copy_rate:,.0f}; TLS in between"),
    ]


def timed_copy(body: bytes) -> float:
    start = time.perf_counter()
    bytearray(body)
    return time.perf_counter() - start


async def watches(server: Server, watchers: int, *, since: str) -> dict[str, Any]:
    """So many watchers receive the same changes, which lie in history: no write is in the figure."""
    watching = [await server.connected() for _ in range(watchers)]

    async def follow(connection: Connection) -> None:
        connection.send("GET", f"{NAMESPACE}/pods?watch=1&resourceVersion={since}")
        await connection.head()
        await connection.lines_until(EVENTS)

    cost = await measured(server, asyncio.gather(*map(follow, watching)))
    for connection in watching:
        await connection.close()
    note = f"{cost.note(EVENTS * watchers)} and watcher"
    return row(f"watch events to {watchers} watchers", EVENTS / cost.wall_s, "events/s", note=note)


def growth() -> Iterator[dict[str, Any]]:
    """The cost of one operation in servers of growing size, measured in turns; the best round counts."""
    with ExitStack() as stack:
        directories = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in SIZES]
        servers = [stack.enter_context(apiserver(directory)) for directory in directories]
        costs = asyncio.run(costs_by_size(dict(zip(SIZES, servers, strict=True))))
    for operation in costs[SIZES[0]]:
        figures = [costs[size][operation] for size in SIZES]
        worst = max(later / earlier for earlier, later in itertools.pairwise(figures))
        note = f"µs with {SIZES[0]:,}, {SIZES[1]:,} objects: " + ", ".join(f"{figure * 1e6:.0f}" for figure in figures)
        yield row(f"ten times the objects: {operation}", worst, "times", target="<= 1.2", met=worst <= 1.2, note=note)


async def costs_by_size(servers: dict[int, Server]) -> dict[int, dict[str, float]]:
    maps = f"{NAMESPACE}/configmaps"
    ready = {size: await build_layout(server) for size, server in servers.items()}
    for size, connections in ready.items():
        await shared(connections, range(size), lambda connection, number: connection.ask("POST", maps, small(number)))
    costs: dict[int, dict[str, float]] = {size: {} for size in servers}
    for turn in range(ROUNDS):
        for size, connections in ready.items():
            for operation, seconds in (await costs_once(connections[0], size, turn)).items():
                costs[size][operation] = min(seconds, costs[size].get(operation, seconds))
    return costs


async def costs_once(connection: Connection, size: int, turn: int) -> dict[str, float]:
    maps = f"{NAMESPACE}/configmaps"
    old = [f"{maps}/o-{number:06d}" for number in range(0, size, size // SAMPLE)]
    new = range(size, size + SAMPLE)
    patch = {"data": {"turn": str(turn)}}
    return {
        "create": await each(connection.ask("POST", maps, small(number)) for number in new),
        "delete": await each(connection.ask("DELETE", f"{maps}/o-{number:06d}") for number in new),
        "patch": await each(connection.ask("PATCH", path, patch) for path in old),
        "get": await each(connection.ask("GET", path) for path in old),
        "page of 100": await each(connection.ask("GET", f"{maps}?limit=100") for _ in range(SAMPLE // 10)),
    }


async def each(requests: Iterator[Awaitable[Any]]) -> float:
    """Seconds of one, on average."""
    count, start = 0, time.perf_counter()
    for request in requests:
        await request
        count += 1
    return (time.perf_counter() - start) / count
