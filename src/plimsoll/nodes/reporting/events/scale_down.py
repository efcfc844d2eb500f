"""Events about scale-down: on the status ConfigMap, on nodes, and on evicted pods. Pure.

Reasons and messages are Cluster Autoscaler's (docs/design/nodes.md 11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.results import RemovalResult
from plimsoll.nodes.model.taints import BEING_DELETED
from plimsoll.nodes.reporting.events.messages import (
    NORMAL,
    WARNING,
    EventMessage,
    build_node_reference,
    build_placed_pod_reference,
    build_pod_reference,
    build_status_map_reference,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.results import FinishedRemoval
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval

SCALE_DOWN: Final = "ScaleDown"
DELETION_HELD_BACK: Final = "DeletionHeldBack"
SCALE_DOWN_FAILED: Final = "ScaleDownFailed"
CLEANUP: Final = "ClusterAutoscalerCleanup"
_NAMED_PODS: Final = 50


def build_scale_down_events(loop: LoopResult) -> Iterator[EventMessage]:
    yield from _build_cleanup_events(loop)
    for removal in loop.scale_down.started:
        yield from _build_started_events(removal, loop)
    for ended in loop.scale_down.finished:
        yield from _build_finished_events(ended, loop)
    yield from _build_deleted_group_events(loop)
    yield from _build_held_back_events(loop)


def _build_held_back_events(loop: LoopResult) -> Iterator[EventMessage]:
    """On the node if there is one, else on the status ConfigMap."""
    status = build_status_map_reference(loop.policy)
    if loop.hold is not None:
        message = f"nothing is scaled down: {loop.hold}"
        yield EventMessage(about=status, type=WARNING, reason=loop.hold.code, message=message)
    for held in loop.held_deletions:
        name = held.reason.facts.get("node", "")
        about = build_node_reference(name, loop.snapshot) if name else status
        what = f"instance {held.instance or held.node} of group {held.group}" if held.node else f"group {held.group}"
        message = f"{what} is kept: {held.reason}"
        yield EventMessage(about=about, type=WARNING, reason=DELETION_HELD_BACK, message=message)


def _build_cleanup_events(loop: LoopResult) -> Iterator[EventMessage]:
    for cleaned in loop.cleaned:
        about = build_node_reference(cleaned.node, loop.snapshot)
        if cleaned.failure is None:
            yield EventMessage(
                about=about, reason=CLEANUP, message=f"removed {BEING_DELETED} taint from node {cleaned.node}"
            )
        else:
            message = f"failed to clean {BEING_DELETED} on node {cleaned.node}: {cleaned.failure}"
            yield EventMessage(about=about, type=WARNING, reason=CLEANUP, message=message)


def _build_started_events(removal: NodeRemoval, loop: LoopResult) -> Iterator[EventMessage]:
    status = build_status_map_reference(loop.policy)
    if removal.is_empty:
        message = f'Scale-down: removing empty node "{removal.node}"'
        yield EventMessage(about=status, reason="ScaleDownEmpty", message=message)
    else:
        yield EventMessage(about=status, reason=SCALE_DOWN, message=_format_drain_message(removal))
    node = build_node_reference(removal.node, loop.snapshot)
    yield EventMessage(about=node, reason=SCALE_DOWN, message="marked the node as toBeDeleted/unschedulable")
    for move in removal.moves:
        pod = build_placed_pod_reference(move.pod, removal.node, loop.snapshot)
        yield EventMessage(about=pod, reason=SCALE_DOWN, message="deleting pod for node scale down")


def _format_drain_message(removal: NodeRemoval) -> str:
    pods = ",".join(move.pod.name for move in removal.moves[:_NAMED_PODS])
    utilization = removal.reason.facts.get("utilization", 0.0)
    return f"Scale-down: removing node {removal.node}, utilization: {utilization:.4g}, pods to reschedule: {pods}"


def _build_finished_events(ended: FinishedRemoval, loop: LoopResult) -> Iterator[EventMessage]:
    node = build_node_reference(ended.removal.node, loop.snapshot)
    for evicted in ended.pods:
        if evicted.failure is not None:
            message = f"failed to delete pod for ScaleDown: {evicted.failure}"
            yield EventMessage(
                about=build_pod_reference(evicted.pod), type=WARNING, reason=SCALE_DOWN_FAILED, message=message
            )
    why = ended.reason or "no reason was given"
    match ended.result:
        case RemovalResult.REMOVED:
            yield EventMessage(about=node, reason=SCALE_DOWN, message="node removed by cluster autoscaler")
        case RemovalResult.FAILED:
            what = "delete empty node" if ended.removal.is_empty else "drain and delete node"
            yield EventMessage(about=node, type=WARNING, reason=SCALE_DOWN_FAILED, message=f"failed to {what}: {why}")
        case RemovalResult.OVERTAKEN:
            message = f"removal of the node was called off: {why}"
            yield EventMessage(about=node, type=NORMAL, reason=SCALE_DOWN_FAILED, message=message)


def _build_deleted_group_events(loop: LoopResult) -> Iterator[EventMessage]:
    status = build_status_map_reference(loop.policy)
    for deleted in loop.deleted_groups:
        if deleted.failure is None:
            message = f"NodeAutoprovisioning: removed node group {deleted.group}"
            yield EventMessage(about=status, reason="DeletedNodeGroup", message=message)
        else:
            message = (
                f"NodeAutoprovisioning: attempt to delete node group {deleted.group} failed: {deleted.failure.message}"
            )
            yield EventMessage(about=status, type=WARNING, reason="FailedToDeleteNodeGroup", message=message)
