"""The placement problem: replicas on brokers in racks, and its solution.

Replicas of partition `p` are the rows `offsets[p]:offsets[p + 1]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from plimsoll.solver.problem import Flags, Floats, Ints

UNLIMITED: Final = 1 << 60


class BrokerState(IntEnum):
    """What happens to a broker."""

    STAYS = 0
    NEW = 1
    LEAVING = 2
    """All of its movable replicas must go."""


@dataclass(frozen=True, slots=True)
class BrokerRange:
    """The least and the most that each broker should have."""

    low: Floats
    """[B]."""
    high: Floats
    """[B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaProblem:
    """P partitions, N replicas, B brokers."""

    size: Floats
    """[P]: bytes."""
    offsets: Ints
    """[P + 1]."""
    broker_of: Ints
    """[N]."""
    rack_of: Ints
    """[B]."""
    state: Ints
    """[B]: a `BrokerState`."""
    movable: Flags
    """[N]."""
    may_give: Flags
    """[B]: whether replicas may leave the broker. Leaving brokers always give."""
    may_receive: Flags
    """[B]: leaving brokers never receive."""
    weight: Floats
    """[B]: the broker's share relative to others, such as its capacity."""
    max_replicas: Ints
    """[B]."""
    max_bytes: Floats
    """[B]."""
    topic_of: Ints
    """[P]."""
    topic_cap: Ints
    """[T]: a broker with so many replicas of a topic gets another one only if no other broker can take it."""
    count_window: float = 0.09
    """The allowed distance from the mean count, as a share of it."""
    byte_window: float = 0.09
    count_limits: BrokerRange | None = None
    """The least and the most replicas that are wanted beside the window; None: any."""
    byte_limits: BrokerRange | None = None
    relief: bool = False
    """Allow the few extra moves that bring brokers into their byte window, also between brokers that stay."""
    is_rack_aware: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSolution:
    """Where replicas go, and the least that any plan must move to bring the same brokers into the same windows."""

    broker_of: Ints
    """[N]."""
    moves: int
    moved_bytes: float
    least_moves: int
    least_bytes: float
    windows: Windows
    stranded: Ints
    """Replicas of leaving brokers that no broker can take."""
    extra_moves: int
    """Moves for relief."""
    swaps: int
    candidates_tried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The allowed counts and bytes per broker, and the means. Leaving brokers have empty windows."""

    mean_count: Floats
    mean_bytes: Floats
    low_count: Ints
    high_count: Ints
    low_bytes: Floats
    high_bytes: Floats
    groups: tuple[Ints, ...]
    """Sets of brokers between which replicas may move. A rack that has a replica of every partition is its own."""

    def find_counts_inside(self, counts: Ints) -> Flags:
        """[B]."""
        inside: Flags = (counts >= self.low_count) & (counts <= self.high_count)
        return inside

    @property
    def byte_slack(self) -> Floats:
        """[B]: what rounding may add to a sum of bytes."""
        slack: Floats = 1e-9 * (1.0 + self.high_bytes)
        return slack

    def are_bytes_inside(self, held: Floats) -> Flags:
        """[B]."""
        inside: Flags = (held >= self.low_bytes - self.byte_slack) & (held <= self.high_bytes + self.byte_slack)
        return inside


def find_rack_caps(problem: ReplicaProblem) -> Ints:
    """[P]: how many replicas of a partition one rack may hold."""
    factor = np.diff(problem.offsets)
    if not problem.is_rack_aware:
        return np.full(len(factor), UNLIMITED, dtype=np.int64)
    racks = max(1, len(np.unique(problem.rack_of[problem.state != BrokerState.LEAVING])))
    caps: Ints = -(-factor // racks)
    return caps
