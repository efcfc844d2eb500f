"""What the map shows of a node and of a pod. Pure.

A cell is a row of plain values. An object with odd fields has a cell too: what cannot be read is shown as nothing.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import CPU, LARGEST_AMOUNT, MEMORY, ResourceVector
from plimsoll.nodes.model.node_labels import NODE_GROUP_KEYS
from plimsoll.nodes.model.taints import BEING_DELETED, DELETION_CANDIDATE, REMOVAL_TAINTS
from plimsoll.objects.api.nodes import is_node_ready
from plimsoll.objects.owners import find_controller
from plimsoll.scheduling.pod_requests import compute_pod_demand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

NODE_COLUMNS: Final = ("name", "group", "zone", "type", "cpu", "memory", "pods", "state")
SHARED_NODE_COLUMNS: Final = ("group", "zone", "type")
POD_COLUMNS: Final = ("name", "namespace", "owner", "node", "cpu", "memory", "phase")
SHARED_POD_COLUMNS: Final = ("namespace", "owner", "node")
_MIB: Final = 1 << 20
_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_TYPES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_GROUPS: Final = tuple(sorted(NODE_GROUP_KEYS))
_LONGEST_NAME: Final = 253
_STARTING_S: Final = 600.0
"""A node that is not ready so long after its creation has failed."""
ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})


class NodeState(IntEnum):
    """The state of a node, by which its edge is drawn."""

    READY = 0
    STARTING = 1
    CORDONED = 2
    UNNEEDED = 3
    DRAINING = 4
    FAILED = 5
    UNREADABLE = 6


class PodPhase(IntEnum):
    """The phase of a pod, as far as it changes its picture."""

    RUNNING = 0
    PENDING = 1
    STARTING = 2
    ENDING = 3


def build_node_cell(node: Node) -> tuple[object, ...]:
    """The row of a node."""
    labels = node.metadata.labels
    room = _read_amounts(node.status.allocatable or node.status.capacity)
    return (
        node.metadata.name,
        _find_label(labels, _GROUPS),
        _find_label(labels, _ZONES),
        _find_label(labels, _TYPES),
        _limit(room[CPU]),
        _limit(room[MEMORY]) // _MIB,
        _limit(room["pods"]),
        int(find_node_state(node)),
    )


def build_unreadable_node_cell(name: str) -> tuple[object, ...]:
    """The row of a node that exists and cannot be decoded."""
    return (name, "", "", "", 0, 0, 0, int(NodeState.UNREADABLE))


def find_node_state(node: Node) -> NodeState:
    """What happens to a node. A removal counts more than its readiness: a node that is drained is ready for long."""
    taints = {taint.key for taint in node.spec.taints}
    if BEING_DELETED in taints or taints & (REMOVAL_TAINTS - {"node.kubernetes.io/unschedulable"}):
        return NodeState.DRAINING
    if not is_node_ready(node):
        return NodeState.FAILED if _has_been_ready(node) else NodeState.STARTING
    if DELETION_CANDIDATE in taints:
        return NodeState.UNNEEDED
    return NodeState.CORDONED if node.spec.unschedulable else NodeState.READY


def build_pod_cell(pod: Pod) -> tuple[object, ...]:
    """The row of a pod that has not ended."""
    try:
        demand = compute_pod_demand(pod)
    except InvalidQuantity:
        demand = ResourceVector()
    controller = find_controller(pod.metadata)
    owner = "" if controller is None else f"{controller.kind}/{pod.metadata.namespace}/{controller.name}"
    return (
        pod.metadata.name,
        pod.metadata.namespace,
        owner,
        pod.spec.node_name[:_LONGEST_NAME],
        _limit(demand[CPU]),
        _limit(demand[MEMORY]) // _MIB,
        int(_find_phase(pod)),
    )


def has_ended(pod: Pod) -> bool:
    """Whether the pod takes no room any more."""
    return pod.status.phase in ENDED_PHASES


def _find_phase(pod: Pod) -> PodPhase:
    if pod.metadata.deletion_timestamp is not None:
        return PodPhase.ENDING
    if not pod.spec.node_name:
        return PodPhase.PENDING
    return PodPhase.RUNNING if pod.status.phase == "Running" else PodPhase.STARTING


def _has_been_ready(node: Node) -> bool:
    """A node whose Ready condition changed after its creation has been ready before, as far as can be seen."""
    created = node.metadata.creation_timestamp
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    if ready is None or ready.last_transition_time is None or created is None:
        return False
    return ready.status == "Unknown" or (ready.last_transition_time - created).total_seconds() > _STARTING_S


def _read_amounts(quantities: Mapping[str, str | float]) -> ResourceVector:
    amounts, _ = ResourceVector.read_bounded(quantities, path="status.allocatable")
    return amounts


def _limit(amount: int) -> int:
    return max(0, min(amount, LARGEST_AMOUNT))


def _find_label(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if key in labels), "")
