"""Growth shared out evenly among groups that are as good as each other (`--balance-similar-node-groups`).

Groups that are as good as each other: one per zone, mostly. Growth is shared out among them, smallest first.

`--balance-similar-node-groups`; nodes.md 6.6. Used by both planners after they have chosen how many nodes to add.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import CPU, MEMORY, PODS, ResourceVector
from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.model.scale_up_options import ScaleUpOption
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem


def balanced(
    board: ScaleUpProblem, draft: Placement, meetings: PodRelations, families: Sequence[Sequence[int]] | None = None
) -> Placement:
    """The same nodes, moved between similar groups until these are as equal as their limits allow."""
    for siblings in similar_offers(board) if families is None else families:
        draft = _shared(board, draft, siblings, meetings)
    return draft


def similar_offers(board: ScaleUpProblem) -> list[list[int]]:
    """Families of offers that growth is shared out among; none unless the policy asks for it."""
    rules = board.policy.balancing
    if not rules.enabled:
        return []
    likeness = Likeness(
        memory_ratio=rules.memory_ratio,
        allocatable_ratio=rules.allocatable_ratio,
        free_ratio=rules.free_ratio,
        ignored_labels=frozenset(rules.ignored_labels),
        only_labels=rules.labels,
    )
    found: list[list[int]] = []
    for index, offer in enumerate(board.offers):
        home = next((group for group in found if likeness.holds(board.offers[group[0]], offer)), None)
        if home is None:
            found.append([index])
        elif offer.exists and board.offers[home[0]].exists and not offer.zero_or_max:
            home.append(index)
    return [group for group in found if len(group) > 1]


def _shared(board: ScaleUpProblem, draft: Placement, siblings: Sequence[int], meetings: PodRelations) -> Placement:
    movable = [
        batch for batch in draft.batches if batch.offer in siblings and _is_free(board, batch, siblings, meetings)
    ]
    nodes = sum(batch.nodes for batch in movable)
    if not nodes:
        return draft
    fixed = [batch for batch in draft.batches if batch not in movable]
    held = Placement(batches=tuple(fixed)).nodes_of(len(board.offers))
    sizes = [board.offers[sibling].size + int(held[sibling]) for sibling in siblings]
    rooms = [int(board.available[sibling] - held[sibling]) for sibling in siblings]
    given = shared_out(nodes, sizes, rooms)
    if sum(given) < nodes:
        return draft
    even = replace(draft, batches=(*fixed, *_dealt(movable, dict(zip(siblings, given, strict=True)))))
    # Alike is not equal: nodes a little larger may be more than the cluster may have.
    within = (even.nodes_of(len(board.offers)) @ board.limits.use <= board.limits.room).all()
    return even if within else draft


def _dealt(batches: Sequence[NodeBatch], wanted: dict[int, int]) -> list[NodeBatch]:
    found: list[NodeBatch] = []
    for batch in batches:
        left = batch.nodes
        for offer, more in wanted.items():
            step = min(left, more)
            if step:
                found.append(replace(batch, offer=offer, nodes=step))
                wanted[offer] -= step
                left -= step
    return found


def _is_free(board: ScaleUpProblem, batch: NodeBatch, siblings: Sequence[int], meetings: PodRelations) -> bool:
    """Whether its pods may be in any of the groups: with room there, allowed, and of no concern beyond their node."""
    asked = sum(board.requests[number] * pods for number, pods in batch.content.items())
    if not batch.content or (board.capacity[list(siblings)] < asked).any():
        return False
    return all(
        board.allowed[list(siblings), number].all() and not _concerns_others(board, number, meetings)
        for number in batch.content
    )


def _concerns_others(board: ScaleUpProblem, number: int, meetings: PodRelations) -> bool:
    """Whether it looks at pods on other nodes, or somebody who waits looks at it."""
    one, party = board.table.classes[number], meetings.party_of[number]
    if any(spread.key != HOSTNAME for spread in board.rules.spreads(number)) or one.has_affinity:
        return True
    avoided = [key for keys in meetings.shunned[party].values() for key in keys]
    if one.has_anti_affinity or board.arrays.running_pods.anti_affinity_rows:
        known = board.rules.affinity_counts(number)
        avoided += [*known.anti_affinity_domains, *known.repelling_domains]
    return (
        any(key != HOSTNAME for key in avoided)
        or any(party in wanted for wanted in meetings.company)
        or any(party in counted for other, counted in enumerate(meetings.counted) if other != party)
    )


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

    def holds(self, one: ScaleUpOption, other: ScaleUpOption) -> bool:
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

    def _labels(self, offer: ScaleUpOption) -> dict[str, str]:
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


def _label(offer: ScaleUpOption, key: str) -> str | None:
    return offer.node.metadata.labels.get(key)


def _allocatable(offer: ScaleUpOption) -> ResourceVector:
    return ResourceVector.from_quantities(offer.node.status.allocatable)


def _within(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    return all(_is_close(one[name], other[name], ratio) for name in {*one, *other})


def _is_close(one: int, other: int, ratio: float) -> bool:
    return abs(one - other) <= ratio * max(one, other)
