"""The taints that the autoscaler puts on nodes.

`ToBeDeletedByClusterAutoscaler=<unix seconds>:NoSchedule` is on nodes being removed, together with a cordon. One patch
writes both, and one removes both. A node that was cordoned before gets an annotation that says so, because after a
crash that cannot be known otherwise. Without the annotation the cordon is removed with the taint, as Cluster Autoscaler
does, so that nodes which Cluster Autoscaler left behind become usable again.

`DeletionCandidateOfClusterAutoscaler=<unix seconds>:PreferNoSchedule`, the soft taint, is on unneeded nodes. It keeps
new pods away while there is room elsewhere, and its value stores since when the node is unneeded. A loop iteration
changes a limited number of nodes in a limited time; the next one continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.durations import add_seconds
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


def read_taint_time(node: Node, key: str) -> datetime | None:
    """The time in a taint of ours; None without the taint, or if its value is not a time."""
    text = next((taint.value for taint in node.spec.taints if taint.key == key), "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST):
        return None
    return datetime.fromtimestamp(int(text), UTC)


async def add_deletion_taint(writer: NodeWriter, node: Node, *, at: datetime, cordon: bool) -> Node | NodeGone | Reason:
    """Taint the node, and cordon it if `cordon`."""
    taint = Taint(key=BEING_DELETED, value=format_unix_time(at), effect=NO_SCHEDULE)

    def change(now: Node) -> dict[str, Any] | None:
        if taint in now.spec.taints and (now.spec.unschedulable or not cordon):
            return None
        body: dict[str, Any] = {"spec": {"taints": [*list_other_taints(now, BEING_DELETED), taint]}}
        if cordon and not now.spec.unschedulable:
            body["spec"]["unschedulable"] = True
        elif cordon and not has_deletion_taint(now):
            body["metadata"] = {"annotations": {WAS_CORDONED: "true"}}
        return body

    return await writer.change(node, change)


async def remove_deletion_taint(writer: NodeWriter, node: Node, *, uncordon: bool) -> Node | NodeGone | Reason:
    """Remove the taint, and the cordon that came with it."""

    def change(now: Node) -> dict[str, Any] | None:
        was_cordoned = WAS_CORDONED in now.metadata.annotations
        lifts = uncordon and now.spec.unschedulable and not was_cordoned
        if not (has_deletion_taint(now) or was_cordoned or lifts):
            return None
        body: dict[str, Any] = {"spec": {"taints": list_other_taints(now, BEING_DELETED)}}
        if lifts:
            body["spec"]["unschedulable"] = None
        if was_cordoned:
            body["metadata"] = {"annotations": {WAS_CORDONED: None}}
        return body

    return await writer.change(node, change)


def list_other_taints(node: Node, key: str) -> list[Taint]:
    """The node's taints without those of this key, in order."""
    return [taint for taint in node.spec.taints if taint.key != key]


log = structlog.get_logger(__name__)

PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


def has_soft_taint(node: Node) -> bool:
    return any(taint.key == DELETION_CANDIDATE for taint in node.spec.taints)


def restore_unneeded_since(nodes: Iterable[Node], options: ScaleDown, now: datetime) -> dict[str, datetime]:
    """Since when nodes are unneeded, by soft taints of an earlier process within `--node-deletion-candidate-ttl`."""
    if options.candidate_ttl_s <= 0:
        return {}
    oldest = add_seconds(now, -options.candidate_ttl_s)
    times = {node.metadata.name: read_taint_time(node, DELETION_CANDIDATE) for node in nodes}
    return {name: min(since, now) for name, since in times.items() if since is not None and since >= oldest}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftTaintChanges:
    """What one loop iteration changed. `left` are nodes for the next one: over the limit, or after a failure."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class SoftTaints:
    """Puts soft taints on unneeded nodes, and removes them from others."""

    def __init__(self, writer: NodeWriter, *, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def update(
        self, unneeded_since: Mapping[str, datetime], nodes: Mapping[str, Node], options: ScaleDown
    ) -> SoftTaintChanges:
        """Add and remove soft taints; nodes being removed are left alone.

        Removals come first: a needed node that pods avoid costs more than an unneeded one that they use.
        """
        staying = [node for node in nodes.values() if not has_deletion_taint(node)]
        needed = [node for node in staying if has_soft_taint(node) and node.metadata.name not in unneeded_since]
        unneeded = [node for node in staying if not has_soft_taint(node) and node.metadata.name in unneeded_since]
        until_s = self._clock.monotonic_s() + options.soft_taint_time_s
        changed: dict[bool, list[str]] = {True: [], False: []}
        left: list[str] = []
        for number, node in enumerate([*needed, *unneeded]):
            name = node.metadata.name
            since = unneeded_since.get(name)
            if number >= options.soft_taint_count or self._clock.monotonic_s() > until_s:
                left.append(name)
                continue
            written = await (self._add(node, since) if since is not None else self.remove(node))
            if isinstance(written, Reason):
                log.warning("soft_taint.failed", node=name, problem=written.message)
                left.append(name)
            else:
                changed[since is not None].append(name)
        return SoftTaintChanges(added=tuple(changed[True]), removed=tuple(changed[False]), left=tuple(left))

    async def _add(self, node: Node, since: datetime) -> Node | NodeGone | Reason:
        taint = Taint(key=DELETION_CANDIDATE, value=format_unix_time(since), effect=PREFER_NO_SCHEDULE)

        def change(now: Node) -> dict[str, Any] | None:
            if has_soft_taint(now):
                return None
            return {"spec": {"taints": [*now.spec.taints, taint]}}

        return await self._writer.change(node, change)

    async def remove(self, node: Node) -> Node | NodeGone | Reason:
        def change(now: Node) -> dict[str, Any] | None:
            return {"spec": {"taints": list_other_taints(now, DELETION_CANDIDATE)}} if has_soft_taint(now) else None

        return await self._writer.change(node, change)
