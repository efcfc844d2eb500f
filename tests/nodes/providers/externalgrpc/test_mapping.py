"""Messages of the provider protocol: nothing is lost on the way, and an absent field is read as the protocol says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind, NotImplementedByProvider
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.model.snapshot import CapacityType, MachineType
from plimsoll.nodes.providers.externalgrpc import mapping
from plimsoll.nodes.providers.externalgrpc.codes import Code, RpcFailed, to_error, to_failure
from plimsoll.nodes.providers.externalgrpc.generated import externalgrpc_pb2 as base
from plimsoll.nodes.providers.externalgrpc.methods import METHODS
from plimsoll.nodes.providers.externalgrpc.object_bytes import decode_node, encode_node
from plimsoll.nodes.providers.externalgrpc.remote_groups import decode_template
from plimsoll.nodes.providers.values import GroupOptions, Instance, InstanceError, NodeRef, Span
from plimsoll.objects.api.nodes import Node, NodeSpec, NodeStatus, Taint
from plimsoll.objects.protobuf.wire import InvalidProtobuf
from tests.nodes.providers.externalgrpc.protos import GENERATED, generated
from tests.nodes.providers.simulated.simulated_clusters import DEFAULTS, blueprint

texts = st.text(max_size=8)
maps = st.dictionaries(texts, texts, max_size=3)
errors = st.builds(InstanceError, error_class=st.sampled_from(ErrorClass), code=texts.filter(bool), message=texts)
instances = st.builds(
    Instance, id=texts, name=st.just(""), state=st.sampled_from(InstanceState), error=st.none() | errors
)
seconds = st.integers(0, 10**6).map(lambda milli: milli / 1000)
options = st.builds(
    GroupOptions,
    utilization_threshold=st.floats(0, 1),
    gpu_utilization_threshold=st.floats(0, 1),
    unneeded_s=seconds,
    unready_s=seconds,
    provision_s=seconds,
    startup_s=seconds,
    ignore_daemon_sets=st.booleans(),
    zero_or_max=st.booleans(),
    allow_partial_scale_up=st.booleans(),
)


def test_the_generated_code_is_what_protoc_makes_of_the_protocol():
    there = {file.name: file.read_text() for file in GENERATED.glob("*_pb2.py*")}
    assert there == generated()


def test_calls_have_the_paths_that_cluster_autoscaler_uses():
    path = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupIncreaseSize"
    assert METHODS["NodeGroupIncreaseSize"].path == path


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        ("NodeGroup", {"id": 1, "minSize": 2, "maxSize": 3, "debug": 4}),
        ("ExternalGrpcNode", {"providerID": 1, "name": 2, "labels": 3, "annotations": 4}),
        ("PricingNodePriceRequest", {"node": 1, "startTimestamp": 4, "endTimestamp": 5}),
        ("PricingPodPriceRequest", {"pod_bytes": 4, "startTimestamp": 5, "endTimestamp": 6}),
        ("NodeGroupIncreaseSizeRequest", {"delta": 1, "id": 2}),
        ("NodeGroupDeleteNodesRequest", {"nodes": 1, "id": 2}),
        ("NodeGroupDecreaseTargetSizeRequest", {"delta": 1, "id": 2}),
        ("NodeGroupTemplateNodeInfoResponse", {"nodeBytes": 2}),
        ("InstanceErrorInfo", {"errorCode": 1, "errorMessage": 2, "instanceErrorClass": 3}),
    ],
)
def test_fields_have_the_numbers_of_the_published_protocol(message: str, numbers: dict[str, int]):
    fields = base.DESCRIPTOR.message_types_by_name[message].fields
    assert {field.name: field.number for field in fields} == numbers


def test_growth_by_two_is_these_bytes():
    request = METHODS["NodeGroupIncreaseSize"].request(delta=2, id="g")
    assert request.SerializeToString() == b"\x08\x02\x12\x01g"


@given(instances)
@settings(max_examples=100, deadline=None)
def test_instances_come_back_as_they_went(instance: Instance):
    assert mapping.from_instance_message(mapping.to_instance_message(instance)) == instance


@given(st.builds(NodeRef, provider_id=texts, name=texts, labels=maps, annotations=maps))
@settings(max_examples=100, deadline=None)
def test_nodes_come_back_as_they_went(node: NodeRef):
    assert mapping.from_node_message(mapping.to_node_message(node)) == node


@given(options)
@settings(max_examples=100, deadline=None)
def test_options_come_back_as_they_went(given_options: GroupOptions):
    assert mapping.from_options_message(mapping.to_options_message(given_options), DEFAULTS) == given_options


def test_times_that_an_older_server_does_not_know_stay_the_callers():
    message = mapping.to_options_message(DEFAULTS)
    message.ClearField("maxNodeStartupDuration")
    message.ClearField("MaxNodeProvisionDuration")
    found = mapping.from_options_message(message, DEFAULTS)
    assert (found.startup_s, found.provision_s) == (DEFAULTS.startup_s, DEFAULTS.provision_s)


def test_an_instance_without_a_status_is_unspecified_and_well():
    assert mapping.from_instance_message(base.Instance(id="i")) == Instance(id="i", state=InstanceState.UNSPECIFIED)


def test_states_and_classes_of_tomorrow_are_the_unspecific_ones():
    # State 9, and an error of class 7.
    status = base.InstanceStatus.FromString(b"\x08\x09\x12\x05\x0a\x01E\x18\x07")
    found = mapping.from_instance_message(base.Instance(id="i", status=status))
    assert found.state is InstanceState.UNSPECIFIED
    assert found.error == InstanceError(error_class=ErrorClass.OTHER, code="E")


def test_blueprints_come_back_as_they_went():
    whole = blueprint(zones=("a",), system_labels={"s": "1"}, extra_resources={"nvidia.com/gpu": "2"})
    assert mapping.from_blueprint_message(mapping.to_blueprint_message(whole)) == whole


@pytest.mark.parametrize("price", [None, 0.0, 0.25])
def test_machine_types_come_back_as_they_went_an_unknown_price_too(price: float | None):
    kind = MachineType(
        name="m",
        capacity=ResourceVector.from_quantities({"cpu": "1500m", "memory": "3Gi", "nvidia.com/gpu": 1}),
        allocatable=ResourceVector.from_quantities({"cpu": "1400m", "memory": "2Gi"}),
        price_per_hour=price,
        zones=("a", "b"),
        labels={"x": "y"},
        taints=(Taint(key="k", value="v", effect="NoSchedule"),),
        architecture="arm64",
        capacity_type=CapacityType.SPOT,
    )
    assert mapping.from_machine_type_message(mapping.to_machine_type_message(kind)) == kind


def test_spans_of_prices_come_back_as_they_went():
    span = Span(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 1, 0, 30, tzinfo=UTC))
    request = METHODS["PricingNodePrice"].request()
    mapping.set_span(request, span)
    assert mapping.from_span_message(request) == span


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind is not FailureKind.HELD])
def test_every_failure_is_understood_at_the_other_end(kind: FailureKind):
    failure = CallFailed(kind=kind, message="why")
    assert to_failure(to_error(failure)) == failure


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.OK])
def test_every_code_is_some_failure(code: Code):
    assert to_failure(RpcFailed(code, "")).message == code.name


def test_a_node_is_the_same_after_its_bytes():
    node = Node(
        spec=NodeSpec(provider_id="p", taints=(Taint(key="k", value="v", effect="NoExecute"),)),
        status=NodeStatus(capacity={"cpu": "4", "memory": "8Gi"}, allocatable={"cpu": "3900m"}),
    )
    assert decode_node(encode_node(node)) == node


def test_bytes_that_are_no_node_are_reported_as_such():
    with pytest.raises(InvalidProtobuf):
        decode_node(b"\xff\xff")
    assert decode_template("g", b"\xff\xff") == NotImplementedByProvider(call="TemplateNodeInfo")
    assert decode_template("g", b"") == NotImplementedByProvider(call="TemplateNodeInfo")


def test_a_call_that_our_guard_held_back_arrives_as_refused():
    """No provider answers `Held`: only a client's own guard does."""
    held = CallFailed(kind=FailureKind.HELD, message="why")
    assert to_failure(to_error(held)) == CallFailed(kind=FailureKind.REFUSED, message="why")
