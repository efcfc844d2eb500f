"""Simulated partitions: replicas, in-sync replicas, leaders and reassignments, as a KRaft controller changes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(slots=True)
class ReplicaLog:
    """The log of a replica on one broker. `future_path`: where it is moving within the broker."""

    path: str
    size: float = 0.0
    future_path: str = ""
    future_size: float = 0.0


@dataclass(slots=True)
class SimulatedPartition:
    """A partition of a topic. While it is reassigned, `replicas` holds the target first, then what is removed."""

    topic: str
    partition: int
    replicas: list[int]
    leader: int
    isr: list[int]
    logs: dict[int, ReplicaLog]
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0
    end: float = 0.0
    """The bytes produced so far and acknowledged."""

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def target(self) -> list[int]:
        return [broker for broker in self.replicas if broker not in self.removing]

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def lagging(self) -> list[int]:
        """Replicas that are not in sync."""
        return [broker for broker in self.replicas if broker not in self.isr]

    def begin_reassignment(self, target: Sequence[int]) -> None:
        """Replaces a reassignment under way: what it was adding is no longer wanted unless the new target has it."""
        origin = [broker for broker in self.replicas if broker not in self.adding]
        self.adding = [broker for broker in target if broker not in origin]
        self.removing = [broker for broker in origin if broker not in target]
        self.replicas = [*target, *self.removing]
        self.isr = [broker for broker in self.isr if broker in self.replicas]

    def can_complete(self) -> bool:
        target = self.target
        return all(broker in self.isr for broker in self.adding) and any(broker in self.isr for broker in target)

    def complete_reassignment(self) -> None:
        self.replicas = self.target
        self.isr = [broker for broker in self.isr if broker in self.replicas]
        self.adding, self.removing = [], []

    def can_revert(self) -> bool:
        return any(broker in self.isr for broker in self.replicas if broker not in self.adding)

    def revert_reassignment(self) -> None:
        """The replicas of before. Their order may differ: those that were to be removed come last, as in KRaft."""
        self.replicas = [broker for broker in self.replicas if broker not in self.adding]
        self.isr = [broker for broker in self.isr if broker in self.replicas]
        self.adding, self.removing = [], []

    def elect_leader(self, can_lead: Callable[[int], bool]) -> None:
        """Keeps a leader that can lead; else the first in-sync replica that can. No unclean election."""
        candidates = [broker for broker in self.replicas if broker in self.isr and can_lead(broker)]
        if self.leader not in candidates:
            self.leader = candidates[0] if candidates else -1

    def shrink_isr(self, broker: int) -> None:
        """A replica falls out of sync. The last one stays: it is the one that may lead again."""
        if broker in self.isr and len(self.isr) > 1:
            self.isr.remove(broker)

    def expand_isr(self, broker: int) -> None:
        if broker in self.replicas and broker not in self.isr:
            self.isr.append(broker)
