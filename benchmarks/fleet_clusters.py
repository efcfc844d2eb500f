"""Clusters of a fleet in one process: what an idle one costs, what a further one needs, and how long a new one takes.

An idle hour in virtual time of one cluster and of five: processor time of everything that runs in them, after they have
come up. Memory is that of the process, before and after four further clusters. The time from the request at the
simulated OCM, which has no delays here, to the first ready node is taken live.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from plimsoll.app.fleet.cluster_stores import MemoryStores
from plimsoll.app.fleet.embedded_clusters import EmbeddedClusters, EmbeddedClustersSettings
from plimsoll.local.ocm.documents import BASE
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import NO_DELAYS, OcmSettings
from plimsoll.objects.api.nodes import Node, is_node_ready
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import Request, Response
from tests.app.fleet.cluster_worlds import open_clusters
from tests.local.ocm.ocm_world import build_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTERS = 5
RATIO_TARGET = 5.5
ROUNDS = 3
_UP_S = 900.0
_HOUR_S = 3_600.0
_LOOK_S = 0.005


def rows() -> Iterator[dict[str, Any]]:
    logging.disable(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    one, _ = measure_hour(1)
    five, further = measure_hour(CLUSTERS)
    yield row("idle hour of 1 cluster, 3 nodes", one, "s", note="processor time, virtual hour")
    yield row(f"idle hour of {CLUSTERS} clusters", five, "s", note="likewise")
    ratio = five / one
    yield row(f"{CLUSTERS} clusters against 1", ratio, "times", target=f"<= {RATIO_TARGET}", met=ratio <= RATIO_TARGET)
    yield row("memory of a further cluster", further / 1e6, "MB", note="resident, with its objects")
    took = sorted(asyncio.run(measure_first_node()) for _ in range(ROUNDS))
    yield row("POST at OCM to the first ready node", took[ROUNDS // 2], "s", note="no delays of OCM or machines")


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


def measure_hour(clusters: int) -> tuple[float, float]:
    """The processor time of an idle hour, and the memory of each cluster after the first."""
    with open_clusters() as world:
        world.order("mk-0")
        before = read_resident_bytes()
        for number in range(1, clusters):
            world.order(f"mk-{number}")
        further = (read_resident_bytes() - before) / max(1, clusters - 1)
        world.run.advance_by(_UP_S)
        gc.collect()
        began_s = time.process_time()
        world.run.advance_by(_HOUR_S)
        return time.process_time() - began_s, further


def read_resident_bytes() -> int:
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not say how much memory a process has")


async def measure_first_node() -> float:
    clock, entropy = RealClock(), SystemEntropy()
    stores = MemoryStores(clock=clock, entropy=entropy)
    settings = EmbeddedClustersSettings(machine_boot_s=0.0)
    clusters = EmbeddedClusters(stores, clock=clock, entropy=entropy, settings=settings)
    ocm = SimulatedOcm(clock=clock, entropy=entropy, data_plane=clusters, settings=OcmSettings(delays=NO_DELAYS))
    tasks = [asyncio.create_task(clusters.run()), asyncio.create_task(ocm.run())]
    await asyncio.sleep(0)
    began_s = time.perf_counter()
    body = json.dumps(build_cluster("mk-0")).encode()
    answer = await AsgiClient(ocm.application).send(Request(method="POST", url=f"http://ocm{BASE}/clusters", body=body))
    assert isinstance(answer, Response), answer
    cluster_id = json.loads(answer.body)["id"]
    while not await has_ready_node(clusters, cluster_id):
        await clock.sleep(_LOOK_S)
    took_s = time.perf_counter() - began_s
    for task in reversed(tasks):
        task.cancel()
        await asyncio.wait((task,))
    return took_s


async def has_ready_node(clusters: EmbeddedClusters, cluster_id: str) -> bool:
    running = clusters.find(cluster_id)
    if running is None:
        return False
    return any(is_node_ready(node) for node in (await running.cluster.connect("bench").list(Node)).items)
