"""What a cluster costs per hour, by node group, and what its pods need at least. Pure.

The bound is a proven one: it drops every rule of the pods but their requests, and no set of machines of these types
that holds the requests costs less. DaemonSet pods count as no demand, because each further machine brings its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import CPU, MEMORY, ResourceVector
from plimsoll.nodes.model.node_labels import NODE_GROUP_KEYS
from plimsoll.nodes.model.prices import estimate_price
from plimsoll.objects.owners import find_controller
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.solver.bounds.lower_bound import compute_lower_bound
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

_TYPES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_GROUPS: Final = tuple(sorted(NODE_GROUP_KEYS))
_RESOURCES: Final = (CPU, MEMORY)
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_EFFORT: Final = Effort(rounds=0)
_MEMORY_UNIT: Final = 1 << 20
_LARGEST_AMOUNT: Final = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyCosts:
    """Money per hour. `estimated` counts nodes whose price no provider gave."""

    cost: float
    bound: float
    groups: Mapping[str, float]
    prices: Mapping[str, float]
    """By node."""
    estimated: int

    @property
    def nodes(self) -> int:
        return len(self.prices)


def compute_hourly_costs(
    nodes: Iterable[Node], pods: Iterable[Pod], machine_types: Sequence[MachineType] = ()
) -> HourlyCosts:
    """The cost of the nodes, and the bound for the pods that are on them."""
    given = {kind.name: kind.price_per_hour for kind in machine_types if kind.price_per_hour is not None}
    groups: dict[str, float] = {}
    offers = {_limit(kind.allocatable): given[kind.name] for kind in machine_types if kind.name in given}
    prices: dict[str, float] = {}
    estimated = 0
    for node in nodes:
        price = given.get(_find_label(node, _TYPES))
        capacity = _read_amounts(node.status.capacity or node.status.allocatable)
        if price is None:
            price, estimated = estimate_price(capacity), estimated + 1
        prices[node.metadata.name] = price
        group = _find_label(node, _GROUPS)
        groups[group] = groups.get(group, 0.0) + price
        room = _limit(_read_amounts(node.status.allocatable or node.status.capacity))
        offers[room] = min(price, offers.get(room, price))
    cost = sum(groups.values())
    return HourlyCosts(
        cost=cost,
        bound=min(cost, _compute_bound(_count_demands(pods, prices), offers)),
        groups=groups,
        prices=prices,
        estimated=estimated,
    )


def _count_demands(pods: Iterable[Pod], nodes: Collection[str]) -> Counter[tuple[int, ...]]:
    """Pods by what they request: those on the nodes that are neither ended nor of a DaemonSet."""
    counted: Counter[tuple[int, ...]] = Counter()
    for pod in pods:
        if pod.spec.node_name not in nodes or pod.status.phase in _ENDED:
            continue
        controller = find_controller(pod.metadata)
        if controller is not None and controller.kind == "DaemonSet":
            continue
        try:
            counted[_limit(compute_pod_demand(pod))] += 1
        except InvalidQuantity:
            continue
    return counted


def _compute_bound(demands: Counter[tuple[int, ...]], offers: Mapping[tuple[int, ...], float]) -> float:
    if not demands or not offers:
        return 0.0
    classes, types = len(demands), len(offers)
    problem = PackingProblem(
        requests=np.array(list(demands), dtype=np.int64),
        counts=np.array(list(demands.values()), dtype=np.int64),
        capacity=np.array(list(offers), dtype=np.int64),
        price=np.array(list(offers.values())),
        allowed=np.ones((types, classes), dtype=np.bool_),
        per_bin=np.full(classes, UNBOUNDED, dtype=np.int64),
        exclusive=np.zeros((classes, 0), dtype=np.bool_),
        available=np.full(types, UNBOUNDED, dtype=np.int64),
        use=np.zeros((types, 0), dtype=np.int64),
        room=np.zeros(0, dtype=np.int64),
    )
    return compute_lower_bound(problem, effort=_EFFORT)


def _limit(amounts: ResourceVector) -> tuple[int, ...]:
    """Millicores and MiB, rounded so that a bound stays one: a demand down, and a room by at most a MiB too."""
    units = (1, _MEMORY_UNIT)
    found = amounts.get_amounts(_RESOURCES)
    return tuple(max(0, min(amount // unit, _LARGEST_AMOUNT)) for amount, unit in zip(found, units, strict=True))


def _read_amounts(quantities: Mapping[str, str | float]) -> ResourceVector:
    amounts, _ = ResourceVector.read_bounded(quantities, path="status.allocatable")
    return amounts


def _find_label(node: Node, keys: tuple[str, ...]) -> str:
    return next((node.metadata.labels[key] for key in keys if key in node.metadata.labels), "")
