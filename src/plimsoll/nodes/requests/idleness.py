"""Which nodes nobody is on and nobody was given: what may be taken back when requests fail or go. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.upcoming import is_upcoming
from plimsoll.nodes.planning.drains import has_mirror, is_daemon_pod

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.scheduling.view import NodeState


def is_coming(node: str, snapshot: Snapshot) -> bool:
    """Whether it is still on its way."""
    state = snapshot.view.node(node)
    return state is not None and is_upcoming(state.node)


def idle_nodes(snapshot: Snapshot, taken: Collection[str]) -> dict[str, int]:
    """By group: nodes, there or on their way, but for those that somebody was given (`taken`)."""
    names = ((name, group, snapshot.view.node(name)) for name, group in snapshot.group_of.items())
    used = {*taken, *snapshot.promises}
    return Counter(group for name, group, state in names if state is not None and name not in used and _is_empty(state))


def idle_coming(snapshot: Snapshot, taken: Collection[str]) -> dict[str, int]:
    """The same of those that are on their way."""
    used = {*taken, *snapshot.promises}
    return Counter(group for name, group in snapshot.group_of.items() if name not in used and is_coming(name, snapshot))


def _is_empty(state: NodeState) -> bool:
    return not state.unreadable_pods and all(
        is_daemon_pod(one.pod) or has_mirror(one.pod) for one in state.pods.values()
    )
