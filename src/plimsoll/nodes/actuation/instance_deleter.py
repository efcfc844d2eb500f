"""The one caller of the provider calls that shrink: deleting instances, deleting groups, lowering target sizes.

Each call passes the `DeletionGuard` first, and none is made while `hold` is set, because what was listed cannot be
believed. A call that was not made is a failure of kind HELD, and is reported once per loop (`take_held`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import ApiCallFailed
from plimsoll.nodes.actuation.deletion_guard import NODE_EXISTS, NOT_VERIFIED
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind, NotImplementedByProvider, get_failure
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.model.results import HeldDeletion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.actuation.deletion_guard import DeletionGuard
    from plimsoll.nodes.providers.ports import Group
    from plimsoll.nodes.providers.values import NodeRef

    Results = Mapping[str, CallFailed | None]
    """By node name; None if the node is deleted or being deleted."""

log = structlog.get_logger(__name__)

_NOT_RUNNING: Final = (InstanceState.CREATING, InstanceState.DELETING)


class InstanceDeleter:
    """Deletes what the guard lets go."""

    def __init__(self, guard: DeletionGuard) -> None:
        self.guard = guard
        self.hold: Reason | None = None
        """Why nothing shrinks now: a list that cannot be believed."""
        self.requested: set[str] = set()
        """Instances and groups whose deletion was requested, by id and by name."""
        self._held: list[HeldDeletion] = []

    def take_held(self) -> tuple[HeldDeletion, ...]:
        """The deletions that were held back since the last call, each once."""
        by_key = {(held.group, held.node, held.reason.code): held for held in self._held}
        self._held = []
        return tuple(by_key.values())

    async def delete(
        self, group: Group, refs: Sequence[NodeRef], *, force: bool = False, all_or_none: bool = False
    ) -> Results:
        """Delete instances by one call. `force` ignores the minimum size where the provider can."""
        reason = self.hold or await self.guard.find_doubt()
        held = (
            await self.guard.find_in_use(refs) if reason is None else dict.fromkeys((ref.name for ref in refs), reason)
        )
        if all_or_none and held:
            first = next(iter(held.values()))
            held = {ref.name: held.get(ref.name, first) for ref in refs}
        results: dict[str, CallFailed | None] = {
            ref.name: self._hold(group.id, held[ref.name], ref=ref) for ref in refs if ref.name in held
        }
        free = [ref for ref in refs if ref.name not in results]
        if free:
            self.requested |= {name for ref in free for name in (ref.provider_id, ref.name) if name}
            failure = await _call_deletion(group, free, force=force)
            results |= dict.fromkeys((ref.name for ref in free), failure)
        return results

    async def lower_target(self, group: Group, by: int, *, expected: int) -> CallFailed | None:
        """Lower the target from `expected` by `by`, but not below the instances and nodes that run."""
        after = expected - by
        reason = self.hold or await self.guard.find_doubt() or await self._find_running(group, after)
        if reason is not None:
            return self._hold(group.id, reason)
        return get_failure(await group.decrease_target_size(-by, expected=expected))

    async def delete_group(self, group: Group) -> CallFailed | None:
        """Delete a group whose target is 0 and that has neither instances nor nodes."""
        reason = self.hold or await self.guard.find_doubt() or await self._find_running(group, 0)
        if reason is not None:
            return self._hold(group.id, reason)
        self.requested.add(group.id)
        return get_failure(await group.delete())

    async def _find_running(self, group: Group, after: int) -> Reason | None:
        """Why the group is not smaller than `after`; None if it may be."""
        instances = [instance for instance in await group.nodes() if instance.state not in _NOT_RUNNING]
        try:
            nodes = await self.guard.count_ready(group.id, more_than=after)
        except ApiCallFailed as error:
            return Reason(code=NOT_VERIFIED, message=f"the nodes of group {group.id} could not be read: {error}")
        running = max(len(instances), nodes)
        if running <= after:
            return None
        message = f"at least {running} nodes of group {group.id} run, more than {after}"
        return Reason(code=NODE_EXISTS, message=message, facts={"group": group.id, "running": running, "after": after})

    def _hold(self, group: str, reason: Reason, *, ref: NodeRef | None = None) -> CallFailed:
        instance, node = ("", "") if ref is None else (ref.provider_id, ref.name)
        log.warning("deletion.held_back", group=group, node=node, reason=reason.code, problem=reason.message)
        self._held.append(HeldDeletion(group=group, instance=instance, node=node, reason=reason))
        return CallFailed(kind=FailureKind.HELD, message=str(reason))


async def _call_deletion(group: Group, refs: Sequence[NodeRef], *, force: bool) -> CallFailed | None:
    outcome = await group.force_delete_nodes(refs) if force else await group.delete_nodes(refs)
    if force and isinstance(outcome, NotImplementedByProvider):
        outcome = await group.delete_nodes(refs)
    return get_failure(outcome)
