"""How long an hour of a simulated cluster takes: everything live, in virtual time, on the API server in memory.

An idle hour of 100 nodes and 1,000 pods, and one with churn: every minute a deployment is scaled by ten and ten pods
are deleted by hand, so that about 1,500 pods are made, placed, started or ended. Seconds of the one processor it uses,
for the hour itself, after the cluster has come up.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from plimsoll.kube.errors import NotFound
from plimsoll.objects.api.pods import Pod
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.worlds.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES, DEPLOYMENTS, REPLICAS = 100, 20, 50
CHURN_TARGET_S, IDLE_TARGET_S = 6.0, 1.0
_UP_S = 300.0
_HOUR_S = 3_600.0


def deployment(number: int, *, replicas: int, image: int = 1) -> dict[str, Any]:
    labels = {"app": f"web-{number}"}
    resources = {"requests": {"cpu": "200m", "memory": "256Mi"}}
    container = {"name": "c", "image": f"app:{image}", "resources": resources}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"web-{number}"}, "spec": spec}


def scenario() -> Any:
    whole = {
        "world": "live",
        "machineTypes": [{"name": "m", "cpu": 4, "memory": "16Gi", "price": 0.2}],
        "nodeGroups": [{"id": "g", "max": NODES, "target": NODES, "machineType": "m"}],
        "objects": [deployment(number, replicas=REPLICAS) for number in range(DEPLOYMENTS)],
    }
    return read_scenario(msgspec.json.encode(whole), source="bench")


def churn(world: World, minute: int) -> int:
    """One deployment grows or shrinks by ten, another loses ten pods; gives how many pods that makes or ends."""
    number = minute % DEPLOYMENTS
    replicas = REPLICAS - 10 if (minute // DEPLOYMENTS) % 2 == 0 else REPLICAS
    world.run_now(world.seeder.put(deployment(number, replicas=replicas), path="churn"))
    assert world.cluster is not None
    pods = sorted(pod.metadata.name for pod in world.cluster.components.informers.get_informer(Pod).cache)
    doomed = pods[minute::100][:10]
    for name in doomed:
        with suppress(NotFound):  # the smaller deployment was faster
            world.run_now(world.client.delete(Pod, name, namespace="default"))
    return 10 + 2 * len(doomed)


def hours() -> Iterator[tuple[str, float, float, str]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    began_s = time.process_time()
    with World(scenario()) as world:
        world.run.advance_by(_UP_S)
        yield "cluster of 100 nodes and 1,000 pods comes up", time.process_time() - began_s, 0.0, "5 virtual minutes"
        began_s = time.process_time()
        world.run.advance_by(_HOUR_S)
        yield "an idle hour of it", time.process_time() - began_s, IDLE_TARGET_S, "nothing changes"
        began_s, changes = time.process_time(), 0
        for minute in range(60):
            changes += churn(world, minute)
            world.run.advance_by(60)
        note = f"{changes} pods made or ended"
        yield "an hour of it with churn", time.process_time() - began_s, CHURN_TARGET_S, note


def rows() -> Iterator[dict[str, Any]]:
    for name, seconds, target, note in hours():
        yield {
            "name": name,
            "value": round(seconds, 2),
            "unit": "s",
            "target": f"<= {target:g}" if target else None,
            "met": seconds <= target if target else None,
            "note": note,
        }


if __name__ == "__main__":
    for row in rows():
        print(row)
