"""The status that a node's kubelet writes at a given moment. Pure.

Everything follows from the Node object and the time, so another kubelet that takes a node over writes the same. What
others wrote (capacity, a machine's own nodeInfo, further conditions) stays.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.local.kubelet.settings import SILENT, KubeletSettings, read_boot_s
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.objects.api.nodes import Node, NodeCondition


class _Condition(NamedTuple):
    """A condition that a healthy kubelet reports."""

    type: str
    status: str
    reason: str
    message: str


# In the kubelet's order (kubernetes pkg/kubelet/nodestatus).
_CONDITIONS: Final = (
    _Condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    _Condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    _Condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    _Condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_OS_IMAGE: Final = "Debian GNU/Linux 12 (bookworm)"
_KERNEL: Final = "6.1.0-37-cloud"
_RUNTIME: Final = "containerd://2.1.4"


class Up(Value, frozen=True):
    """The kubelet runs."""


class Silent(Value, frozen=True):
    """The node is cut off: it does not report, and nothing happens on it."""


class Booting(Value, frozen=True):
    """The machine comes up; its kubelet runs from `until` on."""

    until: datetime


class NodeStatusUpdate(Value, frozen=True):
    """Write this into the node's status."""

    status: dict[str, Any]
    became_ready: bool


class NodeUnchanged(Value, frozen=True):
    """Nothing to write before `until`; None: before a change."""

    until: datetime | None = None


def determine_node_state(node: Node, now: datetime, settings: KubeletSettings) -> Up | Silent | Booting:
    """Whether the node's kubelet runs."""
    if node.metadata.annotations.get(SILENT) == "true":
        return Silent()
    if node.metadata.creation_timestamp is None:
        return Up()
    until = add_seconds(node.metadata.creation_timestamp, read_boot_s(node, settings))
    return Booting(until=until) if now < until else Up()


def compute_node_status(
    node: Node, now: datetime, *, address: str, settings: KubeletSettings, repeats: bool
) -> NodeStatusUpdate | NodeUnchanged:
    """What is to be written about a node that is up. `repeats`: also every few minutes though nothing changed."""
    known = {condition.type: condition for condition in node.status.conditions}
    due = _compute_due(known.get("Ready"), node.metadata.name, settings.report_s) if repeats else None
    conditions = [_build_condition(healthy, known.get(healthy.type), now) for healthy in _CONDITIONS]
    changed: dict[str, Any] = {}
    if any(_differs(condition, known.get(condition["type"])) for condition in conditions) or (
        due is not None and due <= now
    ):
        changed["conditions"] = conditions
    addresses = {node_address.type: node_address.address for node_address in node.status.addresses}
    wanted = {"InternalIP": addresses.get("InternalIP") or address, "Hostname": node.metadata.name}
    if missing := [{"type": type_, "address": ip} for type_, ip in wanted.items() if ip and type_ not in addresses]:
        changed["addresses"] = [
            *({"type": node_address.type, "address": node_address.address} for node_address in node.status.addresses),
            *missing,
        ]
    if info := _find_missing_info(node, settings):
        changed["nodeInfo"] = info
    if not changed:
        return NodeUnchanged(until=due)
    ready = known.get("Ready")
    return NodeStatusUpdate(status=changed, became_ready=ready is None or ready.status != "True")


def find_internal_ip(node: Node) -> str:
    return next(
        (node_address.address for node_address in node.status.addresses if node_address.type == "InternalIP"), ""
    )


def _build_condition(healthy: _Condition, before: NodeCondition | None, now: datetime) -> dict[str, Any]:
    moved = before is None or before.status != healthy.status or before.last_transition_time is None
    since = now if moved or before is None or before.last_transition_time is None else before.last_transition_time
    return {
        "type": healthy.type,
        "status": healthy.status,
        "lastHeartbeatTime": format_time(now),
        "lastTransitionTime": format_time(since),
        "reason": healthy.reason,
        "message": healthy.message,
    }


def _differs(wanted: dict[str, Any], before: NodeCondition | None) -> bool:
    return before is None or (before.status, before.reason) != (wanted["status"], wanted["reason"])


def _compute_due(ready: NodeCondition | None, name: str, report_s: float) -> datetime | None:
    """When the next report is due. Nodes that came up together part ways with their second report."""
    if ready is None or ready.last_heartbeat_time is None:
        return None
    is_first = ready.last_heartbeat_time == ready.last_transition_time
    chance = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") / 2**32
    share = 0.1 + 0.9 * chance if is_first else 1.0
    return add_seconds(ready.last_heartbeat_time, report_s * share)


def _find_missing_info(node: Node, settings: KubeletSettings) -> dict[str, str]:
    """The missing fields of nodeInfo; ids follow from the node's uid."""
    labels, info, uid = node.metadata.labels, node.status.node_info, node.metadata.uid
    arch = labels.get("kubernetes.io/arch", "amd64")
    digest = hashlib.sha256(uid.encode()).hexdigest()
    wanted = {
        "machineID": (info.machine_id, digest[:32]),
        "systemUUID": (info.system_uuid, uid),
        "bootID": (info.boot_id, uid),
        "kernelVersion": (info.kernel_version, f"{_KERNEL}-{arch}"),
        "osImage": (info.os_image, _OS_IMAGE),
        "containerRuntimeVersion": (info.container_runtime_version, _RUNTIME),
        "kubeletVersion": (info.kubelet_version, settings.kubelet_version),
        "operatingSystem": (info.operating_system, labels.get("kubernetes.io/os", "linux")),
        "architecture": (info.architecture, arch),
    }
    return {field: value for field, (has, value) in wanted.items() if not has}
