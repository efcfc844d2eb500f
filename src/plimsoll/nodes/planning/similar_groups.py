"""Groups that are as good as each other: one per zone, mostly. Growth is shared out among them, smallest first.

`--balance-similar-node-groups`; nodes.md 6.6. Used by both planners after they have chosen how many nodes to add.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import CPU, MEMORY, PODS, ResourceVector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.offers import Offer

IGNORED_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
        # The name of the group itself, which every cloud puts on its nodes.
        "cloud.plimsoll.io/node-group",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name",
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
        "agentpool",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How much alike groups must be. `only_labels`, if given, decides alone."""

    memory_ratio: float = 0.015
    allocatable_ratio: float = 0.05
    free_ratio: float = 0.05
    ignored_labels: frozenset[str] = frozenset()
    only_labels: tuple[str, ...] = ()

    def holds(self, one: Offer, other: Offer) -> bool:
        if self.only_labels:
            return all(_label(one, key) == _label(other, key) for key in self.only_labels)
        return (
            self._capacity_is_alike(one.capacity, other.capacity)
            and _within(_allocatable(one), _allocatable(other), self.allocatable_ratio)
            and _within(one.free, other.free, self.free_ratio)
            and self._labels(one) == self._labels(other)
        )

    def _capacity_is_alike(self, one: ResourceVector, other: ResourceVector) -> bool:
        if set(one) != set(other):
            return False
        exact = [name for name in one if name in {CPU, PODS} or name.endswith("/gpu")]
        return all(one[name] == other[name] for name in exact) and _is_close(
            one[MEMORY], other[MEMORY], self.memory_ratio
        )

    def _labels(self, offer: Offer) -> dict[str, str]:
        left_out = IGNORED_LABELS | self.ignored_labels
        return {key: value for key, value in offer.node.metadata.labels.items() if key not in left_out}


def shared_out(nodes: int, sizes: Sequence[int], rooms: Sequence[int]) -> list[int]:
    """One node at a time to the group that is smallest now and has room; what is left over stays with nobody.

    Ties go to the earlier group. The answer is what each group gets.
    """
    given = [0] * len(sizes)
    waiting = [(size, index) for index, size in enumerate(sizes) if rooms[index] > 0]
    heapq.heapify(waiting)
    while nodes and waiting:
        size, index = heapq.heappop(waiting)
        # As many at once as keep it the smallest: a thousand nodes are not a thousand turns.
        until = waiting[0][0] if waiting else size + nodes
        step = min(nodes, rooms[index] - given[index], max(1, until - size))
        given[index] += step
        nodes -= step
        if given[index] < rooms[index]:
            heapq.heappush(waiting, (size + step, index))
    return given


def _label(offer: Offer, key: str) -> str | None:
    return offer.node.metadata.labels.get(key)


def _allocatable(offer: Offer) -> ResourceVector:
    return ResourceVector.from_quantities(offer.node.status.allocatable)


def _within(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    return all(_is_close(one[name], other[name], ratio) for name in {*one, *other})


def _is_close(one: int, other: int, ratio: float) -> bool:
    return abs(one - other) <= ratio * max(one, other)
