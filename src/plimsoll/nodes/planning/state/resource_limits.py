"""Limits of the whole cluster: what it uses, how much may be added, how much must stay (docs/design/nodes.md 5.3).

The size limits of a group are part of each scale-up option. Cluster limits are never enforced on what exists: above a
maximum nothing is removed and below a minimum nothing is added, but the gap must not grow. All options draw on the same
room: `build_limit_matrix` gives the packing what one node of each option uses of each limit. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.quantity import Quantity
from plimsoll.core.resources import CPU, LARGEST_AMOUNT, MEMORY, ResourceVector
from plimsoll.nodes.model.gpus import count_gpus_of_type
from plimsoll.nodes.model.reasons import MAX_NODES_TOTAL
from plimsoll.nodes.model.taints import BEING_DELETED
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.config.policy import Planner, Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.objects.api.nodes import Node
    from plimsoll.scheduling import ClusterView
    from plimsoll.solver.problem import Ints


MAX_NODES_PER_SCALEUP: Final = "MaxNodesPerScaleUp"
_CODES: Final = {CPU: "CpuResourceLimit", MEMORY: "MemoryResourceLimit"}
_GPU_CODE: Final = "GpuResourceLimit"
_VIRTUAL_LABEL: Final = ("type", "virtual-kubelet")
_VIRTUAL_TAINT: Final = "virtual-kubelet.io/provider"
_GIB: Final = 1 << 30
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedNode:
    """What a node counts towards the limits."""

    capacity: ResourceVector
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_node(cls, node: Node) -> CountedNode:
        """By capacity; by allocatable where the capacity is missing or out of range; else a resource counts as zero."""
        capacity, problems = ResourceVector.read_bounded(node.status.capacity, path="status.capacity")
        if problems or not capacity:
            allocatable, _ = ResourceVector.read_bounded(node.status.allocatable, path="status.allocatable")
            capacity = ResourceVector({**allocatable, **capacity})
        return cls(capacity=capacity, labels=node.metadata.labels)

    def get_amount(self, resource: str) -> int:
        if resource in _CODES:
            return self.capacity[resource]
        return count_gpus_of_type(resource, self.labels, self.capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The nodes that count: also upcoming ones and those of no managed group, but none that is being deleted."""

    nodes: tuple[CountedNode, ...] = ()
    _totals: dict[str, int] = field(default_factory=dict, init=False, compare=False, repr=False)

    def get_total(self, resource: str) -> int:
        if resource not in self._totals:
            self._totals[resource] = sum(node.get_amount(resource) for node in self.nodes)
        return self._totals[resource]


def measure_usage(view: ClusterView) -> Usage:
    nodes = (state.node for state in view.nodes.values())
    return Usage(nodes=tuple(CountedNode.from_node(node) for node in nodes if is_counted(node)))


def measure_usage_of_arrays(arrays: NodeArrays) -> Usage:
    """The usage of node arrays, computed once while they do not change."""
    nodes = (state.node for state in arrays.states)
    return arrays.memoize(
        ("usage",), lambda: Usage(nodes=tuple(CountedNode.from_node(node) for node in nodes if is_counted(node)))
    )


def is_counted(node: Node) -> bool:
    """Whether limits count the node: it is neither virtual nor being deleted."""
    key, value = _VIRTUAL_LABEL
    if node.metadata.labels.get(key) == value:
        return False
    return not any(taint.key in {BEING_DELETED, _VIRTUAL_TAINT} for taint in node.spec.taints)


# ---- maximums


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimit:
    """A maximum. `resource` is empty if the limit counts nodes."""

    name: str
    """The name of the option, for messages."""
    resource: str
    code: str
    used: int
    most: int

    @property
    def room(self) -> int:
        return max(0, self.most - self.used)

    def add_use(self, used: int) -> ResourceLimit:
        """The limit after a plan has used that much more."""
        return replace(self, used=self.used + used)

    def use(self, node: CountedNode) -> int:
        """What one node uses of it."""
        return node.get_amount(self.resource) if self.resource else 1

    def __str__(self) -> str:
        """Cluster Autoscaler's words, and the numbers."""
        if not self.resource:
            reached = f"{self.name} reached ({self.used} of {self.most})"
            return reached if self.used else f"{self.name} is {self.most}, and more are needed at once"
        used, most = format_amount(self.resource, self.used), format_amount(self.resource, self.most)
        short = ", too little left for one more node" if self.used < self.most else ""
        return f"max cluster {self.resource} limit reached ({used} of {most} in use{short})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitMatrix:
    """The limits for a packing: row t of `use` is what one node of option t uses of each limit."""

    resource_limits: tuple[ResourceLimit, ...]
    use: Ints
    room: Ints


def find_limits(usage: Usage, policy: Policy, planner: Planner) -> tuple[ResourceLimit, ...]:
    """All limits that are set, cpu and memory first."""
    found = [
        ResourceLimit(
            name=resource,
            resource=resource,
            code=_CODES.get(resource, _GPU_CODE),
            used=usage.get_total(resource),
            most=bounds.most,
        )
        for resource, bounds in policy.limits.list_bounds().items()
        if bounds.most is not None
    ]
    if most := policy.limits.max_nodes_total:
        used = len(usage.nodes)
        found.append(ResourceLimit(name="max-nodes-total", resource="", code=MAX_NODES_TOTAL, used=used, most=most))
    if most := policy.limits.get_nodes_per_scaleup(planner):
        found.append(
            ResourceLimit(name="max-nodes-per-scaleup", resource="", code=MAX_NODES_PER_SCALEUP, used=0, most=most)
        )
    return tuple(found)


def build_limit_matrix(limits: Sequence[ResourceLimit], options: Sequence[ScaleUpOption]) -> LimitMatrix:
    nodes = [CountedNode(capacity=option.capacity, labels=option.node.metadata.labels) for option in options]
    use = np.zeros((len(options), len(limits)), dtype=np.int64)
    for column, limit in enumerate(limits):
        use[:, column] = [min(limit.use(node), LARGEST_AMOUNT) for node in nodes]
    room = np.array([min(limit.room, LARGEST_AMOUNT) for limit in limits], dtype=np.int64)
    return LimitMatrix(resource_limits=tuple(limits), use=use, room=room)


def count_addable_nodes(limits: Iterable[ResourceLimit], node: CountedNode) -> int:
    """The number of such nodes that all limits allow if nothing else is added."""
    return min((limit.room // use for limit in limits if (use := limit.use(node)) > 0), default=UNBOUNDED)


def find_exhausted(limits: Iterable[ResourceLimit], node: CountedNode, *, nodes: int = 1) -> tuple[ResourceLimit, ...]:
    """The limits that this many more nodes would exceed."""
    return tuple(limit for limit in limits if limit.use(node) * nodes > limit.room)


# ---- minimums


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumLimit:
    """A minimum amount of a resource, and the amount that exists."""

    resource: str
    used: int
    least: int

    def subtract_node(self, node: CountedNode) -> MinimumLimit:
        """The limit after a node is removed: the removals of one plan share the room."""
        return MinimumLimit(resource=self.resource, used=self.used - node.get_amount(self.resource), least=self.least)

    def __str__(self) -> str:
        used, least = format_amount(self.resource, self.used), format_amount(self.resource, self.least)
        return f"minimal cluster {self.resource} limit reached ({used} left, at least {least} wanted)"


def find_minimums(usage: Usage, policy: Policy) -> tuple[MinimumLimit, ...]:
    return tuple(
        MinimumLimit(resource=resource, used=usage.get_total(resource), least=bounds.least)
        for resource, bounds in policy.limits.list_bounds().items()
        if bounds.least > 0
    )


def find_broken_minimums(limits: Iterable[MinimumLimit], node: CountedNode) -> tuple[MinimumLimit, ...]:
    """The minimums that removing the node would break. A node without the resource never breaks its minimum."""
    return tuple(
        limit for limit in limits if (gone := node.get_amount(limit.resource)) > 0 and limit.used - gone < limit.least
    )


def format_amount(resource: str, amount: int) -> str:
    """An amount in the unit of the limits: cores, gibibytes, or a count."""
    if resource == CPU:
        return str(Quantity.from_milli(amount))
    if resource == MEMORY:
        return f"{amount / _GIB:.10g} GiB"
    return str(amount)
