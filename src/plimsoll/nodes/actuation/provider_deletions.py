"""Asks the provider to delete nodes, one by one or in batches per group.

A call that was not answered may have been carried out. Then the instances are read again, and only nodes whose own
instance still runs are asked for again: no other node is deleted in their place.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kube.errors import NotAllowed
from plimsoll.nodes.actuation.timing import Polling
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.providers.values import ProviderFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter, Results
    from plimsoll.nodes.actuation.timing import Pacing
    from plimsoll.nodes.providers.ports import Group, Provider
    from plimsoll.nodes.providers.values import Instance, NodeRef

log = structlog.get_logger(__name__)

_CALLS: Final = 3
_POLLS: Final = 6
"""How often an instance must be seen running before its deletion is requested again."""


@dataclass(slots=True, eq=False)
class _Bucket:
    """Nodes of a group that one call deletes."""

    refs: list[NodeRef] = field(default_factory=list)
    results: asyncio.Future[Results] = field(default_factory=asyncio.Future)


class ProviderDeletions:
    """Deletes nodes for all removals of a process, in batches."""

    def __init__(self, provider: Provider, deleter: InstanceDeleter, *, clock: Clock) -> None:
        self._provider = provider
        self._deleter = deleter
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    async def delete_soon(self, group: str, ref: NodeRef, pacing: Pacing) -> CallFailed | None:
        """Delete a node, together with others of its group that are ready within the batch time."""
        if pacing.batch_s <= 0:
            return (await self.delete(group, [ref], pacing))[ref.name]
        bucket = self._buckets.get(group)
        if bucket is not None:
            bucket.refs.append(ref)
            return (await asyncio.shield(bucket.results))[ref.name]
        bucket = self._buckets[group] = _Bucket([ref])
        try:
            await self._clock.sleep(pacing.batch_s)
            del self._buckets[group]
            bucket.results.set_result(await self.delete(group, bucket.refs, pacing))
        finally:
            if not bucket.results.done():
                self._buckets.pop(group, None)
                bucket.results.cancel()
        return bucket.results.result()[ref.name]

    async def delete(
        self, group: str, refs: Sequence[NodeRef], pacing: Pacing, *, all_or_none: bool = False
    ) -> Results:
        """Delete nodes by one call. UNKNOWN remains only where the provider does not show what happened."""
        results: dict[str, CallFailed | None] = {}
        left = list(refs)
        message = ""
        for _ in range(_CALLS):
            called = await self._call(group, left, all_or_none=all_or_none)
            results |= called
            unanswered = {name: failure for name, failure in called.items() if _is_unknown(failure)}
            if not unanswered:
                return results
            left = [ref for ref in left if ref.name in unanswered]
            message = next(failure.message for failure in unanswered.values() if failure is not None)
            log.warning("node_deletion.unanswered", group=group, nodes=len(left), problem=message)
            running = await self._find_still_running(group, left, pacing)
            if running is None:
                return results
            results |= dict.fromkeys((ref.name for ref in left if ref not in running), None)
            if not running:
                return results
            left = running
        still = CallFailed(kind=FailureKind.FAILED, message=f"it still runs after {_CALLS} calls: {message}")
        return results | dict.fromkeys((ref.name for ref in left), still)

    async def _call(self, group: str, refs: Sequence[NodeRef], *, all_or_none: bool) -> Results:
        try:
            found = await self._find_group(group)
            if found is not None:
                return await self._deleter.delete(found, refs, all_or_none=all_or_none)
            failure = CallFailed(kind=FailureKind.NO_SUCH_GROUP, message=f"there is no node group {group} any more")
        except (ProviderFailed, NotAllowed) as error:
            failure = CallFailed(kind=FailureKind.FAILED, message=str(error))
        return dict.fromkeys((ref.name for ref in refs), failure)

    async def _find_group(self, group: str) -> Group | None:
        return next((node_group for node_group in await self._provider.node_groups() if node_group.id == group), None)

    async def _find_still_running(self, group: str, refs: Sequence[NodeRef], pacing: Pacing) -> list[NodeRef] | None:
        """Nodes whose instances still run after a few polls, as deletion may take time; None if the provider fails."""
        polling = Polling(self._clock, pacing, for_s=pacing.provider_stuck_s)
        polls = 0
        while await polling.wait():
            try:
                await self._provider.refresh()
                found = await self._find_group(group)
                there = () if found is None else await found.nodes()
            except (ProviderFailed, NotAllowed) as error:
                log.warning("node_deletion.blind", group=group, problem=str(error))
                if pacing.is_stepped:
                    break
                continue
            running = [ref for ref in refs if any(is_running(instance, ref) for instance in there)]
            polls += 1
            if not running or polls == _POLLS:
                return running
        return None


def _is_unknown(failure: CallFailed | None) -> bool:
    return failure is not None and failure.kind is FailureKind.UNKNOWN


def is_running(instance: Instance, ref: NodeRef) -> bool:
    """Whether this is the instance of the node, and it is not being deleted."""
    is_it = instance.id == ref.provider_id if ref.provider_id else instance.name == ref.name
    return is_it and instance.state is not InstanceState.DELETING
