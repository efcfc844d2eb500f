"""Every node group that could be scaled up for the pods of a snapshot, and the groups that were skipped. Pure.

An existing group is an option if it is autoscaled, usable, below its maximum size and within the cluster's limits for
one more node (docs/design/nodes.md 5.2, 5.3). A group that could be created is one if auto-provisioning is on and its
limits leave room (docs/design/nodes.md 5.5). `predicates.extra_constraints` restricts which pods may use an option
beyond the scheduling rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.node_templates import make_template
from plimsoll.nodes.model.prices import are_prices_known, compute_price
from plimsoll.nodes.model.reasons import IN_BACKOFF, MAX_SIZE_REACHED, NOT_READY
from plimsoll.nodes.model.scale_up_plan import ScaleUpOption, SkippedGroup
from plimsoll.nodes.planning.autoprovisioning.candidates import NewGroups, find_new_groups
from plimsoll.nodes.planning.autoprovisioning.taints import TransientTaints
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets, compute_group_daemon_overhead
from plimsoll.nodes.planning.state.group_sizes import SizeBounds, compute_group_room, find_size_bounds
from plimsoll.nodes.planning.state.resource_limits import (
    CountedNode,
    ResourceLimit,
    count_addable_nodes,
    find_exhausted,
    find_limits,
    measure_usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.config.policy import Planner, Policy
    from plimsoll.nodes.model.scale_up_plan import LabelSet
    from plimsoll.nodes.model.snapshot import NodeGroup, Snapshot
    from plimsoll.nodes.planning.autoprovisioning.requirements import RequirementReader
    from plimsoll.nodes.planning.state.resource_limits import Usage
    from plimsoll.objects.api.meta import ResourceList

NOT_AUTOSCALED: Final = "NotAutoscaled"
_UNKNOWN_GROUP: Final = "UnknownNodeGroup"
_BAD_TEMPLATE: Final = "UnreadableTemplate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpOptions:
    """The options for a scale-up, and the groups that were skipped."""

    options: tuple[ScaleUpOption, ...]
    skipped_groups: tuple[SkippedGroup, ...]
    label_sets: tuple[LabelSet, ...]
    ceilings: tuple[ResourceLimit, ...]
    """The cluster's limits, which all options share."""
    new_groups_left: int
    """The number of groups that may be created, however many options there are."""
    impossible: Mapping[str, Reason] = field(default_factory=dict)
    """By key of a pending entry: why no group can be created for it."""
    regions: Mapping[str, str] = field(default_factory=dict)
    """Regions by zone, for new groups."""


def find_options(
    snapshot: Snapshot,
    policy: Policy,
    *,
    planner: Planner | None = None,
    usage: Usage | None = None,
    reader: RequirementReader | None = None,
) -> ScaleUpOptions:
    """All options. `planner` defaults to that of the policy; `usage` and `reader` save measuring and reading again."""
    known = are_prices_known(snapshot, policy.overlay)
    chosen = planner or policy.planning.choose_planner(prices_are_known=known)
    limits = find_limits(usage or measure_usage(snapshot.view), policy, chosen)
    daemons = DaemonSets(snapshot.daemon_sets)
    found, left_out = _build_existing_options(snapshot, policy, limits, daemons)
    made = NewGroups()
    room = compute_group_room(snapshot, policy)
    if policy.nap.enabled and room.left <= 0:
        left_out.append(SkippedGroup(group="", machine_type="", code=room.code, reason=room.cap))
    elif policy.nap.enabled:
        made = find_new_groups(snapshot, policy, limits, daemons, most=room.left, reader=reader)
        found += made.options
        left_out += made.skipped_groups
    return ScaleUpOptions(
        options=tuple(found),
        skipped_groups=tuple(left_out),
        label_sets=made.label_sets,
        ceilings=limits,
        new_groups_left=room.left if policy.nap.enabled else 0,
        impossible=made.impossible,
        regions=made.regions,
    )


# ---- existing groups


def _build_existing_options(
    snapshot: Snapshot, policy: Policy, limits: Sequence[ResourceLimit], daemons: DaemonSets
) -> tuple[list[ScaleUpOption], list[SkippedGroup]]:
    found: list[ScaleUpOption] = []
    left_out: list[SkippedGroup] = []
    context = _Around(
        limits=limits,
        daemons=daemons,
        passing=TransientTaints(policy.pods),
        attaching_nodes=_find_attaching_nodes(snapshot),
    )
    for group in snapshot.groups:
        sizes = find_size_bounds(group, policy)
        refusals = _find_refusals(group, sizes, limits)
        if refusals or sizes is None:
            left_out += refusals
            continue
        try:
            found.append(_build_option(group, sizes, policy, context))
        except InvalidQuantity as error:
            left_out.append(_build_skipped_group(group, _BAD_TEMPLATE, f"its template cannot be read: {error}"))
    there = {group.id for group in snapshot.groups}
    left_out += [
        SkippedGroup(group=name, machine_type="", code=_UNKNOWN_GROUP, reason="the provider has no such group")
        for name in policy.groups.list_explicit_bounds()
        if name not in there
    ]
    return found, left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """Context shared by all groups."""

    limits: Sequence[ResourceLimit]
    daemons: DaemonSets
    passing: TransientTaints
    attaching_nodes: Mapping[str, str]
    """By group: one of its nodes with known attach limits."""


def _find_attaching_nodes(snapshot: Snapshot) -> dict[str, str]:
    """Per group, the node whose attach limits hold for new nodes: the source of its template, or any node of it."""
    known = snapshot.view.storage.csi_nodes
    found = {group: name for name, group in sorted(snapshot.group_of.items(), reverse=True) if name in known}
    made_from = {group.id: group.template.metadata.name for group in snapshot.groups}
    return found | {group: name for group, name in made_from.items() if name in known}


def _find_refusals(group: NodeGroup, sizes: SizeBounds | None, limits: Sequence[ResourceLimit]) -> list[SkippedGroup]:
    """Why the group cannot be scaled up: its state first, then its size, then the cluster's limits."""
    if sizes is None:
        return [_build_skipped_group(group, NOT_AUTOSCALED, "not autoscaled")]
    if group.not_usable:
        code = IN_BACKOFF if "backoff" in group.not_usable.replace("-", "") else NOT_READY
        return [_build_skipped_group(group, code, group.not_usable)]
    room = sizes.most - group.target_size
    if room <= 0:
        return [_build_skipped_group(group, MAX_SIZE_REACHED, "max size reached")]
    broken = find_exhausted(limits, CountedNode.from_node(group.template), nodes=room if group.zero_or_max else 1)
    return [_build_skipped_group(group, limit.code, str(limit)) for limit in broken]


def _build_skipped_group(group: NodeGroup, code: str, reason: str) -> SkippedGroup:
    return SkippedGroup(group=group.id, machine_type=group.machine_type, code=code, reason=reason)


def _read_resources(quantities: ResourceList, *, path: str) -> ResourceVector:
    resources, problems = ResourceVector.read_bounded(quantities, path=path)
    if problems:
        raise problems[0]
    return resources


def _build_option(group: NodeGroup, sizes: SizeBounds, policy: Policy, context: _Around) -> ScaleUpOption:
    node = make_template(group, context.passing, attaches_like=context.attaching_nodes.get(group.id, ""))
    status = node.status
    allocatable = _read_resources(status.allocatable or status.capacity, path="status.allocatable")
    capacity = _read_resources(status.capacity or status.allocatable, path="status.capacity")
    carried = compute_group_daemon_overhead(group, node, context.daemons, force=policy.pods.force_daemon_sets)
    price = compute_price(group.machine_type, capacity, given=group.price_per_hour, exists=True, overlay=policy.overlay)
    allowed = count_addable_nodes(context.limits, CountedNode(capacity=capacity, labels=node.metadata.labels))
    return ScaleUpOption(
        group=group.id,
        node=node,
        daemons=carried.pods,
        free=allocatable - carried.demand,
        capacity=capacity,
        price_per_hour=price.per_hour,
        planning_price=price.planning,
        size=group.target_size,
        max_size=sizes.most,
        room=min(sizes.most - group.target_size, allowed),
        machine_type=group.machine_type,
        zone=group.zone,
        zero_or_max=group.zero_or_max,
        capacity_type=group.capacity_type,
    )
