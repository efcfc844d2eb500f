"""Removes taints from nodes that are not being removed: left by a crash, a lost lease, or an undo that failed.

It runs at the start and in every loop iteration. Nodes that this process removes are left alone, and so are nodes whose
instances the provider is deleting or has deleted. While the provider does not answer, no taint is removed: a taint that
stays one iteration longer does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import NotAllowed
from plimsoll.nodes.actuation.provider_deletions import is_running
from plimsoll.nodes.actuation.taints import SoftTaints, has_deletion_taint, has_soft_taint, remove_deletion_taint
from plimsoll.nodes.model.results import CleanedNode
from plimsoll.nodes.providers.values import NodeRef, ProviderFailed

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.actuation.node_writer import NodeWriter
    from plimsoll.nodes.config.policy import ScaleDown
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.providers.values import Instance
    from plimsoll.objects.api.nodes import Node

log = structlog.get_logger(__name__)


class TaintCleaner:
    """Reads `provider` as of its last refresh."""

    def __init__(self, writer: NodeWriter, provider: Provider, *, clock: Clock) -> None:
        self._writer = writer
        self._provider = provider
        self._soft = SoftTaints(writer, clock=clock)

    async def remove_deletion_taints(
        self, nodes: Iterable[Node], options: ScaleDown, *, leaving: Container[str] = frozenset()
    ) -> tuple[CleanedNode, ...]:
        """Remove deletion taints and their cordons from nodes that are not in `leaving`."""
        left_behind = [node for node in nodes if has_deletion_taint(node) and node.metadata.name not in leaving]
        if not left_behind:
            return ()
        try:
            running = await self._find_running(left_behind)
        except (ProviderFailed, NotAllowed) as error:
            log.warning("cleaning.blind", nodes=len(left_behind), problem=str(error))
            return ()
        return tuple([await self._remove_taint(node, options) for node in running])

    async def _remove_taint(self, node: Node, options: ScaleDown) -> CleanedNode:
        written = await remove_deletion_taint(self._writer, node, uncordon=options.cordon_first)
        return _clean_node(node, written, "deletion taint")

    async def _find_running(self, nodes: Iterable[Node]) -> list[Node]:
        """Nodes whose instances run, and nodes that do not belong to the provider."""
        instances: dict[str, tuple[Instance, ...]] = {}
        found = []
        for node in nodes:
            ref = NodeRef.from_node(node)
            group = await self._provider.node_group_for_node(ref)
            if group is not None and group.id not in instances:
                instances[group.id] = await group.nodes()
            if group is None or any(is_running(instance, ref) for instance in instances[group.id]):
                found.append(node)
        return found

    async def remove_soft_taints(self, nodes: Iterable[Node], options: ScaleDown) -> tuple[CleanedNode, ...]:
        """Remove all soft taints, unless timers are restored from them."""
        if options.candidate_ttl_s > 0:
            return ()
        candidates = [node for node in nodes if has_soft_taint(node)]
        return tuple([_clean_node(node, await self._soft.remove(node), "soft taint") for node in candidates])


def _clean_node(node: Node, written: object, what: str) -> CleanedNode:
    failure = written if isinstance(written, Reason) else None
    if failure is None:
        log.info("cleaning.done", node=node.metadata.name, what=what)
    else:
        log.warning("cleaning.failed", node=node.metadata.name, what=what, problem=failure.message)
    return CleanedNode(node=node.metadata.name, failure=failure)
