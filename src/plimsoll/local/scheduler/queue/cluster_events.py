"""Cluster events and queueing hints: which change of the cluster may make an unschedulable pod schedulable.

A pod rejected by rules that look at one node only is helped by a change of a node only if it fits there now, which the
caller checks; for the other rules the kind of the change decides.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY
from plimsoll.scheduling.rules.resources_fit import DYNAMIC_RESOURCES
from plimsoll.scheduling.rules.topology_spread import TOPOLOGY_SPREAD
from plimsoll.scheduling.rules.volume_binding import VOLUME_BINDING, VOLUME_ZONE
from plimsoll.scheduling.rules.volume_limits import VOLUME_LIMITS
from plimsoll.scheduling.rules.volume_restrictions import VOLUME_RESTRICTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping


NO_NODE: Final = "no node"
"""Stands among the rules that refused where there was no node to ask."""


class ClusterEvent(StrEnum):
    """A change of the cluster that may make a pod schedulable."""

    NODE_CHANGED = "node-changed"
    """also: a node that is new"""
    POD_PLACED = "pod-placed"
    POD_LEFT = "pod-left"
    """also: one whose labels changed, that needs less, or that is on its way out"""
    CLAIM_CHANGED = "claim-changed"
    VOLUME_CHANGED = "volume-changed"
    CLASS_CHANGED = "class-changed"
    LIMITS_CHANGED = "limits-changed"
    """a CSINode"""
    NAMESPACE_CHANGED = "namespace-changed"


_NODE, _PLACED, _LEFT = ClusterEvent.NODE_CHANGED, ClusterEvent.POD_PLACED, ClusterEvent.POD_LEFT
_STORAGE: Final = {
    ClusterEvent.CLAIM_CHANGED,
    ClusterEvent.VOLUME_CHANGED,
    ClusterEvent.CLASS_CHANGED,
    ClusterEvent.LIMITS_CHANGED,
}

# Rules that look beyond one node and the pods on it. What is not here is helped by its node alone.
HELPFUL: Final[Mapping[str, frozenset[ClusterEvent]]] = {
    NO_NODE: frozenset({_NODE}),
    VOLUME_RESTRICTIONS: frozenset({_NODE, _LEFT, ClusterEvent.CLAIM_CHANGED}),
    VOLUME_LIMITS: frozenset({_NODE, _LEFT, *_STORAGE}),
    VOLUME_BINDING: frozenset({_NODE, *_STORAGE}),
    VOLUME_ZONE: frozenset({_NODE, *_STORAGE}),
    TOPOLOGY_SPREAD: frozenset({_NODE, _PLACED, _LEFT}),
    INTER_POD_AFFINITY: frozenset({_NODE, _PLACED, _LEFT, ClusterEvent.NAMESPACE_CHANGED}),
    DYNAMIC_RESOURCES: frozenset(),
}


def may_help(event: ClusterEvent, refused_by: frozenset[str]) -> bool:
    """Whether the kind of event alone is a reason to look again."""
    return any(event in HELPFUL.get(plugin, ()) for plugin in refused_by)


def is_about_a_node(event: ClusterEvent) -> bool:
    return event in {_NODE, _LEFT}
