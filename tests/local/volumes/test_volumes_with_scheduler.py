"""Scheduler and volume controllers together: a pod and its volume end up in one zone, whichever decides first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.components import SCHEDULER
from plimsoll.local.scheduler import Scheduler, SchedulerSettings
from plimsoll.local.volumes.services import build_volume_services
from tests.local.local_cluster import LocalClusterHarness
from tests.local.volumes.builders import (
    CLAIMS,
    CLASSES,
    NAMESPACE,
    NODES,
    PODS,
    VOLUMES,
    claim,
    node,
    pod_with,
    storage_class,
    volume,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

ZONE = "topology.kubernetes.io/zone"


def _parts(components: Components) -> Sequence[Service]:
    settings = SchedulerSettings()
    scheduler = Scheduler(components.build_component(settings.name, manager=SCHEDULER), settings)
    return [*build_volume_services(components), scheduler.build_service()]


def _world() -> LocalClusterHarness:
    return LocalClusterHarness(_parts)


def _begin(world: LocalClusterHarness) -> None:
    world.namespace(NAMESPACE)
    for number in (1, 2, 3):
        name = f"n{number}"
        world.made(NODES, node(name, f"z{number}"))
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        ready = [{"type": "Ready", "status": "True"}]
        status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": ready}}
        world.ask("PATCH", f"{NODES}/{name}/status", status, content="application/merge-patch+json")
        untainted = {"spec": {"taints": None}}
        world.ask("PATCH", f"{NODES}/{name}", untainted, content="application/merge-patch+json")


def _affinity(zone: str) -> dict[str, Any]:
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def test_a_volume_is_made_in_the_zone_of_the_pod():
    with _world() as world:
        _begin(world)
        world.made(CLASSES, storage_class(waits=True))
        world.made(CLAIMS, claim(storageClassName="fast"))
        world.made(PODS, pod_with("c"))
        world.run.advance_by(60)
        number = world.ask("GET", f"{PODS}/p").body["spec"]["nodeName"].removeprefix("n")
        (made,) = world.ask("GET", VOLUMES).body["items"]
        assert made["spec"]["nodeAffinity"] == _affinity(f"z{number}")


def test_a_pod_goes_to_the_zone_of_the_volume_that_is_free():
    with _world() as world:
        _begin(world)
        world.made(CLASSES, storage_class(waits=True, provisioner="kubernetes.io/no-provisioner"))
        world.made(VOLUMES, volume(storageClassName="fast", nodeAffinity=_affinity("z2")))
        world.made(CLAIMS, claim(storageClassName="fast"))
        world.made(PODS, pod_with("c"))
        world.run.advance_by(60)
        assert world.ask("GET", f"{PODS}/p").body["spec"]["nodeName"] == "n2"
        assert world.ask("GET", f"{CLAIMS}/c").body["status"]["phase"] == "Bound"


def test_a_pod_follows_its_volume():
    with _world() as world:
        _begin(world)
        world.made(VOLUMES, volume(nodeAffinity=_affinity("z3")))
        world.made(CLAIMS, claim())
        world.made(PODS, pod_with("c"))
        world.run.advance_by(60)
        assert world.ask("GET", f"{PODS}/p").body["spec"]["nodeName"] == "n3"
