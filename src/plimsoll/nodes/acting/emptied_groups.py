"""Deletes groups that auto-provisioning made and nobody uses any more (specs/nodes.md 5.9).

A group is empty when it wants nothing, has no machine and expects none. One that cannot be deleted does not keep the
others; how long each has been empty is remembered, and begins anew with the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from plimsoll.nodes.planning.candidates import is_autoprovisioned
from plimsoll.nodes.providers.values import CallFailed, FailureKind, failure_of
from plimsoll.nodes.turns import GroupGone

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime, timedelta

    from plimsoll.nodes.observing.clouds import CloudRead, GroupRead
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.policy import Policy

log = structlog.get_logger(__name__)


class EmptiedGroups:
    """Remembers since when groups are empty."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def put_off(self, by: timedelta) -> None:
        """Nobody could look for so long, or the clock was set by so much."""
        self._since = {name: since + by for name, since in self._since.items()}

    def due(
        self, cloud: CloudRead, snapshot: Snapshot, policy: Policy, *, used: Collection[str], now: datetime
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


async def delete_groups(names: Collection[str], groups: Mapping[str, GroupRead]) -> tuple[GroupGone, ...]:
    return tuple([await _deleted(name, groups[name]) for name in names])


async def _deleted(name: str, read: GroupRead) -> GroupGone:
    """What was asked for since the turn began is seen by the size, which is read once more."""
    if await read.port.target_size() > 0:
        told = "it has grown meanwhile"
        return GroupGone(group=name, failure=CallFailed(kind=FailureKind.REFUSED, message=told))
    failure = failure_of(await read.port.delete())
    if failure is None:
        log.info("node_group.deleted", group=name)
    else:
        log.warning("node_group.not_deleted", group=name, problem=failure.message)
    return GroupGone(group=name, failure=failure)


def _is_empty(read: GroupRead) -> bool:
    return read.target == 0 and not read.instances
