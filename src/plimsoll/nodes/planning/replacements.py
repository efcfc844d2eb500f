"""Cheaper nodes instead of dear ones: the growth that would hold the pods of a set of nodes, were these gone. Pure.

For `consolidation`. The set is taken out of the snapshot, its pods are put among the pending, and `plan_scale_up`,
which verifies its plans, says what to add. Nothing else that is pending is planned for here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.homes import off_its_node
from plimsoll.nodes.planning.scale_up import plan_scale_up
from plimsoll.nodes.planning.world import Pending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.occupancy import Occupancy
    from plimsoll.nodes.planning.results import ScaleUp
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.policy import Policy
    from plimsoll.scheduling.view import PlacedPod, PodKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """First the growth, then, when it is there, the nodes that go."""

    nodes: tuple[str, ...]
    pods: tuple[PodKey, ...]
    """To evict."""
    plan: ScaleUp
    """Keys of its pods are NAMESPACE/NAME of one of those that are alike."""
    cost_per_hour: float


def replacement_of(
    occupancy: Occupancy,
    policy: Policy,
    rows: Sequence[int],
    *,
    gone: Sequence[int],
    lodgers: Mapping[int, Sequence[tuple[PlacedPod, int]]],
) -> Replacement | None:
    """None when not every pod of these nodes would have a place."""
    without = _without(occupancy, {*rows, *gone}, lodgers)
    pods = [(placed, kind) for row in rows for placed, kind in _moving(occupancy, row)]
    by_kind: dict[int, list[PlacedPod]] = {}
    for placed, kind in pods:
        by_kind.setdefault(kind, []).append(placed)
    pending = tuple(
        Pending(
            key=str(listed[0].key),
            pod=off_its_node(listed[0].pod),
            count=len(listed),
            names=tuple(one.key.name for one in listed),
        )
        for listed in by_kind.values()
    )
    plan = plan_scale_up(replace(without, pending=pending), policy)
    if plan.remaining or plan.helped < len(pods):
        return None
    names = occupancy.arrays.names
    return Replacement(
        nodes=tuple(names[row] for row in rows),
        pods=tuple(placed.key for placed, _ in pods),
        plan=plan,
        cost_per_hour=plan.cost_per_hour,
    )


def _moving(occupancy: Occupancy, row: int) -> list[tuple[PlacedPod, int]]:
    moving = {placed.key for placed, _ in occupancy.to_move(row)}
    return [(placed, kind) for placed, kind in occupancy.homes.pods(row) if placed.key in moving]


def _without(occupancy: Occupancy, rows: set[int], lodgers: Mapping[int, Sequence[tuple[PlacedPod, int]]]) -> Snapshot:
    """The snapshot when these nodes are gone, and pods that were moved are where they went."""
    snapshot, names = occupancy.snapshot, occupancy.arrays.names
    gone = {names[row] for row in rows}
    view = snapshot.view.without_nodes(gone)
    view = view.with_states(
        view.nodes[names[row]].with_pods(placed for placed, _ in listed)
        for row, listed in lodgers.items()
        if row not in rows
    )
    lost = Counter(snapshot.group_of.get(name, "") for name in gone)
    return replace(
        snapshot,
        view=view,
        groups=tuple(replace(one, target_size=max(one.target_size - lost[one.id], 0)) for one in snapshot.groups),
        group_of={name: group for name, group in snapshot.group_of.items() if name not in gone},
    )
