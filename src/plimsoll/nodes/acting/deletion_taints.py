"""The mark of a node that is being removed: `ToBeDeletedByClusterAutoscaler=<unix seconds>:NoSchedule`, and its cordon.

Both are written by one patch, and taken off by one. A node that was cordoned already gets an annotation that says so:
after a crash nobody else would know that its cordon is not ours to take off. Without the annotation a cordon goes with
the taint, as Cluster Autoscaler does it, so that nodes which that one left behind come back to use.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.planning.limits import BEING_DELETED
from plimsoll.objects.nodes import Node, Taint

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.nodes.acting.node_writes import NodeGone, NodeWriter

NO_SCHEDULE: Final = "NoSchedule"
WAS_CORDONED: Final = "plimsoll.io/was-cordoned"
_LONGEST: Final = 10
"""Digits of a time: until the year 2286."""


def is_marked(node: Node) -> bool:
    return any(taint.key == BEING_DELETED for taint in node.spec.taints)


def unix_text(moment: datetime) -> str:
    return str(int(moment.timestamp()))


def taint_time(node: Node, key: str) -> datetime | None:
    """What a taint of ours says; None where there is none, or one that somebody else wrote."""
    text = next((taint.value for taint in node.spec.taints if taint.key == key), "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST):
        return None
    return datetime.fromtimestamp(int(text), UTC)


async def mark(writer: NodeWriter, node: Node, *, at: datetime, cordon: bool) -> Node | NodeGone | Reason:
    """Taint the node, and cordon it if wanted."""
    taint = Taint(key=BEING_DELETED, value=unix_text(at), effect=NO_SCHEDULE)

    def change(now: Node) -> dict[str, Any] | None:
        if taint in now.spec.taints and (now.spec.unschedulable or not cordon):
            return None
        body: dict[str, Any] = {"spec": {"taints": [*others(now, BEING_DELETED), taint]}}
        if cordon and not now.spec.unschedulable:
            body["spec"]["unschedulable"] = True
        elif cordon and not is_marked(now):
            body["metadata"] = {"annotations": {WAS_CORDONED: "true"}}
        return body

    return await writer.change(node, change)


async def unmark(writer: NodeWriter, node: Node, *, uncordon: bool) -> Node | NodeGone | Reason:
    """Take the taint off, and the cordon that came with it."""

    def change(now: Node) -> dict[str, Any] | None:
        was_cordoned = WAS_CORDONED in now.metadata.annotations
        lifts = uncordon and now.spec.unschedulable and not was_cordoned
        if not (is_marked(now) or was_cordoned or lifts):
            return None
        body: dict[str, Any] = {"spec": {"taints": others(now, BEING_DELETED)}}
        if lifts:
            body["spec"]["unschedulable"] = None
        if was_cordoned:
            body["metadata"] = {"annotations": {WAS_CORDONED: None}}
        return body

    return await writer.change(node, change)


def others(node: Node, key: str) -> list[Taint]:
    """Taints of everybody else, in their order."""
    return [taint for taint in node.spec.taints if taint.key != key]
