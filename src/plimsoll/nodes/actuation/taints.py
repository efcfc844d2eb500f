"""The mark of a node that is being removed: `ToBeDeletedByClusterAutoscaler=<unix seconds>:NoSchedule`, and its cordon.

Both are written by one patch, and taken off by one. A node that was cordoned already gets an annotation that says so:
after a crash nobody else would know that its cordon is not ours to take off. Without the annotation a cordon goes with
the taint, as Cluster Autoscaler does it, so that nodes which that one left behind come back to use.

The mark of a node that is not needed: `DeletionCandidateOfClusterAutoscaler=<unix seconds>:PreferNoSchedule`.

It keeps new pods off nodes that will go, as far as there is room elsewhere, and it is the memory of timers: its value
is since when the node is not needed. A turn changes only so many nodes, and only for so long (`update`); the next goes
on. Nothing here decides what is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.taints import BEING_DELETED, DELETION_CANDIDATE
from plimsoll.objects.api.nodes import Node, Taint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.actuation.node_writer import NodeGone, NodeWriter
    from plimsoll.nodes.config.policy import ScaleDown


NO_SCHEDULE: Final = "NoSchedule"
WAS_CORDONED: Final = "plimsoll.io/was-cordoned"
_LONGEST: Final = 10
"""Digits of a time: until the year 2286."""


def has_deletion_taint(node: Node) -> bool:
    return any(taint.key == BEING_DELETED for taint in node.spec.taints)


def format_unix_time(moment: datetime) -> str:
    return str(int(moment.timestamp()))


def taint_time(node: Node, key: str) -> datetime | None:
    """What a taint of ours says; None where there is none, or one that somebody else wrote."""
    text = next((taint.value for taint in node.spec.taints if taint.key == key), "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST):
        return None
    return datetime.fromtimestamp(int(text), UTC)


async def add_deletion_taint(writer: NodeWriter, node: Node, *, at: datetime, cordon: bool) -> Node | NodeGone | Reason:
    """Taint the node, and cordon it if wanted."""
    taint = Taint(key=BEING_DELETED, value=format_unix_time(at), effect=NO_SCHEDULE)

    def change(now: Node) -> dict[str, Any] | None:
        if taint in now.spec.taints and (now.spec.unschedulable or not cordon):
            return None
        body: dict[str, Any] = {"spec": {"taints": [*other_taints(now, BEING_DELETED), taint]}}
        if cordon and not now.spec.unschedulable:
            body["spec"]["unschedulable"] = True
        elif cordon and not has_deletion_taint(now):
            body["metadata"] = {"annotations": {WAS_CORDONED: "true"}}
        return body

    return await writer.change(node, change)


async def remove_deletion_taint(writer: NodeWriter, node: Node, *, uncordon: bool) -> Node | NodeGone | Reason:
    """Take the taint off, and the cordon that came with it."""

    def change(now: Node) -> dict[str, Any] | None:
        was_cordoned = WAS_CORDONED in now.metadata.annotations
        lifts = uncordon and now.spec.unschedulable and not was_cordoned
        if not (has_deletion_taint(now) or was_cordoned or lifts):
            return None
        body: dict[str, Any] = {"spec": {"taints": other_taints(now, BEING_DELETED)}}
        if lifts:
            body["spec"]["unschedulable"] = None
        if was_cordoned:
            body["metadata"] = {"annotations": {WAS_CORDONED: None}}
        return body

    return await writer.change(node, change)


def other_taints(node: Node, key: str) -> list[Taint]:
    """Taints of everybody else, in their order."""
    return [taint for taint in node.spec.taints if taint.key != key]


log = structlog.get_logger(__name__)

PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


def has_soft_taint(node: Node) -> bool:
    return any(taint.key == DELETION_CANDIDATE for taint in node.spec.taints)


def restore_unneeded_since(nodes: Iterable[Node], options: ScaleDown, now: datetime) -> dict[str, datetime]:
    """Since when nodes are not needed, as a process before this one left it. Nothing unless such marks may be kept."""
    if options.candidate_ttl_s <= 0:
        return {}
    oldest = now - timedelta(seconds=options.candidate_ttl_s)
    told = {node.metadata.name: taint_time(node, DELETION_CANDIDATE) for node in nodes}
    return {name: min(since, now) for name, since in told.items() if since is not None and since >= oldest}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftTaintChanges:
    """What one turn changed. `left` are nodes that wait for the next turn: for room in it, or after a failure."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class SoftTaints:
    """Keeps the marks in step with what is not needed."""

    def __init__(self, writer: NodeWriter, *, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def update(
        self, unneeded_since: Mapping[str, datetime], nodes: Mapping[str, Node], options: ScaleDown
    ) -> SoftTaintChanges:
        """Of `nodes`, those that are not needed carry the mark and the others do not; nodes on their way out are left.

        Marks come off first: a needed node that pods avoid costs more than an unneeded one that they do not.
        """
        staying = [node for node in nodes.values() if not has_deletion_taint(node)]
        spoiled = [node for node in staying if has_soft_taint(node) and node.metadata.name not in unneeded_since]
        bare = [node for node in staying if not has_soft_taint(node) and node.metadata.name in unneeded_since]
        until_s = self._clock.monotonic_s() + options.soft_taint_time_s
        changed: dict[bool, list[str]] = {True: [], False: []}
        left: list[str] = []
        for number, node in enumerate([*spoiled, *bare]):
            name = node.metadata.name
            since = unneeded_since.get(name)
            if number >= options.soft_taint_count or self._clock.monotonic_s() > until_s:
                left.append(name)
                continue
            written = await (self._put_on(node, since) if since is not None else self.remove(node))
            if isinstance(written, Reason):
                log.warning("soft_taint.failed", node=name, problem=written.message)
                left.append(name)
            else:
                changed[since is not None].append(name)
        return SoftTaintChanges(added=tuple(changed[True]), removed=tuple(changed[False]), left=tuple(left))

    async def _put_on(self, node: Node, since: datetime) -> Node | NodeGone | Reason:
        taint = Taint(key=DELETION_CANDIDATE, value=format_unix_time(since), effect=PREFER_NO_SCHEDULE)

        def change(now: Node) -> dict[str, Any] | None:
            if has_soft_taint(now):
                return None
            return {"spec": {"taints": [*now.spec.taints, taint]}}

        return await self._writer.change(node, change)

    async def remove(self, node: Node) -> Node | NodeGone | Reason:
        def change(now: Node) -> dict[str, Any] | None:
            return {"spec": {"taints": other_taints(now, DELETION_CANDIDATE)}} if has_soft_taint(now) else None

        return await self._writer.change(node, change)
