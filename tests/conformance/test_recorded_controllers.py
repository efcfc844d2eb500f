"""What a real kube-controller-manager 1.34 wrote about silent nodes, budgets, namespaces and claims, written by ours.

The stories of nodelifecycle.jsonl, and the lines of the other recordings in which the controllers of upkeep had a hand.
Times and uids are masked; of managed fields those of the controller manager are compared.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.controller_manager.node_lifecycle.controller import NodeLifecycleSettings
from plimsoll.local.controller_manager.node_lifecycle.health import NodeGracePeriods
from plimsoll.local.controller_manager.services import build_disruption_services, build_namespace_services
from tests.conformance.comparison import body_differences
from tests.conformance.recordings import by_id
from tests.local.controller_manager.builders import NODES, NodeLifecycleCluster
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMES = re.compile(r"202[56]-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_EVENT_NAMES = re.compile(r'"name": "([a-z0-9-]+)\.[0-9a-f]{16}"')
_PATIENCE = NodeLifecycleSettings(patience=NodeGracePeriods(grace_s=12, startup_grace_s=12))
_SIZE = {"cpu": "4", "ephemeral-storage": "100Gi", "memory": "8Gi", "pods": "110"}
_NEVER_SILENT = "kube-controller-manager"


def line(id_: str) -> Any:
    return by_id(id_).response


def comparable(value: Any) -> Any:
    text = _TIMES.sub("2026-11-15T00:00:00Z", json.dumps(value))
    return json.loads(_EVENT_NAMES.sub(r'"name": "\1.<time>"', text))


def differences(recorded: Any, ours: Any) -> list[str]:
    return list(body_differences(comparable(recorded), comparable(ours), is_cut=False, id_="upkeep"))


def by_controllers(metadata: Any) -> list[Any]:
    fields = [item for item in metadata.get("managedFields", []) if item["manager"] == _NEVER_SILENT]
    return sorted(fields, key=lambda field: field.get("subresource", ""))


def of_node(node: Any) -> Any:
    """What controllers write of a node, and what they wrote it as."""
    metadata = node["metadata"]
    return {
        "annotations": metadata.get("annotations"),
        "labels": metadata.get("labels"),
        "spec": node["spec"],
        "conditions": node["status"].get("conditions"),
    }


def of_pod(pod: Any) -> Any:
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds")
    return {"name": metadata["name"], "grace": grace, "status": pod["status"], "fields": by_controllers(metadata)}


def of_event(event: Any) -> Any:
    about = {key: value for key, value in event["involvedObject"].items() if key != "resourceVersion"}
    return {**{key: event[key] for key in ("reason", "message", "type", "count", "source")}, "about": about}


@pytest.fixture
def world() -> Iterator[NodeLifecycleCluster]:
    with NodeLifecycleCluster(_PATIENCE) as world:
        yield world


def labelled(name: str) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": "z1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }


def node(world: NodeLifecycleCluster, name: str, **status: str) -> None:
    world.node(name, labels=labelled(name), **status)  # type: ignore[arg-type]


def running_pods(world: NodeLifecycleCluster, namespace: str, on: str) -> str:
    pods = f"{world.namespace(namespace)}/pods"
    unreachable, not_ready = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
    toleration = {"operator": "Exists", "effect": "NoExecute"}
    short = [
        {"key": unreachable, **toleration, "tolerationSeconds": 2},
        {"key": not_ready, **toleration, "tolerationSeconds": 300},
    ]
    for name, tolerations in (("short", short), ("long", []), ("forever", [{"operator": "Exists"}])):
        world.pod(name, on, tolerations=tolerations, base=pods)
    return pods


@pytest.mark.parametrize(
    ("id_", "name", "status"),
    [
        ("nodelifecycle-003", "ok", {}),
        ("nodelifecycle-004", "false", {"Ready": "False"}),
        ("nodelifecycle-005", "pressure", {"MemoryPressure": "True"}),
    ],
)
def test_taints_follow_conditions_as_recorded(world: NodeLifecycleCluster, id_: str, name: str, status: dict[str, str]):
    node(world, "good")
    node(world, name, **status)
    ours = world.ask("GET", f"{NODES}/{name}").body
    assert differences(of_node(line(id_)), of_node(ours)) == []


def test_when_every_node_is_silent_nodes_and_pods_are_as_recorded(world: NodeLifecycleCluster):
    node(world, "ok")
    world.made(NODES, {"metadata": {"name": "never"}})
    pods = running_pods(world, "nl", "ok")
    world.silence("ok")
    world.run.advance_by(60)
    for id_, name in (("nodelifecycle-007", "ok"), ("nodelifecycle-008", "never")):
        assert differences(of_node(line(id_)), of_node(world.ask("GET", f"{NODES}/{name}").body)) == []
    ours = [of_pod(item) for item in world.ask("GET", pods).body["items"]]
    assert differences([of_pod(item) for item in line("nodelifecycle-009")["items"]], ours) == []
    events = world.ask("GET", "/api/v1/namespaces/nl/events").body["items"]
    recorded = [of_event(item) for item in line("nodelifecycle-011")["items"]]
    assert differences(recorded, [of_event(event) for event in events]) == []


def test_one_silent_node_among_others_is_as_recorded(world: NodeLifecycleCluster):
    for name in ("ok", "bad", "gone"):
        node(world, name)
    pods = running_pods(world, "nl2", "bad")
    world.pod("ongone", "gone", base=pods)
    world.ask("DELETE", f"{NODES}/gone")
    world.silence("bad")
    world.run.advance_by(20)

    assert differences(of_node(line("nodelifecycle-018")), of_node(world.ask("GET", f"{NODES}/bad").body)) == []
    ours = [of_pod(item) for item in world.ask("GET", pods).body["items"]]
    assert differences([of_pod(item) for item in line("nodelifecycle-019")["items"]], ours) == []
    events = world.ask("GET", "/api/v1/namespaces/nl2/events").body["items"]
    recorded = [of_event(item) for item in line("nodelifecycle-023")["items"]]
    assert differences(recorded, [of_event(event) for event in events]) == []
    for id_, name in (("nodelifecycle-024", "bad"), ("nodelifecycle-025", "gone")):
        url = f"/api/v1/events?fieldSelector=involvedObject.kind%3DNode,involvedObject.name%3D{name}"
        reported = [of_event(item) for item in world.ask("GET", url).body["items"]]
        assert differences([of_event(item) for item in line(id_)["items"]], reported) == []


def test_a_pod_of_a_deleted_node_ends_as_recorded(world: NodeLifecycleCluster):
    node(world, "ok")
    node(world, "gone")
    pods = f"{world.namespace('nl2')}/pods"
    world.pod("ongone", "gone", base=pods)
    watch = world.watch(f"{pods}?watch=true")
    world.ask("DELETE", f"{NODES}/gone")
    world.run.advance_by(60)
    ended = next(item for item in line("nodelifecycle-021") if item["object"]["metadata"]["name"] == "ongone")
    ours = next(event for event in watch.events if event["type"] == "MODIFIED")
    assert differences(of_pod(ended["object"]), of_pod(ours["object"])) == []


def test_a_node_that_reports_again_is_as_recorded(world: NodeLifecycleCluster):
    node(world, "ok")
    node(world, "bad")
    world.silence("bad")
    world.run.advance_by(60)
    world.liveness.report_alive("bad")
    world.report("bad", at="2026-01-01T00:01:00Z")
    assert differences(of_node(line("nodelifecycle-026")), of_node(world.ask("GET", f"{NODES}/bad").body)) == []


# ---- budgets, namespaces, claims


def test_budgets_are_counted_as_recorded():
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    with LocalClusterHarness(build_disruption_services) as world:
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "nobody"}}}
        world.made(budgets, {"metadata": {"name": "none"}, "spec": spec})
        world.run.settle()
        ours, recorded = world.ask("GET", f"{budgets}/none").body, line("controllers-034")
        assert differences(recorded["status"], ours["status"]) == []
        assert differences(by_controllers(recorded["metadata"]), by_controllers(ours["metadata"])) == []


def test_a_namespace_held_by_a_finalizer_says_so_as_recorded():
    with LocalClusterHarness(build_namespace_services) as world:
        base = world.namespace("delete-ns")
        world.made(f"{base}/configmaps", {"metadata": {"name": "h", "finalizers": ["ex.com/hold"]}})
        world.ask("DELETE", base)
        world.run.advance_by(5)
        ours, recorded = world.ask("GET", base).body, line("delete-055")
        assert differences(recorded["status"], ours["status"]) == []
        assert differences(by_controllers(recorded["metadata"]), by_controllers(ours["metadata"])) == []
