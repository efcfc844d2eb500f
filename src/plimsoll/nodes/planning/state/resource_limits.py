"""The limits of the whole cluster: how much it uses, how much may still be added, how much may be taken away. Pure.

Gate 1 of docs/design/nodes.md 5.3; gate 2, a group's own sizes, is in each offer. The limits never enforce: above a
maximum nothing is removed, below a minimum nothing is added; the gap merely must not grow. Room is shared: `rows` gives
it to a packing as one row a limit, which all types draw from.

Public: `usage_of(view) -> Usage`; `ceilings(usage, policy, planner) -> tuple[Ceiling, ...]`; on these `rows(ceilings,
offers) -> Rows` (for `Packing.use` and `Packing.room`), `growth(ceilings, node)`, `exhausted(ceilings, node)`;
`floors(usage, policy)` and `broken_floors(floors, node)` for removals. Nodes and ceilings come as `Counted`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.core.resources import CPU, MEMORY, ZERO, ResourceVector
from plimsoll.nodes.model.gpus import gpus_of_type
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
class Counted:
    """A node as limits see it."""

    capacity: ResourceVector
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> Counted:
        """By its capacity, or what it says of allocatable where it has none; what cannot be read counts nothing."""
        try:
            capacity = ResourceVector.from_quantities(node.status.capacity or node.status.allocatable)
        except InvalidQuantity:
            capacity = ZERO
        return cls(capacity=capacity, labels=node.metadata.labels)

    def amount(self, resource: str) -> int:
        if resource in _CODES:
            return self.capacity[resource]
        return gpus_of_type(resource, self.labels, self.capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the cluster has: nodes nobody autoscales and those on their way too, not those that are leaving."""

    nodes: tuple[Counted, ...] = ()
    _totals: dict[str, int] = field(default_factory=dict, init=False, compare=False, repr=False)

    def total(self, resource: str) -> int:
        if resource not in self._totals:
            self._totals[resource] = sum(node.amount(resource) for node in self.nodes)
        return self._totals[resource]


def usage_of(view: ClusterView) -> Usage:
    nodes = (state.node for state in view.nodes.values())
    return Usage(nodes=tuple(Counted.of(node) for node in nodes if counts(node)))


def usage_of_rows(arrays: NodeArrays) -> Usage:
    """The same of nodes read already, and kept while they stay what they are."""
    nodes = (state.node for state in arrays.states)
    return arrays.memoize(("usage",), lambda: Usage(nodes=tuple(Counted.of(node) for node in nodes if counts(node))))


def counts(node: Node) -> bool:
    """Whether limits see the node: it is neither virtual nor leaving."""
    key, value = _VIRTUAL_LABEL
    if node.metadata.labels.get(key) == value:
        return False
    return not any(taint.key in {BEING_DELETED, _VIRTUAL_TAINT} for taint in node.spec.taints)


# ---- growing


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimit:
    """One limit. `resource` is empty where nodes themselves are counted."""

    name: str
    """The option as people know it, for messages."""
    resource: str
    code: str
    used: int
    most: int

    @property
    def room(self) -> int:
        return max(0, self.most - self.used)

    def with_more(self, used: int) -> ResourceLimit:
        """The same when a plan has taken so much of it."""
        return replace(self, used=self.used + used)

    def use(self, node: Counted) -> int:
        """What one node takes of it."""
        return node.amount(self.resource) if self.resource else 1

    def __str__(self) -> str:
        """Cluster Autoscaler's words, and the numbers."""
        if not self.resource:
            reached = f"{self.name} reached ({self.used} of {self.most})"
            return reached if self.used else f"{self.name} is {self.most}, and more are needed at once"
        used, most = written(self.resource, self.used), written(self.resource, self.most)
        short = ", too little left for one more node" if self.used < self.most else ""
        return f"max cluster {self.resource} limit reached ({used} of {most} in use{short})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """For a packing: row t of `use` is what one node of offer t takes of each limit."""

    ceilings: tuple[ResourceLimit, ...]
    use: Ints
    room: Ints


def ceilings(usage: Usage, policy: Policy, planner: Planner) -> tuple[ResourceLimit, ...]:
    """All limits that hold, cpu and memory first."""
    found = [
        ResourceLimit(
            name=resource,
            resource=resource,
            code=_CODES.get(resource, _GPU_CODE),
            used=usage.total(resource),
            most=bounds.most,
        )
        for resource, bounds in policy.limits.bounds().items()
        if bounds.most is not None
    ]
    if most := policy.limits.max_nodes_total:
        used = len(usage.nodes)
        found.append(ResourceLimit(name="max-nodes-total", resource="", code=MAX_NODES_TOTAL, used=used, most=most))
    if most := policy.limits.nodes_per_scaleup(planner):
        found.append(
            ResourceLimit(name="max-nodes-per-scaleup", resource="", code=MAX_NODES_PER_SCALEUP, used=0, most=most)
        )
    return tuple(found)


def rows(limits: Sequence[ResourceLimit], offers: Sequence[ScaleUpOption]) -> Rows:
    nodes = [Counted(capacity=offer.capacity, labels=offer.node.metadata.labels) for offer in offers]
    use = np.zeros((len(offers), len(limits)), dtype=np.int64)
    for column, limit in enumerate(limits):
        use[:, column] = [limit.use(node) for node in nodes]
    room = np.array([limit.room for limit in limits], dtype=np.int64)
    return Rows(ceilings=tuple(limits), use=use, room=room)


def growth(limits: Iterable[ResourceLimit], node: Counted) -> int:
    """How many such nodes all limits together allow, if nothing else is added."""
    return min((limit.room // use for limit in limits if (use := limit.use(node)) > 0), default=UNBOUNDED)


def exhausted(limits: Iterable[ResourceLimit], node: Counted, *, nodes: int = 1) -> tuple[ResourceLimit, ...]:
    """The limits that so many more nodes would break."""
    return tuple(limit for limit in limits if limit.use(node) * nodes > limit.room)


# ---- shrinking


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A least amount, and what there is of it now."""

    resource: str
    used: int
    least: int

    def without(self, node: Counted) -> Floor:
        """The same when a node is gone: removals of one plan draw from one room too."""
        return Floor(resource=self.resource, used=self.used - node.amount(self.resource), least=self.least)

    def __str__(self) -> str:
        used, least = written(self.resource, self.used), written(self.resource, self.least)
        return f"minimal cluster {self.resource} limit reached ({used} left, at least {least} wanted)"


def floors(usage: Usage, policy: Policy) -> tuple[Floor, ...]:
    return tuple(
        Floor(resource=resource, used=usage.total(resource), least=bounds.least)
        for resource, bounds in policy.limits.bounds().items()
        if bounds.least > 0
    )


def broken_floors(limits: Iterable[Floor], node: Counted) -> tuple[Floor, ...]:
    """Those that removing the node would break; a node that has nothing of a resource is not kept for it."""
    return tuple(
        limit for limit in limits if (gone := node.amount(limit.resource)) > 0 and limit.used - gone < limit.least
    )


def written(resource: str, amount: int) -> str:
    """As operators write limits: cores, gibibytes, pieces."""
    if resource == CPU:
        return str(Quantity.of_milli(amount))
    if resource == MEMORY:
        return f"{amount / _GIB:.10g} GiB"
    return str(amount)
