"""Changes to node groups that need no plan: wrong sizes, minimum sizes, and empty created groups.

Sizes that the cluster state found wrong are corrected (`fix_group_sizes`). Groups below their minimum are scaled up to
it (`raise_to_minimum`). Groups that auto-provisioning created are deleted when they are empty (docs/design/nodes.md
5.9): a group is empty when its target is 0 and it has no instance and no upcoming node. A deletion that fails does not
stop the others. How long a group has been empty is remembered by the process only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind, get_failure
from plimsoll.nodes.model.reasons import MIN_SIZE_ENFORCED
from plimsoll.nodes.model.results import DeletedGroup, GroupRepair
from plimsoll.nodes.planning.state.group_sizes import is_autoprovisioned
from plimsoll.nodes.providers.values import NodeRef

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime, timedelta

    from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
    from plimsoll.nodes.cluster_state.changes import Changes, DeleteInstances, ShrinkTarget
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.observing.provider_state import NodeGroupState, ProviderState
    from plimsoll.nodes.providers.ports import Group, Provider


log = structlog.get_logger(__name__)


class EmptyGroups:
    """Remembers since when groups are empty."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def postpone(self, by: timedelta) -> None:
        """Move remembered times by an outage or a clock change."""
        self._since = {name: since + by for name, since in self._since.items()}

    def find_due(
        self, state: ProviderState, snapshot: Snapshot, policy: Policy, *, used: Collection[str], now: datetime
    ) -> tuple[str, ...]:
        """The ids of groups to delete now. `used` are groups that a plan or booking still needs."""
        ours = {group.id for group in snapshot.groups if is_autoprovisioned(group, policy)}
        coming = set(snapshot.group_of.values())
        empty = [
            name
            for name, read in state.groups.items()
            if name in ours and _is_empty(read) and name not in coming and name not in used
        ]
        self._since = {name: self._since.get(name, now) for name in empty}
        delay_s = policy.nap.empty_group_delay_s
        return tuple(name for name in empty if (now - self._since[name]).total_seconds() >= delay_s)


async def delete_groups(
    names: Collection[str], groups: Mapping[str, NodeGroupState], deleter: InstanceDeleter
) -> tuple[DeletedGroup, ...]:
    """What became of each group; those that the deleter held back are not among them."""
    deleted = [await _delete_group(name, groups[name], deleter) for name in names]
    return tuple(group for group in deleted if not _is_held(group.failure))


async def _delete_group(name: str, read: NodeGroupState, deleter: InstanceDeleter) -> DeletedGroup:
    """The target is read again, because the group may have been scaled up since the loop began."""
    if await read.port.target_size() > 0:
        message = "the group was scaled up meanwhile"
        return DeletedGroup(group=name, failure=CallFailed(kind=FailureKind.REFUSED, message=message))
    failure = await deleter.delete_group(read.port)
    if failure is None:
        log.info("node_group.deleted", group=name)
    else:
        log.warning("node_group.not_deleted", group=name, problem=failure.message)
    return DeletedGroup(group=name, failure=failure)


def _is_empty(read: NodeGroupState) -> bool:
    return read.target == 0 and not read.instances


async def fix_group_sizes(provider: Provider, changes: Changes, deleter: InstanceDeleter) -> tuple[GroupRepair, ...]:
    """Delete failed and unregistered instances, then lower targets. A deletion lowers its group's target already.

    What the deleter held back is not among the repairs.
    """
    groups = {group.id: group for group in await provider.node_groups()}
    deletions = (*changes.delete_failed, *changes.delete_unregistered)
    done = [
        repair
        for deletion in deletions
        if deletion.group in groups
        for repair in await _delete_instances(groups[deletion.group], deletion, deleter)
    ]
    deleted_from = {deletion.group for deletion in deletions}
    shrinking = [target for target in changes.shrink if target.group in groups and target.group not in deleted_from]
    lowered = [await _lower_target(groups[target.group], target, deleter) for target in shrinking]
    return tuple(repair for repair in (*done, *lowered) if not _is_held(repair.failure))


async def raise_to_minimum(state: ProviderState, policy: Policy) -> tuple[GroupRepair, ...]:
    """`--enforce-node-group-min-size`: never above the maximum, and only groups whose sizes are known."""
    return tuple([await _raise(read, least) for read, least in _find_too_small(state, policy)])


def _find_too_small(state: ProviderState, policy: Policy) -> Iterator[tuple[NodeGroupState, int]]:
    for observed_group in state.build_observed_cluster((), policy).groups:
        if (
            observed_group.autoscaled
            and observed_group.target_size < observed_group.min_size <= observed_group.max_size
        ):
            yield state.groups[observed_group.id], observed_group.min_size


async def _raise(read: NodeGroupState, least: int) -> GroupRepair:
    outcome = await read.port.increase_size(least - read.target, expected=read.target)
    failure = get_failure(outcome)
    _log("target.raised", read.port.id, failure, before=read.target, after=least)
    message = f"group {read.port.id} has {read.target} nodes, its minimum is {least}"
    reason = Reason(code=MIN_SIZE_ENFORCED, message=message, facts={"group": read.port.id, "min": least})
    return GroupRepair(group=read.port.id, reason=reason, before=read.target, after=least, failure=failure)


async def _delete_instances(group: Group, wanted: DeleteInstances, deleter: InstanceDeleter) -> list[GroupRepair]:
    """One repair for the deleted instances, and one for those that were held back."""
    there = {instance.id: NodeRef.from_instance(instance) for instance in await group.nodes()}
    refs = {instance: there[instance] for instance in wanted.instances if instance in there}
    results = await deleter.delete(group, list(refs.values()), force=wanted.force) if refs else {}
    by_failure: dict[CallFailed | None, list[str]] = {}
    for instance in wanted.instances:
        failure = results.get(refs[instance].name) if instance in refs else None
        by_failure.setdefault(failure, []).append(instance)
    for failure, instances in by_failure.items():
        _log("instances.deleted", group.id, failure, instances=len(instances))
    return [
        GroupRepair(group=group.id, reason=wanted.reason, instances=tuple(instances), failure=failure)
        for failure, instances in by_failure.items()
    ]


async def _lower_target(group: Group, wanted: ShrinkTarget, deleter: InstanceDeleter) -> GroupRepair:
    failure = await deleter.lower_target(group, wanted.before - wanted.after, expected=wanted.before)
    _log("target.lowered", group.id, failure, before=wanted.before, after=wanted.after)
    return GroupRepair(group=group.id, reason=wanted.reason, before=wanted.before, after=wanted.after, failure=failure)


def _is_held(failure: CallFailed | None) -> bool:
    return failure is not None and failure.kind is FailureKind.HELD


def _log(event: str, group: str, failure: CallFailed | None, **facts: int) -> None:
    if failure is None:
        log.info(event, group=group, **facts)
    else:
        log.warning(event, group=group, failed=True, problem=failure.message, **facts)
