"""From an accepted answer to how many instances each group should have, within what the autoscaler allows. Pure.

An answer may come from any planner, so three things are seen to here: a type that the autoscaler does not have makes no
group, no type gets beyond its count, and a group whose type was given another size since is never raised: what it lacks
goes to a second group. `applying` decides what is done about a want, and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.tidb.model.components import GROUP_LABEL, LONGEST_LABEL_VALUE, RESERVED_TYPES, Component, group_name
from plimsoll.tidb.model.names import size_suffix
from plimsoll.tidb.model.reasons import ReasonCode, instances, told
from plimsoll.tidb.model.reconcile_types import EXTERNAL, GroupSeen, Held, Size
from plimsoll.tidb.model.scaling_plan import ScalingPlan  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.tidb.planning.api.sizes import type_of_resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.tidb import ComponentAutoScaler
    from plimsoll.tidb.model.reconcile_types import ComponentSeen


class DesiredCount(Value):
    """How many instances a group should have. No `plan`: the answer does not name it. No `group`: it is to be made.

    `notes` tell where this is not what the answer says.
    """

    key: str
    count: int
    group: GroupSeen | None = None
    plan: ScalingPlan | None = None
    size: Size | None = None
    notes: tuple[Reason, ...] = ()

    @property
    def standing(self) -> int:
        return self.group.replicas if self.group else 0

    @property
    def resource_type(self) -> str:
        """Of a group that stands, what it was made of: whatever an answer calls it, the count of that type holds."""
        named = self.plan.resource_type if self.plan else ""
        return (self.group.resource_type if self.group else "") or named


class Wants(Value):
    """In order of their keys. `suppresses`: the answer names what nobody knows, so what it leaves out may stay."""

    groups: tuple[DesiredCount, ...]
    refused: tuple[Held, ...] = ()
    suppresses: bool = False


class SizedType(Value):
    """A resource type of the autoscaler, as groups of it should be."""

    size: Size
    count: int | None


def sized_types(scaled: ComponentAutoScaler, component: Component) -> dict[str, SizedType]:
    """The types that groups may be made of."""
    found = {}
    for name, resource in sorted(scaled.resources.items()):
        if name not in RESERVED_TYPES:
            one = type_of_resource(name, resource)
            size = Size(cpu_milli=one.cpu_milli, memory_bytes=one.memory_bytes, storage_bytes=one.storage_bytes)
            found[name] = SizedType(size=comparable(size, component), count=one.count)
    return found


def comparable(size: Size, component: Component) -> Size:
    """TiDB servers have no storage, whatever a type says of it."""
    return size if component is Component.TIKV else replace(size, storage_bytes=0)


def is_of_other_size(group: GroupSeen, types: dict[str, SizedType], component: Component) -> bool:
    """Whether the type of a group was given another size since it was made. If nothing tells, it was not."""
    known = types.get(group.resource_type)
    return known is not None and group.size is not None and comparable(group.size, component) != known.size


def first_of_each(groups: Iterable[GroupSeen]) -> tuple[tuple[GroupSeen, ...], tuple[Held, ...]]:
    """Groups in order of their keys; of several TidbClusters with one key only the oldest is decided about."""
    first: dict[str, GroupSeen] = {}
    others = []
    for group in sorted(groups, key=lambda group_seen: (group_seen.key, group_seen.created, group_seen.name)):
        if group.key in first:
            message = f"{group.name} has the group of {first[group.key].name} and is left as it is"
            others.append(Held(key=group.key, reason=told(ReasonCode.DUPLICATE_GROUP, message, cluster=group.name)))
        first.setdefault(group.key, group)
    return tuple(first.values()), tuple(others)


def wants_of(seen: ComponentSeen, answer: Iterable[ScalingPlan]) -> Wants:
    """What the answer wants of groups; every group that stands is among them, and every plan is there or refused."""
    assert seen.scaled is not None, "asked only about what is scaled"
    types = sized_types(seen.scaled, seen.component)
    groups, duplicates = first_of_each(group for group in seen.groups if group.key != EXTERNAL)
    wants = {group.key: DesiredCount(key=group.key, count=0, group=group) for group in groups}
    refused = []
    for plan in answer:
        if plan.is_homogeneous:
            continue
        key = plan.group
        if key in wants:
            wants[key] = replace(wants[key], count=plan.count, plan=plan)
        elif plan.resource_type not in types or key == EXTERNAL or key in RESERVED_TYPES:
            message = f"{plan.resource_type} is no resource type here: no group is made of it, and none removed now"
            refused.append(
                Held(key=key, reason=told(ReasonCode.UNKNOWN_RESOURCE_TYPE, message, type=plan.resource_type))
            )
        else:
            wants[key] = DesiredCount(key=key, count=plan.count, plan=plan, size=types[plan.resource_type].size)
    _send_to_second_groups(wants, types, seen.component)
    _keep_to_counts(wants, types, seen.component)
    ordered = tuple(wants[key] for key in sorted(wants))
    return Wants(groups=ordered, refused=(*duplicates, *refused), suppresses=bool(refused))


# ---- a type that was given another size


def second_group(component: Component, group: GroupSeen, size: Size) -> str:
    """The group of the same type for instances of the size that the type has now."""
    suffix = size_suffix(size.cpu_milli, size.memory_bytes, size.storage_bytes)
    own = comparable(group.size, component) if group.size else size
    first = group.key.removesuffix(f"-{size_suffix(own.cpu_milli, own.memory_bytes, own.storage_bytes)}")
    usual = group_name(component, group.resource_type)
    if first in {usual, group_name(component, group.resource_type, suffix)[: -len(suffix) - 1]}:
        return group_name(component, group.resource_type, suffix)
    return f"{first[: LONGEST_LABEL_VALUE - len(suffix) - 1]}-{suffix}"


def _send_to_second_groups(wants: dict[str, DesiredCount], types: dict[str, SizedType], component: Component) -> None:
    """A planner that knows of the second group names it; for one that does not, the total is shared out."""
    named = {key for key, want in wants.items() if want.plan}
    for want in [wants[key] for key in sorted(wants)]:
        group, plan = want.group, want.plan
        if group is None or plan is None or not is_of_other_size(group, types, component):
            continue
        more = want.count - group.replicas
        if more <= 0:
            continue
        size = types[group.resource_type].size
        key = second_group(component, group, size)
        message = f"{group.resource_type} has another size now: new instances join {key}"
        note = told(ReasonCode.SIZE_CHANGED, message, wanted=want.count, second=key)
        wants[want.key] = replace(want, count=group.replicas, notes=(*want.notes, note))
        if key not in named:
            second = wants.get(key) or DesiredCount(key=key, count=0, size=size)
            labels = {**plan.labels, GROUP_LABEL: key}
            renamed = replace(plan, count=second.count + more, labels=labels)
            wants[key] = replace(second, count=second.count + more, plan=renamed)


# ---- no more of a type than its count


def _keep_to_counts(wants: dict[str, DesiredCount], types: dict[str, SizedType], component: Component) -> None:
    for name, sized_type in types.items():
        if sized_type.count is None:
            continue
        members = [wants[key] for key in sorted(wants) if wants[key].resource_type == name]
        # Groups of an older size give way first.
        members.sort(key=lambda want: want.group is None or not is_of_other_size(want.group, types, component))
        over = sum(min(want.count, want.standing) for want in members) - sized_type.count
        left = max(0, sized_type.count - sum(want.standing for want in members))
        for want in members:
            cut = min(max(0, over), want.count, want.standing)
            over -= cut
            kept = min(want.count, want.standing) - cut
            added = min(left, max(0, want.count - want.standing))
            left -= added
            if kept + added < want.count:
                message = f"{name} may have {instances(sized_type.count)}"
                note = told(ReasonCode.COUNT_REACHED, message, wanted=want.count, count=sized_type.count)
                wants[want.key] = replace(want, count=kept + added, notes=(*want.notes, note))
