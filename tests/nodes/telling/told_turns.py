"""Turns built by hand, for tests of what is told of them: growth, pods with and without a place, removals."""

from dataclasses import replace
from typing import Any

from plimsoll.core.plans import Reason
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.planning.departures import Departures, Removal
from plimsoll.nodes.planning.offers import Offer, Profile
from plimsoll.nodes.planning.relocations import Move
from plimsoll.nodes.planning.removals import Kept, Unneeded
from plimsoll.nodes.planning.results import Growth, Pattern, Remaining, Result, ScaleUp
from plimsoll.nodes.planning.world import Pending, Snapshot
from plimsoll.nodes.providers.values import CallFailed, FailureKind
from plimsoll.nodes.telling.events import events_of
from plimsoll.nodes.turns import Ended, Grown, RemovalResult, ScaleDownPart, ScaleUpPart, SetAside, Turn
from plimsoll.objects.meta import ObjectMeta, OwnerReference
from plimsoll.objects.nodes import Node, NodeStatus
from plimsoll.objects.pods import Pod, PodSpec
from plimsoll.scheduling import ClusterView
from plimsoll.scheduling.view import PodKey
from tests.nodes.planning.worlds_of_offers import NOON, policy

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


def waiting(name: str, *, owner: str = "") -> Pending:
    """One pod, as the loop makes entries."""
    return Pending(key=f"default/{name}", pod=pod(name, owner=owner), count=1, names=(name,))


def replicas(owner: str, count: int) -> tuple[Pending, ...]:
    return tuple(waiting(f"{owner}-{number}", owner=owner) for number in range(count))


def node(name: str, **capacity: str) -> Node:
    resources = capacity or {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-of-{name}"),
        status=NodeStatus(capacity=dict(resources), allocatable=dict(resources)),
    )


def offer(group: str, *, size: int = 0, most: int = 10, exists: bool = True, **more: Any) -> Offer:
    return Offer(
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
            "profile": None if exists else Profile(),
            **more,
        }
    )


def growth(of: Offer, *entries: Pending, nodes: int = 1) -> Growth:
    """The entries together on each of the new nodes."""
    pods = {one.key: one.count for one in entries}
    return Growth(
        offer=of,
        before=of.size,
        after=of.size + nodes,
        patterns=(Pattern(nodes=nodes, pods=pods),),
        reason=Reason(code="ScaleUp", message=f"{nodes} nodes for {len(entries)} pods"),
    )


def grown(one: Growth, **more: Any) -> Grown:
    given = {"group": one.offer.group, "before": one.before, "after": one.after, "created": not one.offer.exists}
    return Grown(growth=one, **(given | more))


def planned(*growths: Growth, remaining: tuple[Remaining, ...] = (), **more: Any) -> ScaleUp:
    result = Result.NEEDED if growths else Result.NO_OPTIONS if remaining else Result.NOT_NEEDED
    helped = sum(pattern.nodes * sum(pattern.pods.values()) for one in growths for pattern in one.patterns)
    return ScaleUp(result=result, growths=growths, helped=helped, remaining=remaining, **more)


def left(*entries: Pending, reasons: tuple[Reason, ...]) -> Remaining:
    keys = {one.key: one.count for one in entries}
    return Remaining(pods=sum(keys.values()), keys=keys, reasons=reasons)


def group_reason(code: str, told: str, *groups: str) -> Reason:
    """As the planner says it of groups."""
    return Reason(code=code, message=f"{told} ({', '.join(groups)})", facts={"groups": len(groups)})


def turn(
    *pending: Pending, nodes: tuple[Node, ...] = (), pods: tuple[Pod, ...] = (), options: Any = None, **parts: Any
) -> Turn:
    snapshot = Snapshot(number=7, at=NOON, view=ClusterView.of(nodes, pods), pending=pending)
    return Turn(**{"number": 7, "at": NOON, "policy": policy(**(options or {})), "snapshot": snapshot, **parts})


def grew(*growths: Growth, pending: tuple[Pending, ...] = (), **more: Any) -> Turn:
    """A turn in which all of it was done."""
    part = ScaleUpPart(plan=planned(*growths), grown=tuple(grown(one) for one in growths))
    return turn(*pending, scale_up=part, **more)


def stuck(*entries: Pending, reasons: tuple[Reason, ...], **more: Any) -> Turn:
    """A turn that can do nothing for them."""
    return turn(*entries, scale_up=ScaleUpPart(plan=planned(remaining=(left(*entries, reasons=reasons),))), **more)


def removal(name: str, *moved: str, group: str = "g", **more: Any) -> Removal:
    moves = tuple(Move(pod=PodKey("default", one), source=name, target="elsewhere") for one in moved)
    reason = Reason(code="Underutilized" if moved else "Empty", message="not needed", facts={"utilization": 0.25})
    return Removal(**{"node": name, "group": group, "is_empty": not moved, "moves": moves, "reason": reason, **more})


def unneeded(name: str, group: str = "g") -> Unneeded:
    return Unneeded(node=name, group=group, is_empty=True, utilisation=0.0, is_ready=True, pods=0)


def ended(one: Removal, result: RemovalResult = RemovalResult.REMOVED, **more: Any) -> Ended:
    return Ended(removal=one, result=result, **more)


def kept(name: str, code: str, message: str = "so it is", **more: Any) -> Kept:
    return Kept(node=name, reason=Reason(code=code, message=message, **more))


def shrinking(*removals: Removal, **more: Any) -> ScaleDownPart:
    return ScaleDownPart(departures=Departures(removals=removals), **more)


def aside(name: str, code: str, *, message: str = "not now", **annotations: str) -> SetAside:
    return SetAside(pod=pod(name, **annotations), reason=Reason(code=code, message=message))


def told(one: Turn, reason: str) -> list[str]:
    """The messages of all Events with a reason."""
    return [event.message for event in events_of(one) if event.reason == reason]


def whom(one: Turn, reason: str) -> list[str]:
    return [f"{event.about.kind}/{event.about.name}" for event in events_of(one) if event.reason == reason]


def later(one: Turn, **changes: Any) -> Turn:
    return replace(one, **changes)
