"""The next batch of movements under the limits per broker and of the cluster. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.executor.tasks import MovementTask
    from plimsoll.kafka.model.proposals import Proposal


def list_involved(proposal: Proposal, leader: int) -> set[int]:
    """The brokers that a movement loads: those that lose or get a replica, and the leader, which sends the data."""
    involved = {*proposal.removed, *proposal.added}
    if proposal.added and leader >= 0:
        involved.add(leader)
    return involved


class BrokerSlots:
    """Free movements per broker and in the cluster."""

    def __init__(self, *, per_broker: int, in_cluster: int, reduced: Mapping[int, int]) -> None:
        self._per_broker = per_broker
        self._left = in_cluster
        self._reduced = reduced
        self._used: Counter[int] = Counter()

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def take(self, brokers: Iterable[int]) -> None:
        self._used.update(brokers)
        self._left -= 1

    def fits(self, brokers: Iterable[int]) -> bool:
        return self._left > 0 and all(
            self._used[broker] < self._reduced.get(broker, self._per_broker) for broker in brokers
        )


def find_leader(task: MovementTask, view: ClusterView) -> int:
    partition = view.partitions.get(task.key)
    return task.proposal.old_leader if partition is None else partition.leader
