"""What a real API server answered decodes, and means what it says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from rich.pretty import pretty_repr

from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.core import Secret
from plimsoll.objects.api.events import Event
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod, PodTemplate
from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, Volume
from plimsoll.objects.api.workloads import Deployment, StatefulSet
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import decode_list, decode_object, decode_with_raw, encode_object
from plimsoll.objects.registry import KINDS
from tests.objects.api.recordings import answers, objects

T = TypeVar("T", bound=WireObject)


def decoded(struct: type[T], value: Any) -> T:
    found = decode_object(struct, json.dumps(value).encode())
    assert not isinstance(found, BadObject), found
    return found


def recorded(struct: type[T], recording: str) -> T:
    return decoded(struct, answers("create", "scheduler")[recording])


@pytest.mark.parametrize("name", list(objects()))
def test_every_recorded_object_decodes_and_survives_encoding(name: str):
    value = objects()[name]
    resource = KINDS.find_by_kind(value["apiVersion"], value["kind"])
    assert resource
    found = decoded(resource.struct, value)
    assert found.metadata.name == value["metadata"]["name"]
    assert found.metadata.uid == value["metadata"]["uid"]
    assert found.metadata.creation_timestamp == datetime.fromisoformat(value["metadata"]["creationTimestamp"])
    assert decode_object(resource.struct, encode_object(found)) == found


@pytest.mark.parametrize("name", list(objects()))
def test_encoding_writes_nothing_the_server_did_not_say(name: str):
    value = objects()[name]
    resource = KINDS.find_by_kind(value["apiVersion"], value["kind"])
    assert resource
    assert_part_of(json.loads(encode_object(decoded(resource.struct, value))), value)


def assert_part_of(part: Any, whole: Any) -> None:
    if isinstance(part, dict):
        assert part.keys() <= whole.keys()
        for key, value in part.items():
            assert_part_of(value, whole[key])
    elif isinstance(part, list):
        assert len(part) == len(whole)
        for mine, theirs in zip(part, whole, strict=True):
            assert_part_of(mine, theirs)
    else:
        assert part == whole


def test_a_pod_with_everything():
    spec = recorded(Pod, "create-003").spec
    assert spec.scheduler_name == "none"
    assert spec.termination_grace_period_seconds == 5
    assert [(init_container.name, init_container.restart_policy) for init_container in spec.init_containers] == [
        ("init", ""),
        ("sidecar", "Always"),
    ]
    assert spec.containers[0].resources.requests == {"cpu": "500m", "memory": "512Mi", "nvidia.com/gpu": "1"}
    assert [(port.container_port, port.protocol) for port in spec.containers[0].ports] == [(80, "TCP"), (53, "UDP")]
    assert [toleration.key for toleration in spec.tolerations] == [
        "a",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_the_volumes_of_a_pod_keep_what_binds_it_to_a_place():
    volumes = {volume.name: volume for volume in recorded(Pod, "create-003").spec.volumes}
    assert volumes["e"].empty_dir
    assert volumes["e"].empty_dir.medium == ""
    assert volumes["h"].host_path
    assert volumes["h"].host_path.path == "/tmp"
    assert volumes["p"].projected is not None
    assert volumes["pvc"].persistent_volume_claim
    assert volumes["pvc"].persistent_volume_claim.claim_name == "data"
    assert volumes["cm"] == Volume(name="cm")


def test_a_host_network_pod_has_host_ports():
    spec = recorded(Pod, "create-004").spec
    assert spec.host_network
    assert spec.containers[0].ports[0].host_port == spec.containers[0].ports[0].container_port != 0


def test_a_gated_pod():
    gated = recorded(Pod, "scheduler-049")
    assert gated.spec.scheduling_gates
    assert gated.status.conditions[0].reason == "SchedulingGated"


def test_an_unscheduled_pod_has_no_node_and_an_unset_priority_stays_unset():
    assert decoded(Pod, {"metadata": {"name": "a"}}).spec.priority is None
    assert recorded(Pod, "create-034").spec.priority == 1000
    assert recorded(Pod, "create-002").spec.node_name == ""


def test_a_deployment():
    spec = recorded(Deployment, "create-007").spec
    assert spec.replicas == 0
    assert recorded(Deployment, "create-008").spec.replicas == 1
    assert spec.selector
    assert spec.selector.match_labels.items() <= spec.template.metadata.labels.items()
    assert spec.strategy.rolling_update
    assert spec.strategy.rolling_update.max_surge == "25%"


def test_a_stateful_set_with_claims():
    spec = recorded(StatefulSet, "create-011").spec
    assert spec.volume_claim_templates[0].spec.resources.requests["storage"] == "1Gi"
    assert spec.volume_claim_templates[0].metadata.name


def test_storage():
    assert recorded(PersistentVolumeClaim, "create-029").spec.resources.requests
    assert recorded(PersistentVolume, "create-030").spec.capacity
    assert recorded(StorageClass, "create-031").volume_binding_mode


def test_a_node():
    node = recorded(Node, "create-043")
    assert [taint.key for taint in node.spec.taints] == ["node.kubernetes.io/not-ready"]


def test_a_template_keeps_its_pod_spec():
    assert recorded(PodTemplate, "create-042").template.spec.containers


def test_a_lease_is_written_with_six_fractional_digits():
    spec = recorded(Lease, "create-037").spec
    assert spec.renew_time == datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    written = json.loads(encode_object(spec))
    assert written["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert written["renewTime"] == "2026-01-01T00:00:00.123456Z"


def test_a_secret_is_bytes_and_does_not_show_them():
    secret = recorded(Secret, "create-026")
    assert secret.data == {"a": b"hello", "b": b"world"}
    assert repr([secret]) == "[Secret(namespace='create', name='sec', keys=['a', 'b'])]"
    with_bytes = decode_with_raw(Secret, encode_object(secret))
    for shown in (pretty_repr(secret), pretty_repr(with_bytes), repr(with_bytes)):
        assert "hello" not in shown
        assert "aGVsbG8" not in shown


def test_a_list_of_events():
    found = decode_list(Event, json.dumps(answers("create", "scheduler")["scheduler-005"]).encode())
    assert found.bad == ()
    assert found.problem == ""
    assert found.metadata.resource_version == "273"
    (event,) = found.items
    assert event.reason == "FailedScheduling"
    assert event.involved_object.name == "cpu"
    assert event.first_timestamp is None
    assert event.event_time == datetime(2026, 11, 15, 4, 2, 24, 690938, tzinfo=UTC)
