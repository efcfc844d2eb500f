"""Node ids of a Kafka cluster: the pools that ask for nodes, and the ids that each pool gets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

HIGHEST_NODE_ID: Final = 2**31 - 1
"""`node.id` is a 32-bit number."""
MOST_NODES: Final = 10_000
"""Nodes of a pool. More are a typing mistake: no Kafka cluster has so many."""


class NodeIdRange(Value):
    """Ids from `first` to `last`, both included. The direction is the order of use: 30-25 gives 30 first."""

    first: int
    last: int

    @property
    def lowest(self) -> int:
        return min(self.first, self.last)

    @property
    def highest(self) -> int:
        return max(self.first, self.last)

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def iterate(self) -> Iterator[int]:
        step = 1 if self.first <= self.last else -1
        return iter(range(self.first, self.last + step, step))

    def select(self, ascending: list[int]) -> list[int]:
        """The ids of a sorted list that are in the range, in the range's order."""
        found = ascending[bisect_left(ascending, self.lowest) : bisect_right(ascending, self.highest)]
        return found if self.first <= self.last else found[::-1]


class NodeIdRanges(Value):
    """The value of an annotation. Ranges may be as wide as the numbers go: ids are produced when they are used."""

    ranges: tuple[NodeIdRange, ...] = ()

    def iterate_unused(self, used: Collection[int]) -> Iterator[int]:
        """The ids that are not in use, in order. An id that two ranges hold comes twice."""
        return (node_id for ids in self.ranges for node_id in ids.iterate() if node_id not in used)

    def iterate_existing(self, ids: Collection[int]) -> Iterator[int]:
        """The given ids that the ranges name, in order and once. It takes no longer for wider ranges."""
        ascending = sorted(ids)
        yielded: set[int] = set()
        for ids_range in self.ranges:
            for node_id in ids_range.select(ascending):
                if node_id not in yielded:
                    yielded.add(node_id)
                    yield node_id


class NodePool(Value):
    """What a KafkaNodePool asks for, and what it has. Numbers are as users wrote them: not checked yet."""

    name: str
    path: str
    """Where its fields are, for messages: `kafkanodepool/NS/NAME`, or `kafka/NS/NAME` for the virtual pool."""
    replicas: int
    roles: tuple[str, ...]
    replicas_field: str = "spec.replicas"
    node_ids: tuple[int, ...] = ()
    """`status.nodeIds`."""
    former_roles: tuple[str, ...] = ()
    """`status.roles`: the roles with which its nodes were made; empty: not known."""
    next_node_ids: NodeIdRanges = NodeIdRanges()
    remove_node_ids: NodeIdRanges = NodeIdRanges()
    is_deleting: bool = False
    """It is being deleted, and a finalizer holds it: all its nodes leave."""
    has_broker_pods: bool = False
    """Its pods were made as brokers. They are, whatever its roles have become since: pods are not rolled."""
    has_controller_pods: bool = False
    """Its pods were made as controllers."""

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def was_broker(self) -> bool:
        return "broker" in (self.former_roles or self.roles)

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def was_controller(self) -> bool:
        return "controller" in (self.former_roles or self.roles)


class PoolNodeIds(Value):
    """The ids of one pool; every list is ascending, except `added`, which is in the order of assignment."""

    pool: str
    current: tuple[int, ...]
    desired: tuple[int, ...]
    """What remains once `removed` are gone. A pool with a problem keeps what it has."""
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    used_to_be_brokers: tuple[int, ...] = ()
    """Kept nodes that lose the broker role: checked for replicas as removed ones are."""
    used_to_be_controllers: tuple[int, ...] = ()
    """Kept nodes that lose the controller role."""
    is_broker: bool = True
    was_broker: bool = True
    was_controller: bool = False
    problem: Reason | None = None

    def list_kept(self, blocked: Collection[int]) -> tuple[int, ...]:
        """The ids that the pool status shows while some removed brokers have to stay."""
        return tuple(sorted({*self.desired, *(node_id for node_id in self.removed if node_id in blocked)}))


class NodeIdAssignment(Value):
    """The ids of all pools of a cluster."""

    pools: tuple[PoolNodeIds, ...]
    is_new: bool
    """The whole cluster is new: its brokers are not an addition to anything."""
    problems: tuple[Reason, ...] = ()
    """Configuration errors; the pools concerned stay as they are."""

    @property
    def added_brokers(self) -> tuple[int, ...]:
        """Added ids of broker pools, ascending; none if the whole cluster is new."""
        if self.is_new:
            return ()
        return tuple(sorted(node_id for pool in self.pools if pool.is_broker for node_id in pool.added))

    @property
    def removed_brokers(self) -> tuple[int, ...]:
        return tuple(sorted(node_id for pool in self.pools if pool.was_broker for node_id in pool.removed))

    @property
    def used_to_be_brokers(self) -> tuple[int, ...]:
        return tuple(sorted(node_id for pool in self.pools for node_id in pool.used_to_be_brokers))

    def get_pool(self, name: str) -> PoolNodeIds:
        return next(pool for pool in self.pools if pool.pool == name)

    @property
    def has_leaving_controllers(self) -> bool:
        """Whether nodes that were made as controllers leave, or lose that role."""
        return any(pool.used_to_be_controllers or (pool.was_controller and pool.removed) for pool in self.pools)

    @property
    def desired_brokers(self) -> tuple[int, ...]:
        return tuple(sorted(node_id for pool in self.pools if pool.is_broker for node_id in pool.desired))
