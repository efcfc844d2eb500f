"""Deletes groups that auto-provisioning made and nobody uses any more (specs/nodes.md 5.9).

A group is empty when it wants nothing, has no machine and expects none. One that cannot be deleted does not keep the
others; how long each has been empty is remembered, and begins anew with the process.

Puts right what the cluster state found wrong: targets that nobody fulfils, machines that will never be nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider, failure_of
from plimsoll.nodes.model.reasons import MIN_SIZE_ENFORCED
from plimsoll.nodes.model.results import DeletedGroup, GroupRepair
from plimsoll.nodes.planning.state.group_sizes import is_autoprovisioned
from plimsoll.nodes.providers.values import NodeRef

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime, timedelta

    from plimsoll.nodes.cluster_state.changes import Changes, DeleteInstances, ShrinkTarget
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.call_outcomes import Outcome
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.observing.provider_state import NodeGroupState, ProviderState
    from plimsoll.nodes.providers.ports import Group, Provider


log = structlog.get_logger(__name__)


class EmptyGroups:
    """Remembers since when groups are empty."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def postpone(self, by: timedelta) -> None:
        """Nobody could look for so long, or the clock was set by so much."""
        self._since = {name: since + by for name, since in self._since.items()}

    def find_due(
        self, cloud: ProviderState, snapshot: Snapshot, policy: Policy, *, used: Collection[str], now: datetime
    ) -> tuple[str, ...]:
        """Ids of those to delete now. `used` are groups that something is still planned or booked for."""
        ours = {group.id for group in snapshot.groups if is_autoprovisioned(group, policy)}
        coming = set(snapshot.group_of.values())
        empty = [
            name
            for name, read in cloud.groups.items()
            if name in ours and _is_empty(read) and name not in coming and name not in used
        ]
        self._since = {name: self._since.get(name, now) for name in empty}
        delay_s = policy.nap.empty_group_delay_s
        return tuple(name for name in empty if (now - self._since[name]).total_seconds() >= delay_s)


async def delete_groups(names: Collection[str], groups: Mapping[str, NodeGroupState]) -> tuple[DeletedGroup, ...]:
    return tuple([await _deleted(name, groups[name]) for name in names])


async def _deleted(name: str, read: NodeGroupState) -> DeletedGroup:
    """What was asked for since the turn began is seen by the size, which is read once more."""
    if await read.port.target_size() > 0:
        told = "it has grown meanwhile"
        return DeletedGroup(group=name, failure=CallFailed(kind=FailureKind.REFUSED, message=told))
    failure = failure_of(await read.port.delete())
    if failure is None:
        log.info("node_group.deleted", group=name)
    else:
        log.warning("node_group.not_deleted", group=name, problem=failure.message)
    return DeletedGroup(group=name, failure=failure)


def _is_empty(read: NodeGroupState) -> bool:
    return read.target == 0 and not read.instances


async def fix_group_sizes(provider: Provider, changes: Changes) -> tuple[GroupRepair, ...]:
    """Instances first: each one deleted lowers its group's target, which is read again before it is shrunk."""
    groups = {group.id: group for group in await provider.node_groups()}
    deletions = (*changes.delete_failed, *changes.delete_unregistered)
    done = [
        await _deleted_repairing(groups[deletion.group], deletion) for deletion in deletions if deletion.group in groups
    ]
    deleted_from = {deletion.group for deletion in deletions}
    shrinking = [
        shrink_target
        for shrink_target in changes.shrink
        if shrink_target.group in groups and shrink_target.group not in deleted_from
    ]
    return (*done, *[await _shrunk(groups[shrink_target.group], shrink_target) for shrink_target in shrinking])


async def raise_to_minimum(cloud: ProviderState, policy: Policy) -> tuple[GroupRepair, ...]:
    """`--enforce-node-group-min-size`: never beyond the maximum, and only groups of which all is known."""
    return tuple([await _raised(read, least) for read, least in _too_small(cloud, policy)])


def _too_small(cloud: ProviderState, policy: Policy) -> Iterator[tuple[NodeGroupState, int]]:
    for observed_group in cloud.observed((), policy).groups:
        if (
            observed_group.autoscaled
            and observed_group.target_size < observed_group.min_size <= observed_group.max_size
        ):
            yield cloud.groups[observed_group.id], observed_group.min_size


async def _raised(read: NodeGroupState, least: int) -> GroupRepair:
    outcome = await read.port.increase_size(least - read.target, expected=read.target)
    failure = failure_of(outcome)
    _log("target.raised", read.port.id, failure, before=read.target, after=least)
    message = f"group {read.port.id} has {read.target} nodes, its minimum is {least}"
    reason = Reason(code=MIN_SIZE_ENFORCED, message=message, facts={"group": read.port.id, "min": least})
    return GroupRepair(group=read.port.id, reason=reason, before=read.target, after=least, failure=failure)


async def _deleted_repairing(group: Group, wanted: DeleteInstances) -> GroupRepair:
    refs = [NodeRef.of_instance(instance) for instance in await group.nodes() if instance.id in set(wanted.instances)]
    outcome: Outcome = Done()
    if refs:
        outcome = await group.force_delete_nodes(refs) if wanted.force else await group.delete_nodes(refs)
        if wanted.force and isinstance(outcome, NotImplementedByProvider):
            outcome = await group.delete_nodes(refs)
    failure = failure_of(outcome)
    _log("instances.deleted", group.id, failure, instances=len(refs))
    return GroupRepair(group=group.id, reason=wanted.reason, instances=wanted.instances, failure=failure)


async def _shrunk(group: Group, wanted: ShrinkTarget) -> GroupRepair:
    outcome = await group.decrease_target_size(wanted.after - wanted.before, expected=wanted.before)
    failure = failure_of(outcome)
    _log("target.lowered", group.id, failure, before=wanted.before, after=wanted.after)
    return GroupRepair(group=group.id, reason=wanted.reason, before=wanted.before, after=wanted.after, failure=failure)


def _log(event: str, group: str, failure: CallFailed | None, **facts: int) -> None:
    if failure is None:
        log.info(event, group=group, **facts)
    else:
        log.warning(event, group=group, failed=True, problem=failure.message, **facts)
