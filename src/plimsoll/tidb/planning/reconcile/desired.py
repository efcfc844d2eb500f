"""From an accepted answer to the desired count of each group, within the limits of the autoscaler. Pure.

Any planner may answer, so three rules are enforced here. A type that the autoscaler does not have makes no group. No
type exceeds its count. And a group whose type was given another size is never raised: a second group gets the
difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.tidb.model.components import GROUP_LABEL, LONGEST_LABEL_VALUE, RESERVED_TYPES, Component, make_group_name
from plimsoll.tidb.model.names import make_size_suffix
from plimsoll.tidb.model.reasons import ReasonCode, format_instances, make_reason
from plimsoll.tidb.model.reconcile_types import EXTERNAL, Held, ObservedGroup, Size
from plimsoll.tidb.model.scaling_plan import ScalingPlan  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.tidb.planning.api.sizes import read_resource_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.tidb import ComponentAutoScaler
    from plimsoll.tidb.model.reconcile_types import ObservedComponent


class DesiredCount(Value):
    """The desired number of instances of a group. No `plan`: the answer omits it. No `group`: it does not exist yet.

    `notes` explain differences from the answer.
    """

    key: str
    count: int
    group: ObservedGroup | None = None
    plan: ScalingPlan | None = None
    size: Size | None = None
    notes: tuple[Reason, ...] = ()

    @property
    def current(self) -> int:
        return self.group.replicas if self.group else 0

    @property
    def resource_type(self) -> str:
        """The type of an existing group, whatever the answer calls it: the count of that type applies."""
        named = self.plan.resource_type if self.plan else ""
        return (self.group.resource_type if self.group else "") or named


class DesiredCounts(Value):
    """Sorted by key. `suppresses_removals`: the answer names unknown types, so omitted groups may stay."""

    groups: tuple[DesiredCount, ...]
    refused: tuple[Held, ...] = ()
    suppresses_removals: bool = False


class SizedType(Value):
    """A resource type of the autoscaler and the size of its instances."""

    size: Size
    count: int | None


def read_sized_types(scaled: ComponentAutoScaler, component: Component) -> dict[str, SizedType]:
    """The types that groups may be made of."""
    found = {}
    for name, resource in sorted(scaled.resources.items()):
        if name not in RESERVED_TYPES:
            resource_type = read_resource_type(name, resource)
            size = Size(
                cpu_milli=resource_type.cpu_milli,
                memory_bytes=resource_type.memory_bytes,
                storage_bytes=resource_type.storage_bytes,
            )
            found[name] = SizedType(size=to_comparable(size, component), count=resource_type.count)
    return found


def to_comparable(size: Size, component: Component) -> Size:
    """The size without storage for TiDB servers, which have none."""
    return size if component is Component.TIKV else replace(size, storage_bytes=0)


def is_of_other_size(group: ObservedGroup, types: dict[str, SizedType], component: Component) -> bool:
    """Whether the type of a group was given another size since the group was created. False if unknown."""
    known = types.get(group.resource_type)
    return known is not None and group.size is not None and to_comparable(group.size, component) != known.size


def select_oldest_per_key(groups: Iterable[ObservedGroup]) -> tuple[tuple[ObservedGroup, ...], tuple[Held, ...]]:
    """Groups sorted by key. Among several TidbClusters with one key, only the oldest is managed."""
    first: dict[str, ObservedGroup] = {}
    others = []
    for group in sorted(groups, key=lambda group: (group.key, group.created, group.name)):
        if group.key in first:
            message = f"{group.name} has the same group as {first[group.key].name} and stays as it is"
            others.append(
                Held(key=group.key, reason=make_reason(ReasonCode.DUPLICATE_GROUP, message, cluster=group.name))
            )
        first.setdefault(group.key, group)
    return tuple(first.values()), tuple(others)


def compute_desired_counts(observed: ObservedComponent, answer: Iterable[ScalingPlan]) -> DesiredCounts:
    """Desired counts from an answer. Every existing group is included, and every plan is included or refused."""
    assert observed.scaled is not None, "called only for a scaled component"
    types = read_sized_types(observed.scaled, observed.component)
    groups, duplicates = select_oldest_per_key(group for group in observed.groups if group.key != EXTERNAL)
    desired_counts = {group.key: DesiredCount(key=group.key, count=0, group=group) for group in groups}
    refused = []
    for plan in answer:
        if plan.is_homogeneous:
            continue
        key = plan.group
        if key in desired_counts:
            desired_counts[key] = replace(desired_counts[key], count=plan.count, plan=plan)
        elif plan.resource_type not in types or key == EXTERNAL or key in RESERVED_TYPES:
            message = (
                f"{plan.resource_type} is not one of its resource types: it makes no group, and none is removed now"
            )
            refused.append(
                Held(key=key, reason=make_reason(ReasonCode.UNKNOWN_RESOURCE_TYPE, message, type=plan.resource_type))
            )
        else:
            desired_counts[key] = DesiredCount(
                key=key, count=plan.count, plan=plan, size=types[plan.resource_type].size
            )
    _move_to_second_groups(desired_counts, types, observed.component)
    _limit_to_counts(desired_counts, types, observed.component)
    ordered = tuple(desired_counts[key] for key in sorted(desired_counts))
    return DesiredCounts(groups=ordered, refused=(*duplicates, *refused), suppresses_removals=bool(refused))


# ---- types whose size was changed


def build_second_group_key(component: Component, group: ObservedGroup, size: Size) -> str:
    """The key of the group of the same type for instances of the type's present size."""
    suffix = make_size_suffix(size.cpu_milli, size.memory_bytes, size.storage_bytes)
    own = to_comparable(group.size, component) if group.size else size
    first = group.key.removesuffix(f"-{make_size_suffix(own.cpu_milli, own.memory_bytes, own.storage_bytes)}")
    usual = make_group_name(component, group.resource_type)
    if first in {usual, make_group_name(component, group.resource_type, suffix)[: -len(suffix) - 1]}:
        return make_group_name(component, group.resource_type, suffix)
    return f"{first[: LONGEST_LABEL_VALUE - len(suffix) - 1]}-{suffix}"


def _move_to_second_groups(
    desired_counts: dict[str, DesiredCount], types: dict[str, SizedType], component: Component
) -> None:
    """Move the surplus to second groups. A planner that knows the second group names it in its answer."""
    named = {key for key, desired in desired_counts.items() if desired.plan}
    for desired in [desired_counts[key] for key in sorted(desired_counts)]:
        group, plan = desired.group, desired.plan
        if group is None or plan is None or not is_of_other_size(group, types, component):
            continue
        surplus = desired.count - group.replicas
        if surplus <= 0:
            continue
        size = types[group.resource_type].size
        key = build_second_group_key(component, group, size)
        message = f"{group.resource_type} has another size now: new instances join {key}"
        note = make_reason(ReasonCode.SIZE_CHANGED, message, wanted=desired.count, second=key)
        desired_counts[desired.key] = replace(desired, count=group.replicas, notes=(*desired.notes, note))
        if key not in named:
            second = desired_counts.get(key) or DesiredCount(key=key, count=0, size=size)
            labels = {**plan.labels, GROUP_LABEL: key}
            renamed = replace(plan, count=second.count + surplus, labels=labels)
            desired_counts[key] = replace(second, count=second.count + surplus, plan=renamed)


# ---- limits per type


def _limit_to_counts(
    desired_counts: dict[str, DesiredCount], types: dict[str, SizedType], component: Component
) -> None:
    for name, sized_type in types.items():
        if sized_type.count is None:
            continue
        members = [desired_counts[key] for key in sorted(desired_counts) if desired_counts[key].resource_type == name]
        # Groups of an older size are reduced first.
        members.sort(key=lambda desired: desired.group is None or not is_of_other_size(desired.group, types, component))
        over = sum(min(desired.count, desired.current) for desired in members) - sized_type.count
        left = max(0, sized_type.count - sum(desired.current for desired in members))
        for desired in members:
            cut = min(max(0, over), desired.count, desired.current)
            over -= cut
            kept = min(desired.count, desired.current) - cut
            added = min(left, max(0, desired.count - desired.current))
            left -= added
            if kept + added < desired.count:
                message = f"{name} may have {format_instances(sized_type.count)}"
                note = make_reason(ReasonCode.COUNT_REACHED, message, wanted=desired.count, count=sized_type.count)
                desired_counts[desired.key] = replace(desired, count=kept + added, notes=(*desired.notes, note))
