"""The order of movements, by the names of Cruise Control's strategies. Pure.

Strategies form a chain: the first decides, the next breaks ties, and the order of the proposals breaks the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.executor.tasks import MovementTask

    SortKey = Callable[[MovementTask, ClusterView], int]


def _keep_order(_task: MovementTask, _view: ClusterView) -> int:
    return 0


def _prefer_large(task: MovementTask, _view: ClusterView) -> int:
    return -task.proposal.bytes_to_move


def _prefer_small(task: MovementTask, _view: ClusterView) -> int:
    return task.proposal.bytes_to_move


def _postpone_under_replicated(task: MovementTask, view: ClusterView) -> int:
    return 1 if view.list_missing(task.key) else 0


def _prefer_min_isr_with_offline(task: MovementTask, view: ClusterView) -> int:
    """First what is under its minimum of in-sync replicas, then what is at it, if a replica is offline."""
    return min(_count_spare_isr(task, view), 1)


def _prefer_one_above_min_isr_with_offline(task: MovementTask, view: ClusterView) -> int:
    return min(_count_spare_isr(task, view), 2)


def _count_spare_isr(task: MovementTask, view: ClusterView) -> int:
    """In-sync replicas above the minimum, for partitions with an offline replica; others come last."""
    partition = view.partitions.get(task.key)
    if partition is None or not partition.offline:
        return 2
    return len(partition.isr) - view.min_isr.get(task.key.topic, 1)


STRATEGIES: Final[dict[str, SortKey]] = {
    "BaseReplicaMovementStrategy": _keep_order,
    "PrioritizeLargeReplicaMovementStrategy": _prefer_large,
    "PrioritizeSmallReplicaMovementStrategy": _prefer_small,
    "PostponeUrpReplicaMovementStrategy": _postpone_under_replicated,
    "PrioritizeMinIsrWithOfflineReplicasStrategy": _prefer_min_isr_with_offline,
    "PrioritizeOneAboveMinIsrWithOfflineReplicasStrategy": _prefer_one_above_min_isr_with_offline,
}


_OF_MIN_ISR: Final = frozenset(
    {"PrioritizeMinIsrWithOfflineReplicasStrategy", "PrioritizeOneAboveMinIsrWithOfflineReplicasStrategy"}
)


def needs_min_isr(names: Iterable[str]) -> bool:
    """Whether one of the strategies looks at the least numbers of in-sync replicas."""
    return not _OF_MIN_ISR.isdisjoint(names)


def check_strategies(names: Iterable[str], *, path: str) -> tuple[str, ...]:
    """The simple names of strategies, which may be given with their Java package."""
    simple = tuple(name.strip().rpartition(".")[2] for name in names)
    unknown = [name for name in simple if name not in STRATEGIES]
    if unknown:
        raise InvalidInput(f"unknown strategy {unknown[0]!r}; known are {', '.join(STRATEGIES)}", path=path)
    return simple


def sort_tasks(tasks: Iterable[MovementTask], names: Sequence[str], view: ClusterView) -> list[MovementTask]:
    keys = [STRATEGIES[name] for name in names]
    return sorted(tasks, key=lambda task: (*(key(task, view) for key in keys), task.id))
