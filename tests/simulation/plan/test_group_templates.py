"""What the next node of a group would be: as a node that it has, if there is a good one; else as the file says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.nodes.model.snapshot import CapacityType
from plimsoll.simulation.plan.inputs import read_plan_input

Json = dict[str, Any]
GROUP: dict[str, Any] = {
    "id": "g",
    "max": 9,
    "template": {"capacity": {"cpu": 4, "memory": "16Gi"}, "labels": {"said": "yes"}},
}
POOL = "eks.amazonaws.com/nodegroup"


def node(name: str = "n", *, ready: str = "2025-12-31T00:00:00Z", taints: Any = (), **more: Any) -> Json:
    labels = {POOL: "g", "real": "yes", "kubernetes.io/hostname": name, **more.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": more.pop("created", "2025-12-30T00:00:00Z")},
        "spec": {"taints": list(taints), **more},
        "status": {
            "capacity": {"cpu": "4", "memory": "15Gi", "pods": "29"},
            "allocatable": {"cpu": "3920m", "memory": "14Gi", "pods": "29"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ready}],
        },
    }


def daemon(name: str, on: str, owner: str = "DaemonSet") -> Json:
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": "logs", "uid": "1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "ownerReferences": [reference]},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "x"}]},
        "status": {"phase": "Running"},
    }


def group(*objects: Json, entry: Json = GROUP, **more: Any) -> Any:
    story = {"start": "2026-01-01T00:00:00Z", "nodeGroups": [entry], **more}
    dump = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    (found,) = read_plan_input([("a", json.dumps(dump).encode()), ("b", json.dumps(story).encode())]).snapshot.groups
    return found


def is_real(found: Any) -> bool:
    return "real" in found.template.metadata.labels


def test_a_node_goes_before_what_the_file_says():
    found = group(node())
    assert (is_real(found), "said" in found.template.metadata.labels) == (True, False)
    assert found.template.status.allocatable["cpu"] == "3920m"


@pytest.mark.parametrize(
    "one",
    [
        node(ready="2025-12-31T23:59:30Z"),
        node(unschedulable=True),
        node(taints=[{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]),
        node(taints=[{"key": "startup-taint.cluster-autoscaler.kubernetes.io/cni", "effect": "NoSchedule"}]),
        {**node(), "status": {**node()["status"], "conditions": [{"type": "Ready", "status": "False"}]}},
        node(labels={POOL: "other"}),
    ],
    ids=["just ready", "cordoned", "going", "starting", "not ready", "of another group"],
)
def test_a_node_that_does_not_speak_for_the_next(one: Json):
    assert not is_real(group(one))


def test_of_several_nodes_the_newest_is_the_template():
    old, new = node("a", labels={"v": "1"}), node("b", created="2025-12-31T00:00:00Z", taints=[])
    assert "v" not in group(old, new).template.metadata.labels


def test_what_differs_from_node_to_node_is_not_promised():
    zone = "topology.kubernetes.io/zone"
    one, two = (node(name, labels={zone: name}) for name in ("a", "b"))
    assert (group(one).zone, group(one, two).zone) == ("a", "")


def test_daemons_of_the_node_come_along():
    found = group(node(), daemon("logs-1", "n"), daemon("web-1", "n", "ReplicaSet"), daemon("logs-2", "m"))
    assert [pod.metadata.name for pod in found.daemons] == ["logs-1"]
    assert found.daemons_are_known
    assert not group().daemons_are_known


def test_nodes_that_a_target_makes_up_are_not_asked():
    assert not is_real(group(entry={**GROUP, "target": 2}))


class TestGroupsOfWhichOnlyTheSizeIsKnown:
    def test_they_are_what_their_nodes_are(self):
        found = group(node(ready="2025-12-31T23:59:30Z"), entry={"id": "g", "max": 9})
        assert (is_real(found), found.target_size, found.max_size) == (True, 1, 9)
        assert found.template.status.capacity["memory"] == "15Gi"

    def test_a_machine_type_of_that_name_has_the_price(self):
        types = [{"name": "m5.xlarge", "cpu": 4, "memory": "16Gi", "price": 0.19}]
        one = node(labels={"node.kubernetes.io/instance-type": "m5.xlarge"})
        found = group(one, entry={"id": "g", "max": 9}, machineTypes=types)
        assert (found.machine_type, found.price_per_hour) == ("m5.xlarge", 0.19)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({**GROUP, "capacityType": "spot"}, CapacityType.SPOT),
        ({**GROUP, "capacityType": "on-demand"}, CapacityType.ON_DEMAND),
        ({**GROUP, "template": {**GROUP["template"], "labels": {"karpenter.sh/capacity-type": "spot"}}}, "spot"),
        ({**GROUP, "template": {**GROUP["template"], "labels": {"eks.amazonaws.com/capacityType": "SPOT"}}}, "spot"),
        ({**GROUP, "template": {**GROUP["template"], "labels": {"cloud.google.com/gke-spot": "true"}}}, "spot"),
        (GROUP, CapacityType.ON_DEMAND),
    ],
)
def test_machines_that_may_be_taken_back(entry: Json, expected: str):
    assert group(entry=entry).capacity_type == expected
