"""A thousand nodes and ten thousand pods, live: `plimsoll up` as a process, filled through its API over TLS.

The nodes are machines of the simulated cloud, the pods those of twenty deployments. Measured: how long nodes and pods
take until they are ready, pods bound in a second, what the process needs, whether a node was lost meanwhile, and how
fast it answers a client that gets an object twenty times a second. On a machine that others use too, the processor's
seconds mean more than the clock's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from benchmarks.https_clients import Connection, Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

NODES = int(os.environ.get("PLIMSOLL_BENCH_NODES", "1000"))
PODS = int(os.environ.get("PLIMSOLL_BENCH_PODS", "10000"))
DEPLOYMENTS = 20
IDLE_S = 10.0
_GIVE_UP_S = 1_800.0
_GET_EVERY_S = 0.05
_LOOK_EVERY_S = 1.0
_GROUP = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups/workers"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def rows() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory, running_up(f"{directory}/data") as (server, started_s):
        yield row("ready line of plimsoll up", started_s, "s", target="<= 15", met=started_s <= 15)
        yield from asyncio.run(filled(server))


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


@contextmanager
def running_up(data: str) -> Iterator[tuple[Server, float]]:
    """One without nodes, and how long it took to be ready."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "plimsoll", "up", "--data", data, "--port-base", "0", "--nodes", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready at ")
        started_s = time.monotonic() - began_s
        config = yaml.safe_load(Path(data, "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        ca_pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        port = urlsplit(cluster["server"]).port or 0
        try:
            yield Server(process, port, ca_pem, config["users"][0]["user"]["token"]), started_s
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


async def filled(server: Server) -> list[dict[str, Any]]:
    """The rows of one cluster that gets its nodes, then its pods, and then is left alone."""
    connection = await server.connected()
    empty_bytes = server.memory_bytes()
    async with latencies(server) as with_nodes:
        nodes_s = await nodes_ready(connection)
    nodes_cpu_s = server.cpu_s()
    async with latencies(server) as with_pods:
        began = datetime.now(UTC)
        pods_s = await pods_ready(connection)
    pods_cpu_s = server.cpu_s() - nodes_cpu_s
    bound_s = await binding_s(connection)
    lost = await _count(connection, "/api/v1/nodes", lambda nodes: NODES - _ready_nodes(nodes, since=began))
    peak, idle = peak_bytes(server), await idle_share(server)
    await connection.close()
    return [
        row(
            f"{NODES:,} nodes until Ready",
            nodes_s,
            "s",
            note=f"{nodes_cpu_s / NODES * 1e3:.1f} ms of the processor a node",
        ),
        *latency_rows("while nodes come", with_nodes),
        row(f"{PODS:,} pods until Ready", pods_s, "s", note=f"{pods_cpu_s / PODS * 1e3:.1f} ms of the processor a pod"),
        row("pods bound", PODS / bound_s, "pods/s", note=f"from the first to the last in {bound_s:.0f} s"),
        row("pods ready for a second of the processor", PODS / pods_cpu_s, "pods/s", note=f"{pods_cpu_s:.0f} s in all"),
        row(
            "nodes lost while pods come",
            lost,
            "nodes",
            target="0",
            met=lost == 0,
            note="not Ready, or not all the time",
        ),
        *latency_rows("while pods come", with_pods),
        row("memory, peak", peak / 2**20, "MiB", note=f"{empty_bytes / 2**20:.0f} MiB before nodes and pods"),
        row("processor when nothing happens", idle * 100, "% of one", note=f"{NODES:,} leases in 10 s"),
    ]


async def nodes_ready(connection: Connection) -> float:
    began_s = time.monotonic()
    await connection.ask("PATCH", _GROUP, {"spec": {"target": NODES, "max": NODES}})
    await until(lambda: _count(connection, _GROUP, _running), NODES)
    await until(lambda: _count(connection, "/api/v1/nodes", _ready_nodes), NODES)
    return time.monotonic() - began_s


async def pods_ready(connection: Connection) -> float:
    began_s = time.monotonic()
    for number in range(DEPLOYMENTS):
        await connection.ask("POST", _DEPLOYMENTS, deployment(number))
    await until(lambda: _count(connection, _DEPLOYMENTS, _ready_replicas), PODS)
    return time.monotonic() - began_s


async def binding_s(connection: Connection) -> float:
    """From the first binding to the last, to the second, as the pods' conditions show it."""
    listed = json.loads(await connection.ask("GET", "/api/v1/pods"))
    conditions = [condition for pod in listed["items"] for condition in pod["status"]["conditions"]]
    times = [condition["lastTransitionTime"] for condition in conditions if condition["type"] == "PodScheduled"]
    assert len(times) == PODS, f"{len(times)} pods were scheduled"
    first, last = (datetime.fromisoformat(time) for time in (min(times), max(times)))
    return (last - first).total_seconds() + 1


def deployment(number: int) -> dict[str, Any]:
    labels = {"app": f"app-{number}"}
    resources = {"requests": {"cpu": "250m", "memory": "512Mi"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": PODS // DEPLOYMENTS, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": f"app-{number}"}, "spec": spec}


# ---- watching


async def until(count: Any, wanted: int) -> None:
    async with asyncio.timeout(_GIVE_UP_S):
        while await count() < wanted:  # noqa: ASYNC110 -- what is waited for is in another process
            await asyncio.sleep(_LOOK_EVERY_S)


async def _count(connection: Connection, path: str, counted: Any) -> int:
    found: int = counted(json.loads(await connection.ask("GET", path)))
    return found


def _running(group: Any) -> int:
    return int(group.get("status", {}).get("running", 0))


def _ready_nodes(nodes: Any, *, since: datetime | None = None) -> int:
    """Those that are ready now, and were already then."""
    conditions = [condition for node in nodes["items"] for condition in node["status"].get("conditions", ())]
    ready = [condition for condition in conditions if condition["type"] == "Ready" and condition["status"] == "True"]
    times = [datetime.fromisoformat(condition["lastTransitionTime"]) for condition in ready]
    return sum(since is None or moment <= since for moment in times)


def _ready_replicas(deployments: Any) -> int:
    return sum(deployment.get("status", {}).get("readyReplicas", 0) for deployment in deployments["items"])


@asynccontextmanager
async def latencies(server: Server) -> AsyncIterator[list[float]]:
    """Seconds that gets of one small object took."""
    took_s: list[float] = []
    connection = await server.connected()

    async def go_on_asking() -> None:
        while True:
            began_s = time.monotonic()
            await connection.ask("GET", "/api/v1/namespaces/default")
            took_s.append(time.monotonic() - began_s)
            await asyncio.sleep(_GET_EVERY_S)

    asking = asyncio.create_task(go_on_asking())
    try:
        yield took_s
    finally:
        asking.cancel()
        await asyncio.wait((asking,))
        await connection.close()


def latency_rows(when: str, took_s: list[float]) -> Iterator[Any]:
    ordered = sorted(took_s)
    for name, share in (("median", 0.5), ("99th percentile", 0.99)):
        value = ordered[int(share * (len(ordered) - 1))] * 1e3
        yield row(
            f"get of an object {when}: {name}",
            value,
            "ms",
            note=f"of {len(ordered)}, {ordered[-1] * 1e3:.0f} ms at most",
        )


def peak_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


async def idle_share(server: Server) -> float:
    await asyncio.sleep(IDLE_S)
    before_s = server.cpu_s()
    await asyncio.sleep(IDLE_S)
    return (server.cpu_s() - before_s) / IDLE_S
