"""The mark of a node that is not needed: `DeletionCandidateOfClusterAutoscaler=<unix seconds>:PreferNoSchedule`.

It keeps new pods off nodes that will go, as far as there is room elsewhere, and it is the memory of timers: its value
is since when the node is not needed. A turn changes only so many nodes, and only for so long (`update`); the next goes
on. Nothing here decides what is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.nodes.acting.deletion_taints import is_marked, others, taint_time, unix_text
from plimsoll.objects.nodes import Node, Taint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.acting.node_writes import NodeGone, NodeWriter
    from plimsoll.nodes.policy import ScaleDown

log = structlog.get_logger(__name__)

DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


def is_candidate(node: Node) -> bool:
    return any(taint.key == DELETION_CANDIDATE for taint in node.spec.taints)


def restored(nodes: Iterable[Node], options: ScaleDown, now: datetime) -> dict[str, datetime]:
    """Since when nodes are not needed, as a process before this one left it. Nothing unless such marks may be kept."""
    if options.candidate_ttl_s <= 0:
        return {}
    oldest = now - timedelta(seconds=options.candidate_ttl_s)
    told = {node.metadata.name: taint_time(node, DELETION_CANDIDATE) for node in nodes}
    return {name: min(since, now) for name, since in told.items() if since is not None and since >= oldest}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftTainted:
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
    ) -> SoftTainted:
        """Of `nodes`, those that are not needed carry the mark and the others do not; nodes on their way out are left.

        Marks come off first: a needed node that pods avoid costs more than an unneeded one that they do not.
        """
        staying = [node for node in nodes.values() if not is_marked(node)]
        spoiled = [node for node in staying if is_candidate(node) and node.metadata.name not in unneeded_since]
        bare = [node for node in staying if not is_candidate(node) and node.metadata.name in unneeded_since]
        until_s = self._clock.monotonic_s() + options.soft_taint_time_s
        changed: dict[bool, list[str]] = {True: [], False: []}
        left: list[str] = []
        for number, node in enumerate([*spoiled, *bare]):
            name = node.metadata.name
            since = unneeded_since.get(name)
            if number >= options.soft_taint_count or self._clock.monotonic_s() > until_s:
                left.append(name)
                continue
            written = await (self._put_on(node, since) if since is not None else self.take_off(node))
            if isinstance(written, Reason):
                log.warning("soft_taint.failed", node=name, problem=written.message)
                left.append(name)
            else:
                changed[since is not None].append(name)
        return SoftTainted(added=tuple(changed[True]), removed=tuple(changed[False]), left=tuple(left))

    async def _put_on(self, node: Node, since: datetime) -> Node | NodeGone | Reason:
        taint = Taint(key=DELETION_CANDIDATE, value=unix_text(since), effect=PREFER_NO_SCHEDULE)

        def change(now: Node) -> dict[str, Any] | None:
            if is_candidate(now):
                return None
            return {"spec": {"taints": [*now.spec.taints, taint]}}

        return await self._writer.change(node, change)

    async def take_off(self, node: Node) -> Node | NodeGone | Reason:
        def change(now: Node) -> dict[str, Any] | None:
            return {"spec": {"taints": others(now, DELETION_CANDIDATE)}} if is_candidate(now) else None

        return await self._writer.change(node, change)
