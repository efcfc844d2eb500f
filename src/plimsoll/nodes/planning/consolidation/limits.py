"""The limits that consolidation shares between nodes, as columns of numbers: group sizes, minima, disruption budgets.

`SharedLimits.use[N, L]` is what removing a node takes of each limit, `remaining[L]` what is left. Also the price of a
node, and the disruption cost of removing it (Karpenter's weights of deletion cost and priority).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.resources import ResourceVector
from plimsoll.core.value_parsing import read_whole_number
from plimsoll.nodes.config.node_disruption_budgets import (
    EMPTY,
    UNDERUTILIZED,
    UNLIMITED,
    BudgetScope,
    compute_allowed_disruptions,
)
from plimsoll.nodes.model.pod_traits import DELETION_COST
from plimsoll.nodes.model.prices import compute_price
from plimsoll.nodes.planning.scaledown.drainability import DrainOutcome
from plimsoll.nodes.planning.state.resource_limits import CountedNode, find_minimums, measure_usage_of_arrays
from plimsoll.scheduling.priorities import get_priority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.config.node_disruption_budgets import DisruptionBudget
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.planning.scaledown.eligibility import EligibilityChecker
    from plimsoll.nodes.planning.scaledown.problem import ScaleDownProblem
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Flags, Floats, Ints

_COST_SCALE: Final = 2.0**27
_PRIORITY_SCALE: Final = 2.0**25
_MOST_DISTURBING: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedLimits:
    """Limits shared by removals. Only `remaining` changes, in place."""

    use: Ints
    remaining: Ints
    names: tuple[str, ...]
    group: Ints
    """[N]: the number of each node's group; -1 if it has none."""

    def allows(self, row: int) -> bool:
        use = self.use[row]
        return bool(((use <= 0) | (use <= self.remaining)).all())

    def consume(self, row: int) -> None:
        np.subtract(self.remaining, self.use[row], out=self.remaining)

    def find_exhausted_limit(self, row: int) -> str:
        use = self.use[row]
        over = np.flatnonzero((use > 0) & (use > self.remaining))
        return self.names[int(over[0])] if len(over) else ""

    def copy(self) -> SharedLimits:
        return replace(self, remaining=self.remaining.copy())

    def sum_by_group(self, amounts: Floats) -> Floats:
        """[N]: the sum over the group of each node."""
        groups = self.group + 1
        totals = np.bincount(groups, weights=amounts, minlength=int(groups.max(initial=0)) + 1)
        return np.asarray(totals[groups], dtype=np.float64)


def build_shared_limits(
    problem: ScaleDownProblem, checker: EligibilityChecker, budgets: Iterable[DisruptionBudget]
) -> SharedLimits:
    columns = [
        *_read_disruption_budgets(problem),
        *_build_group_limits(problem, checker, tuple(budgets)),
        *_read_minimum_limits(problem, checker.policy),
    ]
    numbers = {group.id: number for number, group in enumerate(checker.snapshot.groups)}
    group_of = checker.snapshot.group_of
    return SharedLimits(
        use=np.column_stack([use for _, use, _ in columns])
        if columns
        else np.zeros((len(problem.arrays), 0), dtype=np.int64),
        remaining=np.array([left for _, _, left in columns], dtype=np.int64),
        names=tuple(name for name, _, _ in columns),
        group=np.array([numbers.get(group_of.get(name, ""), -1) for name in problem.arrays.names], dtype=np.int64),
    )


_Column = tuple[str, "Ints", int]


def _read_disruption_budgets(problem: ScaleDownProblem) -> list[_Column]:
    slots = problem.rules.pdbs
    return [
        (f"disruption budget {slots.get_name(index)} is used up", problem.pdb_use[:, index], int(slots.allowed[index]))
        for index in range(len(slots.allowed))
    ]


def _build_group_limits(
    problem: ScaleDownProblem, checker: EligibilityChecker, budgets: tuple[DisruptionBudget, ...]
) -> list[_Column]:
    names = problem.arrays.names
    group_of = checker.snapshot.group_of
    columns: list[_Column] = []
    empty: Flags = problem.moving == 0
    for room in checker.groups.values():
        name = room.group.id
        ours = np.array([group_of.get(node) == name for node in names], dtype=np.bool_)
        columns.append((f"group {name} would fall below its minimum size", ours.astype(np.int64), room.spare))
        going = sum(
            1
            for row in np.flatnonzero(ours).tolist()
            if problem.pods_by_node.nodes[row].flags.being_deleted or names[row] in checker.state.being_deleted
        )
        for reason, rows in ((EMPTY, ours & empty), (UNDERUTILIZED, ours & ~empty)):
            most = compute_allowed_disruptions(
                budgets, BudgetScope(group=name, size=int(ours.sum()), reason=reason), checker.now
            )
            if most < UNLIMITED:
                what = f"no more than {most} nodes of group {name} are disturbed at once"
                columns.append((what, rows.astype(np.int64), max(most - going, 0)))
    return columns


def _read_minimum_limits(problem: ScaleDownProblem, policy: Policy) -> list[_Column]:
    found = find_minimums(measure_usage_of_arrays(problem.arrays), policy)
    if not found:
        return []
    nodes = [CountedNode.from_node(state.node) for state in problem.arrays.states]
    return [
        (
            str(floor),
            np.array([node.get_amount(floor.resource) for node in nodes], dtype=np.int64),
            max(floor.used - floor.least, 0),
        )
        for floor in found
    ]


def compute_node_prices(problem: ScaleDownProblem, policy: Policy) -> Floats:
    """[N]: the price of each node per hour: the price of its group, or an estimate for a node without a group."""
    groups = {group.id: group for group in problem.snapshot.groups}
    prices: list[float] = []
    for state in problem.arrays.states:
        group = groups.get(problem.snapshot.group_of.get(state.name, ""))
        capacity = (
            CountedNode.from_node(state.node).capacity if group is None or group.price_per_hour is None else _NOTHING
        )
        prices.append(
            compute_price(
                "" if group is None else group.machine_type,
                capacity,
                given=None if group is None else group.price_per_hour,
                exists=True,
                overlay=policy.overlay,
            ).per_hour
        )
    return np.array(prices, dtype=np.float64)


_NOTHING: Final = ResourceVector()


def compute_disruption_costs(problem: ScaleDownProblem) -> Floats:
    """[N]: 1 for the node, plus the disruption cost of each pod that moves."""
    by_kind = np.array(
        [
            compute_pod_disruption_cost(kind.pod) if verdict.outcome is DrainOutcome.MOVE else 0.0
            for kind, verdict in zip(problem.pods_by_node.kinds, problem.statuses, strict=True)
        ],
        dtype=np.float64,
    )
    pods_by_node = problem.pods_by_node
    pods = np.bincount(pods_by_node.row, weights=by_kind[pods_by_node.kind], minlength=len(problem.arrays))
    return np.asarray(1.0 + pods, dtype=np.float64)


def compute_pod_disruption_cost(pod: Pod) -> float:
    """1, adjusted by priority and pod deletion cost; never below 0."""
    cost = read_whole_number(pod.metadata.annotations.get(DELETION_COST, "0"), least=-(2**31)) or 0
    worth = 1.0 + cost / _COST_SCALE + get_priority(pod) / _PRIORITY_SCALE
    return min(max(worth, 0.0), _MOST_DISTURBING)
