"""Bin packing: demand slices onto existing and planned nodes, then onto new ones, through the solver.

`pack_slices(view, slices, packing)` translates slices into numbers for the solver, and its answer into a placement.
What does not fit is left over. Order of service and the split of a class into slices are decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement, merge_pods
from plimsoll.solver.filling.fill import ExistingNodes, FillDemand, FillResult, fill, order_most_constrained_first
from plimsoll.solver.pack import pack
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice
    from plimsoll.nodes.planning.packing.placement_view import PlacementView
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Flags, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedClasses:
    """Classes whose plan the verifier refused. They are placed pod by pod, or not at all if that failed too."""

    pod_by_pod: frozenset[int] = frozenset()
    given_up: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingOptions:
    """The options of a packing: its effort, and the scale-up options that may be used."""

    effort: Effort = field(default_factory=Effort)
    usable: Flags
    """[T]"""
    failed: FailedClasses = field(default_factory=FailedClasses)
    is_last: bool = True
    """No pods are placed afterwards, so all new nodes may be filled evenly to any height."""


def pack_slices(view: PlacementView, slices: Sequence[DemandSlice], packing: PackingOptions) -> tuple[Placement, Ints]:
    """The placement with the slices placed, and [S] pods that were not placed."""
    placement = view.placement
    left = np.array([demand_slice.items for demand_slice in slices], dtype=np.int64)
    if not slices:
        return placement, left
    if len(view.problem.arrays) or placement.batches:
        placement, left = _fill_nodes(view, slices, left)
    for tier in sorted({option.tier for option in view.problem.options}):
        if left.any():
            in_tier = np.array([option.tier == tier for option in view.problem.options], dtype=np.bool_)
            placement, left = _open_nodes(
                view.problem, slices, left, placement, replace(packing, usable=packing.usable & in_tier)
            )
    return placement, left * np.array([demand_slice.pods_per_item for demand_slice in slices], dtype=np.int64)


# ---- existing and planned nodes


def _fill_nodes(view: PlacementView, slices: Sequence[DemandSlice], items: Ints) -> tuple[Placement, Ints]:
    problem, placement = view.problem, view.placement
    rows = len(problem.arrays)
    batches = np.stack([demand_slice.places.batches for demand_slice in slices])
    allowed = np.concatenate((np.stack([demand_slice.places.rows for demand_slice in slices]), batches), axis=1).T
    demand = FillDemand(
        requests=_build_requests(problem, slices),
        counts=items,
        allowed=allowed,
        per_bin=np.array(
            [
                UNBOUNDED if demand_slice.rises else max(1, demand_slice.per_node // demand_slice.pods_per_item)
                for demand_slice in slices
            ],
            dtype=np.int64,
        ),
        exclusive=_find_exclusive(slices),
        tighter=_find_tighter_caps(slices),
    )
    free = np.concatenate((placement.compute_free_rows(problem), placement.compute_free_batches(problem)))
    sizes = np.array([1] * rows + [batch.nodes for batch in placement.batches], dtype=np.int64)
    standing = ExistingNodes(free=np.maximum(free, 0), kind=np.arange(len(free), dtype=np.int64), multiplicity=sizes)
    class_order = _rank_slices(problem, slices, _count_allowed_nodes(sizes, allowed))
    answer = fill(demand, standing, order_most_constrained_first(demand, standing, class_order))
    return _add_filled(placement, slices, answer, rows), answer.left


def _count_allowed_nodes(sizes: Ints, allowed: Flags) -> Ints:
    """[S]: the number of nodes that accept each slice. Floats are exact here and much faster."""
    return np.asarray(sizes.astype(np.float64) @ allowed.astype(np.float64), dtype=np.int64)


def _rank_slices(problem: ScaleUpProblem, slices: Sequence[DemandSlice], choice: Ints) -> Ints:
    """[S]: the rank by priority, then by fewest choices: no new nodes, few existing nodes, few options."""
    options = np.stack([demand_slice.places.options for demand_slice in slices]).sum(axis=1).tolist()
    ranked = [
        (-problem.table.classes[demand_slice.number].priority, new > 0, int(nodes), new)
        for demand_slice, new, nodes in zip(slices, options, choice, strict=True)
    ]
    rank_of = {key: rank for rank, key in enumerate(sorted(set(ranked)))}
    return np.array([rank_of[key] for key in ranked], dtype=np.int64)


def _add_filled(placement: Placement, slices: Sequence[DemandSlice], answer: FillResult, rows: int) -> Placement:
    added = _collect_contents(slices, answer)
    existing = dict(placement.existing)
    for row in (part for part in added if part < rows):
        before = existing.get(row)
        existing[row] = added[row] if before is None else merge_pods(before, added[row])
    batches: list[NodeBatch] = []
    # Rows of existing nodes stand for one node and are never split; batches and parts of them follow.
    for part, origin in enumerate(answer.origin[rows:].tolist(), start=rows):
        if nodes := int(answer.multiplicity[part]):
            batch = placement.batches[origin - rows]
            batches.append(replace(batch, nodes=nodes, content=merge_pods(batch.content, added.get(part, {}))))
    return replace(placement, existing={row: existing[row] for row in sorted(existing)}, batches=tuple(batches))


def _collect_contents(slices: Sequence[DemandSlice], answer: FillResult) -> dict[int, dict[int, int]]:
    """Each row of the result to pods by class per node, both ascending; slices of one class are added up."""
    if not len(answer.placements):
        return {}
    rows, indices, items = answer.placements.T
    numbers = np.array([demand_slice.number for demand_slice in slices], dtype=np.int64)
    pods_per_item = np.array([demand_slice.pods_per_item for demand_slice in slices], dtype=np.int64)
    classes = int(numbers.max()) + 1
    cells = rows * classes + numbers[indices]
    order = np.argsort(cells, kind="stable")
    cells, first = np.unique(cells[order], return_index=True)
    pods = np.add.reduceat((items * pods_per_item[indices])[order], first).tolist()
    found, starts = np.unique(cells // classes, return_index=True)
    ends = [*starts[1:].tolist(), len(cells)]
    names = (cells % classes).tolist()
    return {
        row: dict(zip(names[start:end], pods[start:end], strict=True))
        for row, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True)
    }


def _find_tighter_caps(slices: Sequence[DemandSlice]) -> Ints | None:
    entries = [
        (index, row, int(demand_slice.caps[row]))
        for index, demand_slice in enumerate(slices)
        if demand_slice.caps is not None
        for row in np.flatnonzero(np.concatenate((demand_slice.places.rows, demand_slice.places.batches))).tolist()
    ]
    return np.array(entries, dtype=np.int64).reshape(-1, 3) if entries else None


# ---- new nodes


def _open_nodes(
    problem: ScaleUpProblem, slices: Sequence[DemandSlice], items: Ints, onto: Placement, packing: PackingOptions
) -> tuple[Placement, Ints]:
    """Pack onto new nodes. Groups that are resized as a whole are used only if no cheaper option schedules as many."""
    placement, left = _complete_atomic_groups(problem, slices, items, onto, packing)
    whole = np.array([option.zero_or_max for option in problem.options], dtype=np.bool_)
    if (
        not placement.count_new_nodes(len(problem.options))[whole].any()
        or onto.count_new_nodes(len(problem.options))[whole].any()
    ):
        return placement, left
    other, other_left = _pack_new_nodes(problem, slices, items, onto, replace(packing, usable=packing.usable & ~whole))
    if (other_left <= left).all() and other.compute_cost(problem) < placement.compute_cost(problem):
        return other, other_left
    return placement, left


def _complete_atomic_groups(
    problem: ScaleUpProblem, slices: Sequence[DemandSlice], items: Ints, onto: Placement, packing: PackingOptions
) -> tuple[Placement, Ints]:
    """Add the idle nodes of groups that are resized to their maximum or not at all."""
    while True:
        placement, left = _pack_new_nodes(problem, slices, items, onto, packing)
        missing = (problem.available - placement.count_new_nodes(len(problem.options))) * (
            placement.count_new_nodes(len(problem.options)) > 0
        )
        idle = [
            (int(missing[option]), option)
            for option in np.flatnonzero(missing).tolist()
            if problem.options[option].zero_or_max
        ]
        batches = [NodeBatch(option=option, nodes=nodes, content={}) for nodes, option in idle]
        filled = replace(placement, batches=(*placement.batches, *batches))
        if (filled.count_new_nodes(len(problem.options)) @ problem.limits.use <= problem.limits.room).all():
            return filled, left
        packing = replace(packing, usable=packing.usable & (np.arange(len(problem.options)) != max(idle)[1]))


def _pack_new_nodes(
    problem: ScaleUpProblem, slices: Sequence[DemandSlice], items: Ints, onto: Placement, packing: PackingOptions
) -> tuple[Placement, Ints]:
    chosen = np.flatnonzero(items)
    types = np.flatnonzero(packing.usable)
    if not len(types):
        return onto, items
    packed = [slices[index] for index in chosen.tolist()]
    packing_problem = PackingProblem(
        requests=_build_requests(problem, packed),
        counts=items[chosen],
        capacity=problem.capacity[types],
        price=problem.planning_prices[types],
        allowed=np.stack([demand_slice.places.options[types] for demand_slice in packed], axis=1),
        per_bin=np.array(
            [max(1, demand_slice.per_node // demand_slice.pods_per_item) for demand_slice in packed], dtype=np.int64
        ),
        exclusive=_find_exclusive(packed),
        available=np.minimum(problem.available - onto.count_new_nodes(len(problem.options)), UNBOUNDED)[types],
        use=problem.limits.use[types],
        room=onto.compute_room_left(problem),
    )
    found = pack(packing_problem, packing.effort)
    answer = found.packing
    left = items.copy()
    left[chosen] = answer.left
    batches = [
        NodeBatch(
            option=int(types[pattern.type]),
            nodes=pattern.bins,
            content=_count_items(
                (packed[index], count) for index, count in zip(pattern.classes, pattern.items, strict=True)
            ),
        )
        for pattern in answer.patterns
    ]
    # Dual values for a part of the options are not a bound for the others.
    item_values = {}
    if len(types) == len(problem.options):
        item_values = {**onto.item_values, **_compute_values(packed, items[chosen] - answer.left, found.item_values)}
    return replace(onto, batches=(*onto.batches, *batches), item_values=item_values), left


def _compute_values(slices: Sequence[DemandSlice], items: Ints, item_values: Floats) -> dict[int, float]:
    """The dual value of one pod per class; the mean over the slices of the class."""
    pods: dict[int, int] = {}
    total: dict[int, float] = {}
    for demand_slice, count, value in zip(slices, items.tolist(), item_values.tolist(), strict=True):
        pods[demand_slice.number] = pods.get(demand_slice.number, 0) + count * demand_slice.pods_per_item
        total[demand_slice.number] = total.get(demand_slice.number, 0.0) + count * value
    return {number: total[number] / pods[number] for number in pods if pods[number]}


def _count_items(items: Iterable[tuple[DemandSlice, int]]) -> dict[int, int]:
    content: dict[int, int] = {}
    for demand_slice, count in items:
        content[demand_slice.number] = content.get(demand_slice.number, 0) + count * demand_slice.pods_per_item
    return merge_pods(content, {})


def _build_requests(problem: ScaleUpProblem, slices: Sequence[DemandSlice]) -> Ints:
    numbers = [demand_slice.number for demand_slice in slices]
    pods_per_item = np.array([demand_slice.pods_per_item for demand_slice in slices], dtype=np.int64)
    return problem.requests[numbers] * pods_per_item[:, None]


def _find_exclusive(slices: Sequence[DemandSlice]) -> Flags:
    keys: dict[str, int] = {}
    for demand_slice in slices:
        for key in demand_slice.keys:
            keys.setdefault(key, len(keys))
    found = np.zeros((len(slices), len(keys)), dtype=np.bool_)
    for index, demand_slice in enumerate(slices):
        for key in demand_slice.keys:
            found[index, keys[key]] = True
    return found
