"""Converts between our values and messages of the protocol. Pure; both ends use it.

Missing fields are read as the protocol defines: an instance without a state is unspecified, an error without a
code is none, options that a server does not know keep the caller's defaults.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from google.protobuf.duration_pb2 import Duration

from plimsoll.core.resources import ResourceVector
from plimsoll.core.value_parsing import LONGEST_S
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.model.snapshot import CapacityType, MachineType
from plimsoll.nodes.providers.externalgrpc.generated import extension_pb2 as ext
from plimsoll.nodes.providers.externalgrpc.generated import externalgrpc_pb2 as base
from plimsoll.nodes.providers.values import Blueprint, GroupOptions, Instance, InstanceError, NodeRef, Span
from plimsoll.objects.api.nodes import Taint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.providers.ports import Group

_STATES = frozenset(InstanceState)
_NANOS = 10**9
# Options, and the names they have in the message; those of the first kind are numbers and switches, the others times.
_PLAIN = {
    "utilization_threshold": "scaleDownUtilizationThreshold",
    "gpu_utilization_threshold": "scaleDownGpuUtilizationThreshold",
    "zero_or_max": "zeroOrMaxNodeScaling",
    "ignore_daemon_sets": "ignoreDaemonSetsUtilization",
    "allow_partial_scale_up": "allowNonAtomicScaleUpToMax",
}
_TIMES = {
    "unneeded_s": "scaleDownUnneededDuration",
    "unready_s": "scaleDownUnreadyDuration",
    "provision_s": "MaxNodeProvisionDuration",
    "startup_s": "maxNodeStartupDuration",
}


# ---- nodes and instances


def to_node_message(node: NodeRef) -> Any:
    return base.ExternalGrpcNode(
        providerID=node.provider_id, name=node.name, labels=node.labels, annotations=node.annotations
    )


def from_node_message(message: Any) -> NodeRef:
    return NodeRef(
        provider_id=message.providerID,
        name=message.name,
        labels=dict(message.labels),
        annotations=dict(message.annotations),
    )


def to_instance_message(instance: Instance) -> Any:
    status = base.InstanceStatus(instanceState=base.InstanceStatus.InstanceState.Name(instance.state.value))
    error = instance.error
    if error is not None:
        status.errorInfo.errorCode = error.code
        status.errorInfo.errorMessage = error.message
        status.errorInfo.instanceErrorClass = error.error_class.value
    return base.Instance(id=instance.id, status=status)


def from_instance_message(message: Any) -> Instance:
    """An unknown state or error class becomes the unspecified one."""
    status = message.status
    error_info = status.errorInfo
    error = None
    if error_info.errorCode:
        out = error_info.instanceErrorClass == ErrorClass.OUT_OF_RESOURCES
        error_class = ErrorClass.OUT_OF_RESOURCES if out else ErrorClass.OTHER
        error = InstanceError(error_class=error_class, code=error_info.errorCode, message=error_info.errorMessage)
    known = status.instanceState in _STATES
    return Instance(
        id=message.id,
        state=InstanceState(status.instanceState) if known else InstanceState.UNSPECIFIED,
        error=error,
    )


# ---- groups


def to_group_message(group: Group) -> Any:
    return base.NodeGroup(id=group.id, minSize=group.min_size, maxSize=group.max_size, debug=group.debug)


def to_options_message(options: GroupOptions) -> Any:
    message = base.NodeGroupAutoscalingOptions(**{name: getattr(options, field) for field, name in _PLAIN.items()})
    for field, name in _TIMES.items():
        getattr(message, name).CopyFrom(_to_duration(getattr(options, field)))
    return message


def from_options_message(message: Any, defaults: GroupOptions) -> GroupOptions:
    plain = {field: getattr(message, name) for field, name in _PLAIN.items()}
    times: dict[str, Any] = {
        field: _from_duration(getattr(message, name)) if message.HasField(name) else getattr(defaults, field)
        for field, name in _TIMES.items()
    }
    return GroupOptions(**plain, **times)


def _to_duration(seconds: float) -> Duration:
    found = Duration()
    found.FromTimedelta(timedelta(seconds=seconds))
    return found


def _from_duration(message: Any) -> float:
    """A duration of another process: at least 0, at most the longest that flags accept."""
    return min(max(float((message.seconds * _NANOS + message.nanos) / _NANOS), 0.0), LONGEST_S)


def set_span(request: Any, span: Span) -> None:
    """Write the period into a request for a price."""
    request.startTimestamp.FromDatetime(span.start)
    request.endTimestamp.FromDatetime(span.end)


def from_span_message(request: Any) -> Span:
    start, end = request.startTimestamp, request.endTimestamp
    return Span(start=start.ToDatetime(tzinfo=UTC), end=end.ToDatetime(tzinfo=UTC))


# ---- machine types and blueprints


def to_machine_type_message(kind: MachineType) -> Any:
    return ext.MachineType(
        name=kind.name,
        capacity=kind.capacity.to_json(),
        allocatable=kind.allocatable.to_json(),
        pricePerHour=kind.price_per_hour,
        zones=kind.zones,
        labels=dict(kind.labels),
        taints=_to_taint_messages(kind.taints),
        architecture=kind.architecture,
        capacityType=kind.capacity_type.value,
    )


def from_machine_type_message(message: Any) -> MachineType:
    """Raises `InvalidInput` for amounts that are not quantities."""
    is_spot = message.capacityType == CapacityType.SPOT
    return MachineType(
        name=message.name,
        capacity=ResourceVector.from_quantities(dict(message.capacity)),
        allocatable=ResourceVector.from_quantities(dict(message.allocatable or message.capacity)),
        price_per_hour=message.pricePerHour if message.HasField("pricePerHour") else None,
        zones=tuple(message.zones),
        labels=dict(message.labels),
        taints=_from_taint_messages(message.taints),
        architecture=message.architecture or "amd64",
        capacity_type=CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND,
    )


def to_naming_message(naming: Naming) -> Any:
    return ext.Naming(underscores=naming.underscores, longest=naming.longest)


def from_naming_message(message: Any) -> Naming:
    return Naming(underscores=message.underscores, longest=message.longest or Naming().longest)


def to_blueprint_message(blueprint: Blueprint) -> Any:
    return ext.Blueprint(
        id=blueprint.id,
        machineType=blueprint.machine_type,
        maxSize=blueprint.max_size,
        labels=blueprint.labels,
        systemLabels=blueprint.system_labels,
        taints=_to_taint_messages(blueprint.taints),
        zones=blueprint.zones,
        extraResources=blueprint.extra_resources,
    )


def from_blueprint_message(message: Any) -> Blueprint:
    return Blueprint(
        id=message.id,
        machine_type=message.machineType,
        max_size=message.maxSize,
        labels=dict(message.labels),
        system_labels=dict(message.systemLabels),
        taints=_from_taint_messages(message.taints),
        zones=tuple(message.zones),
        extra_resources=dict(message.extraResources),
    )


def _to_taint_messages(taints: Iterable[Taint]) -> list[Any]:
    return [ext.Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in taints]


def _from_taint_messages(messages: Iterable[Any]) -> tuple[Taint, ...]:
    return tuple(Taint(key=message.key, value=message.value, effect=message.effect) for message in messages)
