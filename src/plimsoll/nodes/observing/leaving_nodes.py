"""Nodes that are being removed, marked so that nothing is planned onto them. Pure.

A removal taints its node, but the cache of nodes shows the taint only later, and after a restart no process remembers
the removal. So the mark comes from everything that is known: removals in progress, instances that the provider is
deleting, nodes with a deletion time, and the taints of Cluster Autoscaler and Karpenter. Pods that tolerate every taint
would still fit; ProvisioningRequests avoid the label (`plimsoll.nodes.requests.promised_nodes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.model.node_labels import LEAVING
from plimsoll.nodes.model.taints import BEING_DELETED, REMOVAL_TAINTS
from plimsoll.objects.api.nodes import Taint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from plimsoll.nodes.observing.provider_state import ProviderState
    from plimsoll.objects.api.nodes import Node

_TAINT: Final = Taint(key=BEING_DELETED, effect="NoSchedule")


class LeavingNodes:
    """Marks nodes that are being removed. Unchanged nodes give the same object, so that snapshots stay incremental."""

    def __init__(self) -> None:
        self._marked: dict[str, tuple[Node, Node]] = {}
        """By name: the node as it was read, and with its mark."""

    def mark(self, nodes: Iterable[Node], provider: ProviderState, in_progress: Collection[str]) -> list[Node]:
        """All nodes; `in_progress` are the names of nodes that this process removes."""
        deleting = _find_deleting(provider)
        before, self._marked = self._marked, {}
        found: list[Node] = []
        for node in nodes:
            name = node.metadata.name
            is_deleted = (
                name in in_progress
                or name in deleting
                or node.spec.provider_id in deleting
                or node.metadata.deletion_timestamp is not None
            )
            if not is_deleted and not is_closed(node):
                found.append(node)
                continue
            known = before.get(name)
            marked = _mark(node, is_deleted=is_deleted)
            if known is not None and known[0] is node and known[1] == marked:
                marked = known[1]
            self._marked[name] = (node, marked)
            found.append(marked)
        return found


def is_closed(node: Node) -> bool:
    """Whether the node object itself says that the node is drained or about to be removed."""
    return node.spec.unschedulable or any(taint.key in REMOVAL_TAINTS for taint in node.spec.taints)


def _mark(node: Node, *, is_deleted: bool) -> Node:
    labels = {**node.metadata.labels, LEAVING: "true"}
    taints = node.spec.taints
    if is_deleted and not any(taint.key == BEING_DELETED for taint in taints):
        taints = (*taints, _TAINT)
    return structs.replace(
        node,
        metadata=structs.replace(node.metadata, labels=labels),
        spec=structs.replace(node.spec, taints=taints),
    )


def _find_deleting(provider: ProviderState) -> frozenset[str]:
    """Provider ids and names of instances that are being deleted."""
    leaving = [
        instance
        for group in provider.groups.values()
        for instance in group.instances
        if instance.state is InstanceState.DELETING
    ]
    return frozenset(word for instance in leaving for word in (instance.id, instance.name) if word)
