"""A time or number of a node or pod that cannot be held is unknown; the object is read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import Deployment
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


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1.5e9999", "9" * 10_000])
def test_a_number_out_of_range_is_unknown_and_named(number: str):
    """msgspec refuses such text as a whole."""
    text = """{"metadata": {"name": "p", "generation": NUMBER, "annotations": {"good": "yes", "odd": NUMBER}},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": NUMBER, "containers": [
            {"name": "c", "ports": [{"hostPort": NUMBER}],
             "resources": {"requests": {"cpu": NUMBER, "memory": "1Gi"}}}]},
        "status": {"phase": "Running", "unknown field": NUMBER}}"""
    pod = decode_object(Pod, text.replace("NUMBER", number).encode())
    short = number[:40]
    assert isinstance(pod, Pod)
    assert (pod.spec.node_name, pod.status.phase, pod.metadata.annotations) == ("n", "Running", {"good": "yes"})
    assert pod.spec.containers[0].resources.requests == {"cpu": short, "memory": "1Gi"}
    assert sorted(pod.metadata.unknown_fields) == [
        f"metadata.annotations[odd]: {short} is out of range",
        f"metadata.generation: {short} is out of range",
        f"spec.containers[0].ports[0].hostPort: {short} is out of range",
        f"spec.terminationGracePeriodSeconds: {short} is out of range",
    ]


def test_a_number_that_is_no_whole_number_of_64_bits_is_unknown():
    body = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 1e300}}
    pod = decode(Pod, body)
    assert isinstance(pod, Pod)
    assert pod.spec.termination_grace_period_seconds is None
    [unknown] = pod.metadata.unknown_fields
    assert unknown.startswith("spec.terminationGracePeriodSeconds: ")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**20 - 1, -(10**20), 10**200])
def test_a_whole_number_beyond_64_bits_is_unknown_and_named(number: int):
    """Python has no bounds, so nothing but the type of the field keeps such a number out."""
    pod = decode(
        Pod,
        {
            "metadata": {"name": "p", "generation": number, "annotations": {"odd": number}},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "c", "ports": [{"hostPort": number}]}],
                "terminationGracePeriodSeconds": number,
            },
        },
    )
    assert isinstance(pod, Pod)
    assert (pod.spec.node_name, pod.metadata.generation, pod.spec.containers[0].ports[0].host_port) == ("n", 0, 0)
    short = str(number)[:40]
    assert sorted(pod.metadata.unknown_fields) == [
        f"metadata.annotations[odd]: {short} is out of range",
        f"metadata.generation: {short} is out of range",
        f"spec.containers[0].ports[0].hostPort: {short} is out of range",
        f"spec.terminationGracePeriodSeconds: {short} is out of range",
    ]
    many = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": number}}
    few = {**many, "metadata": {"name": "e"}, "spec": {"replicas": 1}}
    listed = decode_list(Deployment, msgspec.json.encode({"kind": "DeploymentList", "items": [many, few]}))
    [bad] = listed.bad
    limit = f"the most is {2**63 - 1}" if number > 0 else f"the least is {-(2**63)}"
    assert (bad.name, bad.problem) == ("d", f"spec.replicas: out of range; {limit}")
    assert [found.metadata.name for found in listed.items] == ["e"]


@pytest.mark.parametrize(
    "text",
    [
        '{"metadata": {"name": "p"}, "spec": {"nodeName": 1e400}}',
        '{"metadata": {"name": "p", "labels": {"a": 1e400}}}',
        '{"metadata": {"name": "p"}, "spec": {"tolerations": 1e400}}',
        '{"metadata": {"name": "p"}, "spec": {"tolerations": [1e400]}}',
        '{"metadata": {"name": "p"}, "spec": {"priority": 1e400, "x": NaN}}',
        '{"metadata": {"name": "p"}, "spec": {"priority": 1e400',
    ],
)
def test_a_number_in_place_of_something_else_makes_it_a_bad_object(text: str):
    found = decode_object(Pod, text.encode())
    assert isinstance(found, BadObject)
    assert found.name == "p"


def test_a_list_keeps_a_node_with_a_number_out_of_range():
    odd = '{"metadata": {"name": "b", "generation": 1e400}}'
    text = f'{{"kind": "NodeList", "items": [{{"metadata": {{"name": "a"}}}}, {odd}]}}'.encode()
    listed = decode_list(Node, text)
    assert [node.metadata.name for node in listed.items] == ["a", "b"]
    assert (listed.bad, listed.problem) == ((), "")
    assert [node.metadata.unknown_fields for node in listed.items] == [
        (),
        ("metadata.generation: 1e400 is out of range",),
    ]


def test_a_time_that_cannot_be_held_is_named():
    node = decode(Node, {"metadata": {"name": "n", "creationTimestamp": PAST}})
    [unknown] = node.metadata.unknown_fields
    assert unknown.startswith("metadata.creationTimestamp: ")
