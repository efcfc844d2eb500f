"""What a turn tells of removals: to the status ConfigMap, to nodes, and to pods that are moved. Pure.

Reasons and words are those of Cluster Autoscaler (specs/nodes.md 11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.limits import BEING_DELETED
from plimsoll.nodes.telling.told import NORMAL, WARNING, Told, about_node, about_placed, about_pod, status_map
from plimsoll.nodes.turns import RemovalResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.planning.departures import Removal
    from plimsoll.nodes.turns import Ended, Turn

SCALE_DOWN: Final = "ScaleDown"
SCALE_DOWN_FAILED: Final = "ScaleDownFailed"
CLEANUP: Final = "ClusterAutoscalerCleanup"
_NAMED_PODS: Final = 50


def scale_down_events(turn: Turn) -> Iterator[Told]:
    yield from _cleaned(turn)
    for removal in turn.scale_down.begun:
        yield from _begun(removal, turn)
    for ended in turn.scale_down.ended:
        yield from _ended(ended, turn)
    yield from _groups(turn)


def _cleaned(turn: Turn) -> Iterator[Told]:
    for one in turn.cleaned:
        about = about_node(one.node, turn.snapshot)
        if one.failure is None:
            yield Told(about=about, reason=CLEANUP, message=f"removed {BEING_DELETED} taint from node {one.node}")
        else:
            message = f"failed to clean {BEING_DELETED} on node {one.node}: {one.failure}"
            yield Told(about=about, type=WARNING, reason=CLEANUP, message=message)


def _begun(removal: Removal, turn: Turn) -> Iterator[Told]:
    status = status_map(turn.policy)
    if removal.is_empty:
        message = f'Scale-down: removing empty node "{removal.node}"'
        yield Told(about=status, reason="ScaleDownEmpty", message=message)
    else:
        yield Told(about=status, reason=SCALE_DOWN, message=_drain_message(removal))
    node = about_node(removal.node, turn.snapshot)
    yield Told(about=node, reason=SCALE_DOWN, message="marked the node as toBeDeleted/unschedulable")
    for move in removal.moves:
        pod = about_placed(move.pod, removal.node, turn.snapshot)
        yield Told(about=pod, reason=SCALE_DOWN, message="deleting pod for node scale down")


def _drain_message(removal: Removal) -> str:
    pods = ",".join(move.pod.name for move in removal.moves[:_NAMED_PODS])
    utilization = removal.reason.facts.get("utilization", 0.0)
    return f"Scale-down: removing node {removal.node}, utilization: {utilization:.4g}, pods to reschedule: {pods}"


def _ended(ended: Ended, turn: Turn) -> Iterator[Told]:
    node = about_node(ended.removal.node, turn.snapshot)
    for one in ended.pods:
        if one.failure is not None:
            message = f"failed to delete pod for ScaleDown: {one.failure}"
            yield Told(about=about_pod(one.pod), type=WARNING, reason=SCALE_DOWN_FAILED, message=message)
    why = ended.reason or "no reason was given"
    match ended.result:
        case RemovalResult.REMOVED:
            yield Told(about=node, reason=SCALE_DOWN, message="node removed by cluster autoscaler")
        case RemovalResult.FAILED:
            what = "delete empty node" if ended.removal.is_empty else "drain and delete node"
            yield Told(about=node, type=WARNING, reason=SCALE_DOWN_FAILED, message=f"failed to {what}: {why}")
        case RemovalResult.OVERTAKEN:
            message = f"removal of the node was called off: {why}"
            yield Told(about=node, type=NORMAL, reason=SCALE_DOWN_FAILED, message=message)


def _groups(turn: Turn) -> Iterator[Told]:
    status = status_map(turn.policy)
    for one in turn.groups_gone:
        if one.failure is None:
            message = f"NodeAutoprovisioning: removed node group {one.group}"
            yield Told(about=status, reason="DeletedNodeGroup", message=message)
        else:
            message = f"NodeAutoprovisioning: attempt to delete node group {one.group} failed: {one.failure.message}"
            yield Told(about=status, type=WARNING, reason="FailedToDeleteNodeGroup", message=message)
