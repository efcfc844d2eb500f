"""Requests that are tried before the end of their back-off, because capacity was freed or nodes joined. Pure.

A node has more free resources than one loop before, fewer taints, or is new; or a group may grow further. Then every
request that waits is tried once more; if it is refused again, nothing is written and its back-off goes on. A request
whose own nodes were given back is not tried because of that: it would be asked for the same nodes again at once.

Only what the last loop saw is remembered. A new process compares with nothing: it tries every check once, which changes
nothing; the back-off of a request that may add nodes outlives the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plimsoll.nodes.model.node_labels import LEAVING
from plimsoll.nodes.model.node_templates import is_upcoming
from plimsoll.nodes.requests.model import ClassKind, Phase, UpdateKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.scheduling.cluster_view import NodeState

_GIVEN_BACK = (UpdateKind.NOT_FOUND, UpdateKind.ROLLED_BACK)


class _FreeNode(NamedTuple):
    free: ResourceVector
    taints: int


class _Capacity(NamedTuple):
    """What may hold pods: existing nodes, and groups with the nodes that they may still add."""

    nodes: Mapping[str, _FreeNode]
    groups: Mapping[str, int]

    def has_more_than(self, other: _Capacity) -> bool:
        if any(room > other.groups.get(name, 0) for name, room in self.groups.items()):
            return True
        return any(_is_freer(node, other.nodes.get(name)) for name, node in self.nodes.items())


class FreedCapacity:
    """Compares the capacity of each loop with that of the loop before."""

    def __init__(self) -> None:
        self._before: _Capacity | None = None
        self._to_try: set[str] = set()
        """Uids of waiting requests that were not tried since capacity was freed."""
        self._given_back: frozenset[str] = frozenset()
        """Uids of requests whose own nodes the last loop gave back."""

    def select(self, waiting: Iterable[RequestView], snapshot: Snapshot) -> list[RequestView]:
        """The requests in back-off to try now. `snapshot`: with the bookings of this loop."""
        by_uid = {view.request.metadata.uid: view for view in waiting if view.phase is Phase.WAITING}
        now = _read_capacity(snapshot)
        if self._before is None:
            self._to_try |= {uid for uid, view in by_uid.items() if view.class_kind is ClassKind.CHECK}
        elif now.has_more_than(self._before):
            self._to_try |= by_uid.keys() - self._given_back
        self._before = now
        self._to_try &= by_uid.keys()
        return [view for uid, view in by_uid.items() if uid in self._to_try]

    def note_tried(self, requests: Iterable[RequestView]) -> None:
        self._to_try -= {view.request.metadata.uid for view in requests}

    def note_updates(self, updates: Iterable[StatusUpdate]) -> None:
        """Record the updates of a whole loop."""
        self._given_back = frozenset(
            update.view.request.metadata.uid
            for update in updates
            if update.kind in _GIVEN_BACK and _has_requested_nodes(update.view)
        )


def _has_requested_nodes(view: RequestView) -> bool:
    return view.phase is Phase.ARRIVING or view.details.intent is not None


def is_repeated_refusal(update: StatusUpdate) -> bool:
    """Whether a request in back-off was refused again: its status says so already."""
    return update.kind is UpdateKind.NOT_FOUND and update.view.phase is Phase.WAITING


def _read_capacity(snapshot: Snapshot) -> _Capacity:
    return _Capacity(
        nodes={
            name: _FreeNode(state.free, len(state.node.spec.taints))
            for name, state in snapshot.view.nodes.items()
            if _can_hold_pods(state)
        },
        groups={group.id: group.max_size - group.target_size for group in snapshot.groups if group.autoscaled},
    )


def _can_hold_pods(state: NodeState) -> bool:
    return not state.problem and LEAVING not in state.labels and not is_upcoming(state.node)


def _is_freer(node: _FreeNode, before: _FreeNode | None) -> bool:
    if before is None or node.taints < before.taints:
        return True
    return node.free is not before.free and not node.free.fits_within(before.free)
