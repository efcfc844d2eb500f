"""Memory of the API server before and after many short-lived workloads.

A round creates and deletes deployments with a replica set, a pod, its status and its events, as controllers do. The
server keeps bounded caches: the history of watches (5 minutes, 128 MiB), decoded objects, field sets. The one here
forgets history after 5 s, so that the rest shows. The first round fills the caches; later rounds must leave nothing.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import TYPE_CHECKING, Any

from benchmarks.churn_server import HISTORY_S
from benchmarks.https_clients import Connection, Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPLOYMENTS = int(os.environ.get("PLIMSOLL_BENCH_DEPLOYMENTS", "766"))
ROUNDS = 4
CLIENTS = 8
EVENTS = 4
MOST_GROWTH = 1.1
CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"


def rows() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as data, running("benchmarks.churn_server", data) as server:
        yield from asyncio.run(measure(server))


async def measure(server: Server) -> list[dict[str, Any]]:
    connections = [await server.connected() for _ in range(CLIENTS)]
    while b'"default"' not in await connections[0].ask("GET", f"{CORE}/serviceaccounts"):
        pass
    before = server.memory_bytes()
    after: list[int] = []
    for number in range(ROUNDS):
        await asyncio.gather(*(churn(connection, number, share) for share, connection in enumerate(connections)))
        await rest(connections[0])
        after.append(server.memory_bytes())
    shown = ", ".join(f"{memory / 1e6:.0f}" for memory in (before, *after))
    growth = after[-1] / after[0]
    note = f"MB before and after each round: {shown}"
    name = f"churn of {DEPLOYMENTS} deployments: memory of the last round"
    target = f"<= {MOST_GROWTH}"
    return [
        row("churn: memory at the start", before / 1e6, "MB"),
        row(name, after[-1] / 1e6, "MB", note=note),
        row(f"{name} against that of the first", growth, "times", target=target, met=growth <= MOST_GROWTH),
    ]


async def rest(connection: Connection) -> None:
    """Let history pass: it is forgotten on writes, twice its age after it was made at the latest."""
    for number in range(4):
        await asyncio.sleep(HISTORY_S)
        await connection.ask("POST", f"{CORE}/configmaps", {"metadata": {"name": f"rest-{number}"}})
        await connection.ask("DELETE", f"{CORE}/configmaps/rest-{number}")


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


async def churn(connection: Connection, round_number: int, share: int) -> None:
    for number in range(share, DEPLOYMENTS, CLIENTS):
        name = f"web-{round_number}-{number}"
        await come(connection, name)
        await go(connection, name)


async def come(connection: Connection, name: str) -> None:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "registry.example/i"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    await connection.ask("POST", f"{APPS}/deployments", {"metadata": {"name": name}, "spec": spec})
    await connection.ask("POST", f"{APPS}/replicasets", {"metadata": {"name": name}, "spec": spec})
    await connection.ask(
        "POST", f"{CORE}/pods", {"metadata": {"name": name, "labels": labels}, "spec": template["spec"]}
    )
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    running = {"status": {"phase": "Running", "conditions": [condition]}}
    await connection.ask("PATCH", f"{CORE}/pods/{name}/status", running)
    counts = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    await connection.ask("PATCH", f"{APPS}/replicasets/{name}/status", {"status": counts})
    await connection.ask("PATCH", f"{APPS}/deployments/{name}/status", {"status": counts})
    about = {"kind": "Pod", "namespace": "default", "name": name}
    for reason in range(EVENTS):
        event = {"metadata": {"name": f"{name}.{reason}"}, "involvedObject": about, "reason": f"Reason{reason}"}
        await connection.ask("POST", f"{CORE}/events", {**event, "type": "Normal", "message": f"Pod {name} is well"})


async def go(connection: Connection, name: str) -> None:
    for path in (f"{APPS}/deployments", f"{APPS}/replicasets", f"{CORE}/pods"):
        await connection.ask("DELETE", f"{path}/{name}")
