"""What the analyzer answers: proposals, the state of every goal, and the distance from the least possible."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.kafka.model.requests import Mode

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import ClusterModel
    from plimsoll.kafka.model.requests import RebalanceRequest


class GoalStatus(StrEnum):
    """The outcome of a goal: nothing to do, met by moves, or still violated."""

    NO_ACTION = "NO-ACTION"
    FIXED = "FIXED"
    VIOLATED = "VIOLATED"


class LogDirMove(Value):
    """A replica that moves between log directories of one broker."""

    broker: int
    source: str
    destination: str


class Proposal(Value):
    """The new replicas of a partition. The first of `new_replicas` is the new leader."""

    topic: str
    partition: int
    old_leader: int
    old_replicas: tuple[int, ...]
    new_replicas: tuple[int, ...]
    size_bytes: int = 0
    """0 if it is not known."""
    is_size_known: bool = True
    log_dir_moves: tuple[LogDirMove, ...] = ()
    reason: str = ""
    """The goal that asked for it, for `why`."""

    @property
    def added(self) -> tuple[int, ...]:
        """Brokers that get a replica."""
        return tuple(broker for broker in self.new_replicas if broker not in self.old_replicas)

    @property
    def removed(self) -> tuple[int, ...]:
        """Brokers that lose their replica."""
        return tuple(broker for broker in self.old_replicas if broker not in self.new_replicas)

    @property
    def is_replica_move(self) -> bool:
        return set(self.new_replicas) != set(self.old_replicas)

    @property
    def is_leader_move(self) -> bool:
        """Whether only the leader or the order of replicas changes."""
        if self.is_replica_move or (self.log_dir_moves and self.new_replicas == self.old_replicas):
            return False
        return self.new_replicas != self.old_replicas or self.old_leader != self.new_replicas[0]

    @property
    def bytes_to_move(self) -> int:
        """Bytes that are copied to other brokers."""
        return len(self.added) * self.size_bytes

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that are written: to other brokers, and to other log directories of the same ones."""
        return self.bytes_to_move + len(self.log_dir_moves) * self.size_bytes

    @property
    def has_unknown_bytes(self) -> bool:
        """Whether something is written, and its size is not known."""
        return not self.is_size_known and bool(self.added or self.log_dir_moves)


class ResourceStatistics(Value):
    """A row of Cruise Control's cluster statistics: AVG, STD, MIN or MAX."""

    cpu: float
    network_inbound: float
    network_outbound: float
    disk: float
    potential_nw_out: float
    replicas: float
    leader_replicas: float
    topic_replicas: float


class ClusterStatistics(Value):
    """The distribution of load over brokers after a goal."""

    brokers: int
    replicas: int
    topics: int
    average: ResourceStatistics
    standard_deviation: ResourceStatistics
    minimum: ResourceStatistics
    maximum: ResourceStatistics


class GoalResult(Value):
    """The outcome of a goal, with a reason unless it holds by itself."""

    goal: str
    status: GoalStatus
    statistics: ClusterStatistics
    reason: Reason | None = None
    """Why it is still violated, or why it does not apply (no rates)."""
    candidates_tried: int = 0


class Bounds(Value):
    """The least that any plan within the same windows must move, and what this one moves."""

    moves: int
    bytes: int
    least_moves: int
    least_bytes: int


class ProvisionStatus(StrEnum):
    """Whether the cluster has too few, enough or too many brokers, in Cruise Control's words."""

    UNDER_PROVISIONED = "UNDER_PROVISIONED"
    RIGHT_SIZED = "RIGHT_SIZED"
    OVER_PROVISIONED = "OVER_PROVISIONED"
    UNDECIDED = "UNDECIDED"


class Provision(Value):
    """The recommendation on the number of brokers."""

    status: ProvisionStatus
    recommendation: str = ""
    brokers_to_add: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizationResult:
    """A plan for a request: what moves, and the cluster before and after."""

    request: RebalanceRequest
    before: ClusterModel
    """With the reassignments under way completed: a plan begins at their targets."""
    after: ClusterModel
    proposals: tuple[Proposal, ...]
    goals: tuple[GoalResult, ...]
    bounds: Bounds
    balancedness_before: float
    balancedness_after: float
    provision: Provision
    excluded_topics: tuple[str, ...] = ()
    held: tuple[Reason, ...] = ()
    """What could not be moved, and why: replicas on brokers that do not answer, foreign reassignments."""
    budgets: tuple[tuple[str, int], ...] = ()
    departing: tuple[tuple[int, int], ...] = ()
    """Replicas that reassignments under way take away, by broker. They are still there, and not in `before`."""

    @property
    def kept_on_leaving(self) -> dict[int, int]:
        """Replicas that stay on brokers which shall be removed, by broker: they may not be switched off yet."""
        if self.request.mode is not Mode.REMOVE_BROKERS:
            return {}
        counts = Counter(dict(zip(self.after.broker_ids.tolist(), self.after.replica_counts.tolist(), strict=True)))
        counts.update(dict(self.departing))
        return {broker: counts[broker] for broker in self.request.brokers if counts[broker]}

    @property
    def emptied_brokers(self) -> tuple[int, ...]:
        """The brokers that the plan empties, so that they may be switched off."""
        is_removal = self.request.mode is Mode.REMOVE_BROKERS
        return self.request.brokers if is_removal and not self.kept_on_leaving else ()

    @property
    def data_to_move_mb(self) -> int:
        """Cruise Control's figure: whole MiB per added replica, so that small partitions count 0."""
        return sum(len(proposal.added) * (proposal.size_bytes >> 20) for proposal in self.proposals)


class Refusal(Value):
    """A hard goal cannot hold, or the request makes no sense for this cluster: nothing is proposed."""

    reason: Reason
    goal: str = ""
    """The hard goal that cannot hold; empty: the request itself is wrong."""
    provision: Provision = Provision(status=ProvisionStatus.UNDECIDED)
