"""The way back: JSON to protobuf, over the table that the decoder uses."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.protobuf.decoding import decode_body, decode_message
from plimsoll.objects.protobuf.encoding import encode_message
from plimsoll.objects.protobuf.messages import CORE, find_message_of_kind
from plimsoll.objects.protobuf.wire import InvalidProtobuf
from tests.objects.protobuf.encoder import body, encoded, field

NODE = f"{CORE}Node"
POD = f"{CORE}Pod"
# Required fields of one message: Go writes them all, the empty ones too.
_NODE_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
    *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
)
_PLAIN_POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "labels": {"b": "2", "a": "1"},
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
        ],
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": "http"}, "initialDelaySeconds": 3},
                "readinessProbe": {"httpGet": {"port": 8080}},
                "envFrom": [{"configMapRef": {"name": "m", "optional": False}}],
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 0}],
        "priority": -5,
    },
}


def recorded_bodies() -> list[tuple[str, bytes]]:
    folder = Path(__file__).parents[2] / "fixtures/kubernetes/kubectl"
    found = []
    for file in sorted(folder.glob("*-protobuf-*.json")):
        for number, request in enumerate(_requests(json.loads(file.read_bytes()))):
            found.append((f"{file.stem} {number}", request))
    return found


def _requests(recorded: Any) -> list[bytes]:
    """Everything in the recording that is a protobuf body in base64."""
    if isinstance(recorded, dict):
        return [request for value in recorded.values() for request in _requests(value)]
    if isinstance(recorded, list):
        return [request for value in recorded for request in _requests(value)]
    if isinstance(recorded, str) and recorded.startswith("azhzA"):
        return [base64.b64decode(recorded)]
    return []


def test_there_are_recorded_bodies_to_compare_with():
    assert len(recorded_bodies()) >= 3


@pytest.mark.parametrize(("name", "recorded"), recorded_bodies())
def test_what_a_real_kubectl_sent_survives_the_way_there_and_back(name: str, recorded: bytes):
    decoded = decode_body(recorded)
    value = {key: item for key, item in decoded.value.items() if key not in {"apiVersion", "kind"}}
    message = find_message_of_kind(decoded.api_version, decoded.kind)
    assert message is not None
    again = decode_body(body(decoded.api_version, decoded.kind, encode_message(message, value)))
    assert again.value == decoded.value


def test_a_pod_comes_back_as_it_went():
    assert decode_message(POD, encode_message(POD, _PLAIN_POD)).value == _PLAIN_POD


def test_a_node_comes_back_as_it_went():
    node = {
        "metadata": {"name": "n", "annotations": {"a": "b"}},
        "spec": {"providerID": "x://1", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
            "nodeInfo": dict.fromkeys(_NODE_INFO, "x"),
        },
    }
    assert decode_message(NODE, encode_message(NODE, node)).value == node


def test_equal_values_give_equal_bytes_whatever_their_order():
    labels = {"metadata": {"labels": {"b": "2", "a": "1"}, "name": "p"}}
    other = {"metadata": {"name": "p", "labels": {"a": "1", "b": "2"}}}
    assert encode_message(POD, labels) == encode_message(POD, other)


def test_fields_of_tomorrow_are_kept_where_they_stood():
    inner = encoded(f"{CORE}NodeSpec", {"providerID": "x"}) + field(900, b"inside") + field(901, 7)
    whole = field(2, inner) + field(999, b"outside")
    decoded = decode_message(NODE, whole)
    assert decoded.value == {"spec": {"providerID": "x"}}
    assert decoded.unknown == {"spec": field(900, b"inside") + field(901, 7), "": field(999, b"outside")}
    assert encode_message(NODE, decoded.value, unknown=decoded.unknown) == whole


def test_fields_of_tomorrow_inside_lists_and_inline_messages_are_kept():
    volume = field(1, b"v") + field(2, field(800, b"new kind of volume"))
    whole = field(2, field(1, volume) + field(2, field(1, b"c") + field(700, b"x")))
    decoded = decode_message(POD, whole)
    again = decode_message(POD, encode_message(POD, decoded.value, unknown=decoded.unknown))
    assert again.unknown["spec.containers[0]"] == field(700, b"x")


def test_names_that_the_table_does_not_know_are_left_out():
    assert encode_message(NODE, {"spec": {"providerID": "x", "tomorrow": 1}}) == field(2, field(3, b"x"))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"metadata": {"name": 5}}, "metadata.name"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"labels": ["a"]}}, "metadata.labels"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels[a]"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "metadata.creationTimestamp"),
        ({"spec": {"priority": "high"}}, "spec.priority"),
        (
            {"spec": {"containers": [{"resources": {"requests": {"cpu": []}}}]}},
            "spec.containers[0].resources.requests[cpu]",
        ),
    ],
)
def test_values_that_do_not_fit_name_their_field(value: dict[str, Any], path: str):
    with pytest.raises(InvalidProtobuf) as caught:
        encode_message(POD, value)
    assert caught.value.path == path


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "x/y"]), st.sampled_from(["1", "500m", "2Gi"]), max_size=3)
labels = st.dictionaries(st.text(min_size=1, max_size=5), st.text(min_size=1, max_size=5), min_size=1, max_size=4)


@given(labels, amounts.filter(bool), st.integers(-(1 << 31), (1 << 31) - 1))
@settings(max_examples=100, deadline=None)
def test_any_pod_comes_back_as_it_went(marks: dict[str, str], requests: dict[str, str], priority: int):
    pod = {
        "metadata": {"labels": marks},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], "priority": priority},
    }
    assert decode_message(POD, encode_message(POD, pod)).value == pod
