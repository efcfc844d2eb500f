"""Which nodes are eligible for removal, and why the others are unremovable (docs/design/nodes.md 5.2, 6.8). Pure.

Reasons are Cluster Autoscaler's words for unremovable nodes. Pods are considered only through utilization; whether they
can move elsewhere is decided by the simulator.

Utilization is the share of GPUs on nodes that have some, elsewhere the larger share of cpu and memory. Pods that are
terminating for too long are not counted. Placeholder pods are counted separately. Daemon and mirror pods may be
ignored, and then what they request is subtracted from the capacity too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.core.resources import CPU, MEMORY
from plimsoll.nodes.model.gpus import is_gpu
from plimsoll.nodes.planning.problem.options import NOT_AUTOSCALED
from plimsoll.nodes.planning.scaledown.drainability import is_overdue
from plimsoll.nodes.planning.state.group_sizes import find_size_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy, ScaleDown
    from plimsoll.nodes.model.snapshot import NodeGroup, Snapshot
    from plimsoll.nodes.planning.scaledown.drainability import ControllerInfo, ControllerKey
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.nodes.planning.state.node_pods import NodePods, PodsByNode
    from plimsoll.scheduling.cluster_view import PodKey
    from plimsoll.solver.problem import Flags, Floats, Ints


CURRENTLY_BEING_DELETED: Final = "CurrentlyBeingDeleted"
DISABLED_ANNOTATION: Final = "ScaleDownDisabledAnnotation"
UNREADY_DISABLED: Final = "ScaleDownUnreadyDisabled"
MIN_SIZE_REACHED: Final = "NodeGroupMinSizeReached"
NOT_UNDERUTILIZED: Final = "NotUnderutilized"
RECENTLY_UNREMOVABLE: Final = "RecentlyUnremovable"
NOT_STARTED: Final = "NotStarted"
BOOKED: Final = "BookedCapacity"
UNREADABLE: Final = "UnexpectedError"
MANAGED_BY_KARPENTER: Final = "ManagedByKarpenter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownState:
    """What the controller remembers between loop iterations, and what it looked up; all of it is optional."""

    unneeded_since: Mapping[str, datetime] = field(default_factory=dict)
    """Node to the time since when it has been unneeded without a break."""
    unremovable_until: Mapping[str, datetime] = field(default_factory=dict)
    """Node to the time until which it counts as recently unremovable."""
    controllers: Mapping[ControllerKey, ControllerInfo] = field(default_factory=dict)
    hints: Mapping[PodKey, str] = field(default_factory=dict)
    """Pod to the node on which it fit in the last simulation."""
    postponed: tuple[str, ...] = ()
    """Nodes that the last simulation had no effort left for, in its order: they come first now."""
    being_deleted: frozenset[str] = frozenset()
    """Nodes being deleted that may not be tainted yet."""
    deletions: Mapping[str, int] | None = None
    """Group to deletions that its target size does not include yet; None: all nodes being deleted."""
    unready: frozenset[str] = frozenset()
    """Nodes that count as unready regardless of their condition: startup taints, missing devices."""
    booked: frozenset[str] = frozenset()
    """Nodes held for a provisioning request."""
    removals_under_way: int = 0
    drains_under_way: int = 0
    """The drains among these deletions."""


def add_bookings(known: ScaleDownState, pods_by_node: PodsByNode) -> ScaleDownState:
    """The state with the nodes that hold booked pods in this snapshot, including the latest bookings."""
    rows = pods_by_node.find_placeholder_rows().tolist()
    return replace(known, booked=known.booked | {pods_by_node.states[row].name for row in rows}) if rows else known


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkableGroup:
    """A group, and how many of its nodes may be removed."""

    group: NodeGroup
    spare: int


def find_shrinkable_groups(
    snapshot: Snapshot, policy: Policy, known: ScaleDownState, pods_by_node: PodsByNode
) -> dict[str, ShrinkableGroup]:
    """Groups that may be scaled down, by id. Groups that are not autoscaled are missing."""
    leaving = Counter(
        snapshot.group_of.get(node_pods.state.name, "")
        for node_pods in pods_by_node.nodes
        if node_pods.flags.being_deleted or node_pods.state.name in known.being_deleted
    )
    found: dict[str, ShrinkableGroup] = {}
    for group in snapshot.groups:
        sizes = find_size_bounds(group, policy)
        if sizes is not None:
            going = leaving[group.id] if known.deletions is None else known.deletions.get(group.id, 0)
            found[group.id] = ShrinkableGroup(group=group, spare=max(group.target_size - going - sizes.least, 0))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibilityChecker:
    """The eligibility rules, in order."""

    snapshot: Snapshot
    policy: Policy
    state: ScaleDownState
    groups: Mapping[str, ShrinkableGroup]
    now: datetime

    def find_unremovable_reasons(self, pods_by_node: Sequence[NodePods]) -> list[Reason | None]:
        """Why each node is not a candidate. Nodes to which no rule can apply are not checked one by one."""
        known, group_of = self.state, self.snapshot.group_of
        noted = known.being_deleted | known.unready | known.booked
        shrinking = {name for name, room in self.groups.items() if room.spare > 0}
        return [
            None
            if (
                node_pods.flags.is_plain
                and group_of.get(node_pods.state.name, "") in shrinking
                and node_pods.state.name not in noted
                and not node_pods.state.problem
            )
            else self.find_unremovable_reason(node_pods)
            for node_pods in pods_by_node
        ]

    def find_unremovable_reason(self, node_pods: NodePods) -> Reason | None:
        """Why the node is not a candidate, regardless of its pods; None if it may be one."""
        state, flags = node_pods.state, node_pods.flags
        if flags.being_deleted or state.name in self.state.being_deleted:
            return Reason(code=CURRENTLY_BEING_DELETED, message="it is being deleted")
        if flags.upcoming:
            return Reason(code=NOT_STARTED, message="it has not joined yet")
        if flags.scale_down_disabled:
            return Reason(code=DISABLED_ANNOTATION, message="annotated scale-down-disabled")
        if flags.karpenter_pool:
            message = f"it is Karpenter's, of NodePool {flags.karpenter_pool}"
            return Reason(code=MANAGED_BY_KARPENTER, message=message, facts={"nodePool": flags.karpenter_pool})
        room = self.groups.get(self.snapshot.group_of.get(state.name, ""))
        if room is None:
            return Reason(code=NOT_AUTOSCALED, message="its group is not autoscaled")
        if room.spare <= 0:
            message = f"group {room.group.id} is at its minimum size"
            return Reason(code=MIN_SIZE_REACHED, message=message, facts={"group": room.group.id})
        if state.problem:
            return Reason(code=UNREADABLE, message=state.problem)
        if not self.policy.scale_down.unready_enabled and not self.is_ready(node_pods):
            return Reason(code=UNREADY_DISABLED, message="it is not ready, and unready nodes are left alone")
        if state.name in self.state.booked:
            return Reason(code=BOOKED, message="it is held for a provisioning request")
        return None

    def is_ready(self, node_pods: NodePods) -> bool:
        return node_pods.flags.ready and node_pods.state.name not in self.state.unready

    def build_booked_reason(self, row: int, utilization: Utilization) -> Reason:
        """The reason of a booked node: its utilization, and the share that is only booked."""
        used, booked = float(utilization.share[row]), float(utilization.booked[row])
        message = "it is held for a provisioning request"
        if booked:
            message += f": of {utilization.resource[row]} {booked:.1%} is booked and {used:.1%} used"
        return Reason(code=BOOKED, message=message, facts={"utilization": used, "booked": booked})

    def check_utilization(self, row: int, utilization: Utilization) -> Reason | None:
        if utilization.is_low[row]:
            return None
        share, limit = float(utilization.share[row]), float(utilization.threshold[row])
        message = f"{utilization.resource[row]} is used to {share:.1%}, more than {limit:.1%}"
        return Reason(code=NOT_UNDERUTILIZED, message=message, facts={"utilization": share, "threshold": limit})

    def check_recently_unremovable(self, name: str) -> Reason | None:
        until = self.state.unremovable_until.get(name)
        if until is None or until <= self.now:
            return None
        return Reason(code=RECENTLY_UNREMOVABLE, message="no place was found for its pods a short while ago")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Utilization:
    """Utilization by row [N]. A node without allocatable cpu, memory or GPUs has utilization 0."""

    share: Floats
    resource: tuple[str, ...]
    """The resource with the largest share."""
    is_gpu: Flags
    threshold: Floats
    is_low: Flags
    """Whether the share is at or below the threshold."""
    booked: Floats
    """The share of the same resource that is reserved for requests; not included in `share`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UtilizationThresholds:
    """Thresholds by row [N], because a provider may override the options per group."""

    plain: Floats
    gpu: Floats
    ignores_daemons: Flags
    ignores_mirrors: bool

    @classmethod
    def from_options(
        cls, arrays: NodeArrays, options: ScaleDown, snapshot: Snapshot | None = None
    ) -> UtilizationThresholds:
        rows = len(arrays)
        plain = np.full(rows, options.utilization_threshold)
        gpu = np.full(rows, options.gpu_utilization_threshold)
        ignores = np.full(rows, options.ignore_daemon_sets, dtype=np.bool_)
        message = (
            {} if snapshot is None else {group.id: group.shrinking for group in snapshot.groups if group.shrinking}
        )
        if snapshot is not None and message:
            for row, name in enumerate(arrays.names):
                own = message.get(snapshot.group_of.get(name, ""))
                if own is not None:
                    plain[row], gpu[row] = own.utilization_threshold, own.gpu_utilization_threshold
                    ignores[row] = own.ignore_daemon_sets
        return cls(plain=plain, gpu=gpu, ignores_daemons=ignores, ignores_mirrors=options.ignore_mirror_pods)


def compute_utilization(
    arrays: NodeArrays, pods_by_node: PodsByNode, *, rules: UtilizationThresholds, now: datetime
) -> Utilization:
    """The utilization of all nodes; all arguments are about the same view."""
    allocatable = arrays.alloc.astype(np.float64)
    requested = allocatable - arrays.free
    overdue = np.zeros(len(pods_by_node.kinds), dtype=np.bool_)
    overdue[
        [number for number in pods_by_node.terminating_kinds if is_overdue(pods_by_node.kinds[number].pod, now)]
    ] = True
    requested -= _sum_requests(arrays, pods_by_node, overdue)
    booked = np.zeros(len(pods_by_node.kinds), dtype=np.bool_)
    booked[list(pods_by_node.placeholder_kinds)] = True
    reserved = _sum_requests(arrays, pods_by_node, booked)
    requested -= reserved
    excluded = _sum_excluded(arrays, pods_by_node, rules, overdue)
    shares = _compute_shares(requested - excluded, allocatable - excluded)
    reserved_shares = _compute_shares(reserved, allocatable - excluded)
    names = arrays.columns.names
    gpus = [column for column, name in enumerate(names) if is_gpu(name)]
    plain = [arrays.columns.index[CPU], arrays.columns.index[MEMORY]]
    has_gpu: Flags = np.asarray((arrays.alloc[:, gpus] > 0).any(axis=1), dtype=np.bool_)
    deciding = np.where(has_gpu, _find_largest_column(shares, gpus), _find_largest_column(shares, plain))
    rows = np.arange(len(arrays))
    share = shares[rows, deciding]
    threshold = np.where(has_gpu, rules.gpu, rules.plain)
    return Utilization(
        share=share,
        resource=tuple(names[column] for column in deciding.tolist()),
        is_gpu=has_gpu,
        threshold=threshold,
        is_low=np.asarray(share <= threshold, dtype=np.bool_),
        booked=reserved_shares[rows, deciding],
    )


def _sum_excluded(arrays: NodeArrays, pods_by_node: PodsByNode, rules: UtilizationThresholds, overdue: Flags) -> Floats:
    """[N, R]: requests of pods that do not count: mirror pods on all rows, daemon pods on some."""
    everywhere = np.array(
        [pod_kind.is_mirror and rules.ignores_mirrors for pod_kind in pods_by_node.kinds], dtype=np.bool_
    )
    taken = _sum_requests(arrays, pods_by_node, everywhere & ~overdue)
    if rules.ignores_daemons.any():
        daemons = np.array([pod_kind.is_daemon for pod_kind in pods_by_node.kinds], dtype=np.bool_)
        taken += _sum_requests(arrays, pods_by_node, daemons & ~everywhere & ~overdue) * rules.ignores_daemons[:, None]
    return taken


def _sum_requests(arrays: NodeArrays, pods_by_node: PodsByNode, kinds: Flags) -> Floats:
    """[N, R]: the requests of pods of these kinds on each row."""
    taken = np.zeros(arrays.alloc.shape, dtype=np.float64)
    if kinds.any():
        chosen = kinds[pods_by_node.kind]
        numbers, position = np.unique(pods_by_node.kind[chosen], return_inverse=True)
        demands = arrays.columns.to_matrix([pods_by_node.kinds[number].sample.demand for number in numbers.tolist()])
        np.add.at(taken, pods_by_node.row[chosen], demands[position])
    return taken


def _compute_shares(requested: Floats, allocatable: Floats) -> Floats:
    """Shares, rounded so that half a node is exactly 0.5 whatever the order of summation."""
    shares = np.zeros(requested.shape, dtype=np.float64)
    np.divide(requested, allocatable, out=shares, where=allocatable > 0)
    return np.asarray(np.round(np.maximum(shares, 0.0), 12), dtype=np.float64)


def _find_largest_column(shares: Floats, columns: list[int]) -> Ints:
    """[N]: the column of the largest share, the first of equals."""
    if not columns:
        return np.zeros(len(shares), dtype=np.int64)
    return np.asarray(np.array(columns, dtype=np.int64)[np.argmax(shares[:, columns], axis=1)], dtype=np.int64)
