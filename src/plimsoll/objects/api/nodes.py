"""Nodes: capacity, taints, and the conditions that the kubelet reports."""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from plimsoll.core.values import Wire
from plimsoll.objects.api.meta import ResourceList, Time, WireObject


class Taint(Wire):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class NodeSpec(Wire):
    provider_id: str = ""
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = ""
    pod_cidrs: tuple[str, ...] = ()


class NodeCondition(Wire):
    type: str = ""
    status: str = ""
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(Wire):
    type: str = ""
    address: str = ""


class NodeSystemInfo(Wire):
    architecture: str = ""
    operating_system: str = ""
    os_image: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    container_runtime_version: str = ""
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""


class AttachedVolume(Wire):
    name: str = ""
    device_path: str = ""


class NodeStatus(Wire):
    """Images are left out: a node lists up to fifty, and no rule here uses them."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    phase: str = ""


class Node(WireObject):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def is_node_ready(node: Node) -> bool:
    """Whether the Ready condition is True. A node without the condition is not ready."""
    return _find_ready_status(node) == "True"


def is_node_ready_or_unreported(node: Node) -> bool:
    """Like `is_node_ready`, but a node without the condition counts as ready: no kubelet has reported yet."""
    return _find_ready_status(node) in {"True", None}


def _find_ready_status(node: Node) -> str | None:
    return next((condition.status for condition in node.status.conditions if condition.type == "Ready"), None)
