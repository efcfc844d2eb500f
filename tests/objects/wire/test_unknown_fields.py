"""A time or number of a node or pod that cannot be held is unknown; the object is read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import decode_list, decode_object

PAST, FUTURE = "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z"
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def decode(kind: type[Any], body: dict[str, Any]) -> Any:
    return decode_object(kind, msgspec.json.encode(body))


@pytest.mark.parametrize("time", [PAST, FUTURE, "yesterday"])
def test_a_node_is_read_without_its_odd_times(time: str):
    node = decode(
        Node,
        {
            "metadata": {"name": "n", "creationTimestamp": time},
            "spec": {"taints": [TAINT, {**TAINT, "timeAdded": time}]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}]},
        },
    )
    assert isinstance(node, Node)
    assert node.metadata.creation_timestamp is None
    assert [taint.key for taint in node.spec.taints] == ["k", "k"]
    assert node.status.conditions[0].status == "True"


def test_a_pod_is_read_without_its_odd_times_and_numbers():
    pod = decode(
        Pod,
        {
            "metadata": {"name": "p", "deletionTimestamp": PAST},
            "spec": {"nodeName": "n", "containers": [], "activeDeadlineSeconds": 1.5, "priority": "high"},
        },
    )
    assert isinstance(pod, Pod)
    assert (pod.spec.node_name, pod.metadata.deletion_timestamp, pod.spec.priority) == ("n", None, None)


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"name": "n"}, "spec": {"taints": "not a list"}},
        {"metadata": {"name": "n", "labels": {"time": 5}}},
        {"metadata": 5},
    ],
)
def test_other_fields_make_it_a_bad_object(body: dict[str, Any]):
    assert isinstance(decode(Node, body), BadObject)


def test_other_kinds_do_not_degrade():
    assert isinstance(decode(Lease, {"metadata": {"name": "l", "creationTimestamp": PAST}}), BadObject)


def test_an_object_with_too_many_odd_fields_is_bad():
    taints = [{**TAINT, "timeAdded": PAST} for _ in range(100)]
    body = {"metadata": {"name": "n", "creationTimestamp": PAST}, "spec": {"taints": taints}}
    conditions = [{"type": str(number), "status": "True", "lastHeartbeatTime": PAST} for number in range(100)]
    found = decode(Node, {**body, "status": {"conditions": conditions}})
    assert isinstance(found, (Node, BadObject))


def test_one_odd_node_keeps_its_place_in_a_list():
    items = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b", "creationTimestamp": PAST}}]
    listed = decode_list(Node, msgspec.json.encode({"kind": "NodeList", "items": items}))
    assert [node.metadata.name for node in listed.items] == ["a", "b"]
    assert listed.bad == ()
