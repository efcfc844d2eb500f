"""Loop results built by hand, for tests of reports: scale-up, pods with and without a place, removals."""

from dataclasses import replace
from typing import Any

from plimsoll.core.plans import Reason
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind
from plimsoll.nodes.model.results import FilteredPod, FinishedRemoval, RemovalResult, ScaleUpPart, ScaleUpResult
from plimsoll.nodes.model.scale_down_plan import NodeRemoval, NodesToDelete, PodMove, UnneededNode, UnremovableNode
from plimsoll.nodes.model.scale_up_plan import (
    GroupProfile,
    GroupScaleUp,
    NodePattern,
    Result,
    ScaleUpOption,
    ScaleUpPlan,
    UnschedulablePods,
)
from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
from plimsoll.nodes.reporting.events.emitter import build_events
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.nodes import Node, NodeStatus
from plimsoll.objects.api.pods import Pod, PodSpec
from plimsoll.scheduling import ClusterView
from plimsoll.scheduling.cluster_view import PodKey
from tests.nodes.planning.builders import NOON, policy

SIZE = ResourceVector({"cpu": 4000, "memory": 16 << 30, "pods": 110})
STOCKOUT = CallFailed(kind=FailureKind.OUT_OF_RESOURCES, message="no more machines of this type")


def pod(name: str, *, owner: str = "", **annotations: str) -> Pod:
    """`owner` is the ReplicaSet it belongs to."""
    controller = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name=owner, uid=f"uid-of-{owner}", controller=True
    )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-of-{name}",
            owner_references=(controller,) if owner else (),
            annotations=annotations,
        )
    )


def placed(name: str, node_name: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-of-{name}"), spec=PodSpec(node_name=node_name)
    )


def waiting(name: str, *, owner: str = "") -> PendingPods:
    """One pod, as the loop makes entries."""
    return PendingPods(key=f"default/{name}", pod=pod(name, owner=owner), count=1, names=(name,))


def replicas(owner: str, count: int) -> tuple[PendingPods, ...]:
    return tuple(waiting(f"{owner}-{number}", owner=owner) for number in range(count))


def node(name: str, **capacity: str) -> Node:
    resources = capacity or {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-of-{name}"),
        status=NodeStatus(capacity=dict(resources), allocatable=dict(resources)),
    )


def option(group: str, *, size: int = 0, most: int = 10, exists: bool = True, **more: Any) -> ScaleUpOption:
    return ScaleUpOption(
        **{
            "group": group,
            "node": node(f"{group}-template"),
            "daemons": (),
            "free": SIZE,
            "capacity": SIZE,
            "price_per_hour": 0.2,
            "planning_price": 0.2,
            "size": size,
            "max_size": most,
            "room": most - size,
            "machine_type": "n1-standard-4",
            "exists": exists,
            "profile": None if exists else GroupProfile(),
            **more,
        }
    )


def scale_up(of: ScaleUpOption, *entries: PendingPods, nodes: int = 1) -> GroupScaleUp:
    """The entries together on each of the new nodes."""
    pods = {pending.key: pending.count for pending in entries}
    return GroupScaleUp(
        option=of,
        before=of.size,
        after=of.size + nodes,
        patterns=(NodePattern(nodes=nodes, pods=pods),),
        reason=Reason(code="ScaleUp", message=f"{nodes} nodes for {len(entries)} pods"),
    )


def scale_up_result(one: GroupScaleUp, **more: Any) -> ScaleUpResult:
    given: dict[str, Any] = {
        "group": one.option.group,
        "before": one.before,
        "after": one.after,
        "created": not one.option.exists,
    }
    return ScaleUpResult(scale_up=one, **(given | more))


def planned(*growths: GroupScaleUp, remaining: tuple[UnschedulablePods, ...] = (), **more: Any) -> ScaleUpPlan:
    result = Result.NEEDED if growths else Result.NO_OPTIONS if remaining else Result.NOT_NEEDED
    helped = sum(pattern.nodes * sum(pattern.pods.values()) for scale_up in growths for pattern in scale_up.patterns)
    return ScaleUpPlan(result=result, scale_ups=growths, scheduled=helped, unschedulable=remaining, **more)


def unschedulable(*entries: PendingPods, reasons: tuple[Reason, ...]) -> UnschedulablePods:
    keys = {pending.key: pending.count for pending in entries}
    return UnschedulablePods(pods=sum(keys.values()), keys=keys, reasons=reasons)


def group_reason(code: str, reported: str, *groups: str) -> Reason:
    """As the planner says it of groups."""
    counts = dict.fromkeys(reported.split(", "), len(groups))
    return Reason(
        code=code, message=f"{reported} ({', '.join(groups)})", facts={"groups": len(groups), "counts": counts}
    )


def loop_result(
    *pending: PendingPods, nodes: tuple[Node, ...] = (), pods: tuple[Pod, ...] = (), options: Any = None, **parts: Any
) -> LoopResult:
    snapshot = Snapshot(number=7, at=NOON, view=ClusterView.from_objects(nodes, pods), pending=pending)
    return LoopResult(**{"number": 7, "at": NOON, "policy": policy(**(options or {})), "snapshot": snapshot, **parts})


def scaled_up_loop(*growths: GroupScaleUp, pending: tuple[PendingPods, ...] = (), **more: Any) -> LoopResult:
    """A turn in which all of it was done."""
    part = ScaleUpPart(plan=planned(*growths), results=tuple(scale_up_result(scale_up) for scale_up in growths))
    return loop_result(*pending, scale_up=part, **more)


def unschedulable_loop(*entries: PendingPods, reasons: tuple[Reason, ...], **more: Any) -> LoopResult:
    """A turn that can do nothing for them."""
    return loop_result(
        *entries, scale_up=ScaleUpPart(plan=planned(remaining=(unschedulable(*entries, reasons=reasons),))), **more
    )


def removal(name: str, *moved: str, group: str = "g", **more: Any) -> NodeRemoval:
    moves = tuple(PodMove(pod=PodKey("default", pod), source=name, target="elsewhere") for pod in moved)
    reason = Reason(code="Underutilized" if moved else "Empty", message="not needed", facts={"utilization": 0.25})
    return NodeRemoval(
        **{"node": name, "group": group, "is_empty": not moved, "moves": moves, "reason": reason, **more}
    )


def unneeded(name: str, group: str = "g") -> UnneededNode:
    return UnneededNode(node=name, group=group, is_empty=True, utilization=0.0, is_ready=True, pods=0)


def ended(one: NodeRemoval, result: RemovalResult = RemovalResult.REMOVED, **more: Any) -> FinishedRemoval:
    return FinishedRemoval(removal=one, result=result, **more)


def unremovable(name: str, code: str, message: str = "so it is", **more: Any) -> UnremovableNode:
    return UnremovableNode(node=name, reason=Reason(code=code, message=message, **more))


def scale_down(*removals: NodeRemoval, **more: Any) -> ScaleDownPart:
    return ScaleDownPart(nodes_to_delete=NodesToDelete(removals=removals), **more)


def filtered_pod(name: str, code: str, *, message: str = "not now", **annotations: str) -> FilteredPod:
    return FilteredPod(pod=pod(name, **annotations), reason=Reason(code=code, message=message))


def event_messages(one: LoopResult, reason: str) -> list[str]:
    """The messages of all Events with a reason."""
    return [event.message for event in build_events(one) if event.reason == reason]


def event_objects(one: LoopResult, reason: str) -> list[str]:
    return [f"{event.about.kind}/{event.about.name}" for event in build_events(one) if event.reason == reason]


def later(one: LoopResult, **changes: Any) -> LoopResult:
    return replace(one, **changes)
