"""Everything that one scale-up plan is computed from: pod classes, predicates, options and limits, built once.

`ScaleUpProblem.from_snapshot(snapshot, policy)`. Rows are existing nodes [N], options are kinds of nodes that could be
added [T], classes are pods that every rule treats alike [C]. Amounts are in the columns of `names`: cpu, memory, then
all other requested resources. Nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.resources import CPU, MEMORY
from plimsoll.nodes.config.policy import PRIORITY, Planner
from plimsoll.nodes.model.planner_cache import PlannerCache
from plimsoll.nodes.model.prices import are_prices_known
from plimsoll.nodes.planning.autoprovisioning.requirements import RequirementReader
from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable
from plimsoll.nodes.planning.equivalence.scheduling_keys import get_pending_keys
from plimsoll.nodes.planning.predicates.extra_constraints import (
    find_allowed_options,
    find_reserved_nodes,
    reserve_gpu_nodes,
)
from plimsoll.nodes.planning.predicates.predicates import Predicates
from plimsoll.nodes.planning.predicates.static_predicates import get_refusal_cache
from plimsoll.nodes.planning.problem.group_priorities import assign_tiers
from plimsoll.nodes.planning.problem.options import ScaleUpOptions, find_options
from plimsoll.nodes.planning.problem.queue import QueuePosition, compute_queue_positions, order_classes
from plimsoll.nodes.planning.state.node_arrays import NodeArrays, NodeArraysCache
from plimsoll.nodes.planning.state.resource_limits import LimitMatrix, build_limit_matrix, measure_usage_of_arrays
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.equivalence.scheduling_keys import SchedulingKeys
    from plimsoll.nodes.planning.predicates.extra_constraints import ReservedNodes
    from plimsoll.scheduling.storage import Storage
    from plimsoll.solver.problem import Flags, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleUpProblem:
    """One snapshot under one policy."""

    snapshot: Snapshot
    policy: Policy
    planner: Planner
    table: ClassTable
    arrays: NodeArrays
    rules: Predicates
    """The predicates over existing nodes."""
    option_set: ScaleUpOptions
    option_arrays: NodeArrays
    option_rules: Predicates
    """The predicates over one empty node per option."""
    names: tuple[str, ...]
    requests: Ints
    """[C, R]"""
    free: Ints
    """[N, R]: free resources of existing nodes."""
    capacity: Ints
    """[T, R]: the capacity of an empty node."""
    allowed: Flags
    """[T, C]: whether a pod of the class may run on such a node, regardless of other pods."""
    reserved: ReservedNodes | None
    """Existing nodes that some classes are kept off, although the rules would allow them."""
    limits: LimitMatrix
    queue: tuple[QueuePosition, ...]
    """[P]: the queue position of each pending entry."""
    class_order: tuple[int, ...]
    """[C]: the rank of each class in the queue, by its first pod."""

    @classmethod
    def from_snapshot(
        cls,
        snapshot: Snapshot,
        policy: Policy,
        cache: PlannerCache | None = None,
        *,
        scheduling_keys: SchedulingKeys | None = None,
    ) -> ScaleUpProblem:
        """`scheduling_keys` is set if the pods are not the pending pods of the cluster."""
        known = cache or snapshot.cache or PlannerCache()
        arrays_cache = known.get(NodeArraysCache)
        avoided = arrays_cache.update(snapshot.view).running_pods.collect_visible_labels()
        table = ClassTable.build(
            snapshot.pending,
            snapshot.view,
            scheduling_keys=scheduling_keys or get_pending_keys(known),
            visible_to_running=avoided,
        )
        arrays = arrays_cache.update(snapshot.view, resources=table.resources)
        planner = _choose_planner(snapshot, policy)
        reader = RequirementReader.from_snapshot(snapshot, policy)
        option_set = _group_into_tiers(
            find_options(snapshot, policy, planner=planner, usage=measure_usage_of_arrays(arrays), reader=reader),
            policy,
        )
        option_arrays = NodeArrays.from_states(
            [_build_empty_node(option) for option in option_set.options], resources=table.resources
        )
        rules = Predicates(table, arrays, snapshot.view, refusal_cache=get_refusal_cache(known))
        option_rules = Predicates(table, option_arrays, snapshot.view, refusal_cache=get_refusal_cache(known))
        names = (CPU, MEMORY, *(name for name in table.resources if name not in {CPU, MEMORY}))
        queue = compute_queue_positions(table.pending)
        drivers = _find_limited_drivers(snapshot.view.storage, rules, option_rules)
        allowed = _find_allowed(option_rules, option_set.options, policy, reader)
        pods = [pod_class.pod for pod_class in table]
        return cls(
            snapshot=snapshot,
            policy=policy,
            planner=planner,
            table=table,
            arrays=arrays,
            rules=rules,
            option_set=option_set,
            option_arrays=option_arrays,
            option_rules=option_rules,
            names=(*names, *drivers),
            requests=np.hstack((_build_columns(rules.requests, arrays, names), _count_attachments(rules, drivers))),
            free=np.hstack(
                (np.maximum(_build_columns(arrays.free, arrays, names), 0), _count_attachable(rules, drivers))
            ),
            capacity=np.hstack(
                (
                    np.maximum(_build_columns(option_arrays.free, option_arrays, names), 0),
                    _count_attachable(option_rules, drivers),
                )
            ),
            allowed=allowed,
            reserved=find_reserved_nodes(arrays.states, allowed, option_set.options, pods),
            limits=build_limit_matrix(option_set.ceilings, option_set.options),
            queue=tuple(queue),
            class_order=order_classes(queue, table.class_of.tolist()),
        )

    @property
    def options(self) -> tuple[ScaleUpOption, ...]:
        return self.option_set.options

    @property
    def prices(self) -> Floats:
        """[T]: prices in currency, without tiers."""
        return np.array([option.price_per_hour for option in self.options], dtype=np.float64)

    @property
    def planning_prices(self) -> Floats:
        return np.array([option.planning_price for option in self.options], dtype=np.float64)

    @property
    def available(self) -> Ints:
        """[T]: nodes that each option allows by itself."""
        return np.array([min(option.room, UNBOUNDED) for option in self.options], dtype=np.int64)


def _choose_planner(snapshot: Snapshot, policy: Policy) -> Planner:
    """The planner to use. Bundles need the optimal planner, whatever the expander: it plans all groups at once."""
    if any(pending.bundle for pending in snapshot.pending):
        return Planner.OPTIMAL
    return policy.planning.choose_planner(prices_are_known=are_prices_known(snapshot, policy.overlay))


def _group_into_tiers(option_set: ScaleUpOptions, policy: Policy) -> ScaleUpOptions:
    if not policy.priorities or PRIORITY not in policy.planning.expander:
        return option_set
    kept, left_out = assign_tiers(option_set.options, policy.priorities)
    return replace(option_set, options=kept, skipped_groups=(*option_set.skipped_groups, *left_out))


def _build_empty_node(option: ScaleUpOption) -> NodeState:
    return NodeState(option.node).with_pods(PlacedPod(daemon) for daemon in option.daemons)


def _build_columns(amounts: Ints, arrays: NodeArrays, names: Sequence[str]) -> Ints:
    found = np.zeros((len(amounts), len(names)), dtype=np.int64)
    for column, name in enumerate(names):
        if name in arrays.columns.index:
            found[:, column] = amounts[:, arrays.columns.index[name]]
    return found


# ---- attach limits: one more column per driver with limits


def _find_limited_drivers(storage: Storage, rules: Predicates, option_rules: Predicates) -> tuple[str, ...]:
    """Drivers that pending pods use and that some node or option limits."""
    using = [pod_class.index for pod_class in rules.table if pod_class.volumes and pod_class.problem is None]
    if not storage.csi_nodes or not using:
        return ()
    wanted = [rules.node_predicates.attach_demand(number) for number in using]
    requested = {driver for demand in wanted for driver in (*demand.own, *(driver for driver, _ in demand.shared))}
    limited = {*rules.node_predicates.attach_limits.limits, *option_rules.node_predicates.attach_limits.limits}
    return tuple(sorted(requested & limited))


def _count_attachments(rules: Predicates, drivers: Sequence[str]) -> Ints:
    """[C, D]: the attachments that one pod of a class needs."""
    found = np.zeros((len(rules.table), len(drivers)), dtype=np.int64)
    for pod_class in rules.table if drivers else ():
        if pod_class.volumes and pod_class.problem is None:
            found[pod_class.index] = [
                rules.node_predicates.attach_demand(pod_class.index).compute_amount(driver, pod_class.count)
                for driver in drivers
            ]
    return found


def _count_attachable(rules: Predicates, drivers: Sequence[str]) -> Ints:
    """[N, D]: the attachments that each row still allows."""
    left = [rules.node_predicates.attach_limits.count_left(driver) for driver in drivers]
    return np.stack(left, axis=1) if left else np.zeros((len(rules.arrays), 0), dtype=np.int64)


def _find_allowed(
    rules: Predicates, option_set: Sequence[ScaleUpOption], policy: Policy, reader: RequirementReader
) -> Flags:
    """[T, C]: by the rules of an empty node with its daemons. Spread and affinity are left to the packing."""
    table = rules.table
    if not option_set or not len(table):
        return np.zeros((len(option_set), len(table)), dtype=np.bool_)
    fitting = rules.node_predicates.find_fitting_of_all(range(len(table)), rules.arrays.free, {})
    by_rules = np.ascontiguousarray(fitting.T)
    for pod_class in table:
        if pod_class.problem is None and (pod_class.has_anti_affinity or rules.arrays.running_pods.anti_affinity_rows):
            _, avoided, avoiding = rules.find_affinity_conflicts(pod_class.index, {})
            by_rules[:, pod_class.index] &= ~(avoided | avoiding)
    pods = [pod_class.pod for pod_class in table]
    allowed: Flags = by_rules & find_allowed_options(option_set, pods, policy, reader)
    return reserve_gpu_nodes(allowed, option_set, pods)
