"""The steps of removals that were begun together (specs/nodes.md 6.8), from the taint to the provider's answer.

    mark all (or none) -> wait -> each: check again, drain, wait for annotations -> hand to the provider
    any step fails: the mark comes off

A group that is scaled whole is handed over by one call when all its nodes are ready, and not at all if one is not.
Cancellation is the process being stopped: marks come off nodes that the provider was not asked to delete, as far as
there is time for it. What is left then, and after a crash, is for `cleaning`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.nodes.actuation.drain import Drainer, find_pods_to_evict
from plimsoll.nodes.actuation.node_writer import NodeGone, NodeWriter
from plimsoll.nodes.actuation.taints import add_deletion_taint, has_deletion_taint, remove_deletion_taint
from plimsoll.nodes.actuation.timing import Polling
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind
from plimsoll.nodes.model.results import FinishedRemoval, RemovalResult
from plimsoll.nodes.planning.scaledown.selection import ATOMIC_FAILED
from plimsoll.nodes.planning.state.node_pods import SCALE_DOWN_DISABLED, NodeFlags
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.actuation.node_pods import PodsOnNodes
    from plimsoll.nodes.actuation.provider_deletions import ProviderDeletions
    from plimsoll.nodes.actuation.timing import Pacing
    from plimsoll.nodes.config.policy import ScaleDown
    from plimsoll.nodes.model.results import EvictedPod
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.planning.scaledown.drainability import DrainRules
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)

DELAYS_DELETION: Final = "delay-deletion.cluster-autoscaler.kubernetes.io/"
FAILED_TO_MARK: Final = "FailedToMarkToBeDeleted"
FAILED_TO_DELETE: Final = "FailedToDelete"
UNKNOWN_OUTCOME: Final = "DeletionNotConfirmed"
NODE_GONE: Final = "NodeGone"
NODE_KEPT: Final = "NodeKept"
_MARKED_AT_ONCE: Final = 5


@dataclass(slots=True, kw_only=True, eq=False)
class NodeDeletion:
    """One removal on its way."""

    removal: NodeRemoval
    node: Node
    began_at: datetime
    began_s: float
    is_marked: bool = False
    """The mark is on, or may be."""
    is_handed: bool = False
    """The provider is being asked to delete it, or was: from here on the mark stays unless it says no."""
    pods: tuple[EvictedPod, ...] = ()
    ended: FinishedRemoval | None = None

    @property
    def name(self) -> str:
        return self.removal.node

    @property
    def ref(self) -> NodeRef:
        return NodeRef.of_node(self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionFailure:
    """Why a removal does not come to its end."""

    reason: Reason
    result: RemovalResult = RemovalResult.FAILED
    keeps_mark: bool = False
    """The provider may have done it: nothing is undone before it has told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionDependencies:
    """What departures work with. `rules` are the planner's, with what is known of budgets and controllers now."""

    client: Client
    pods: PodsOnNodes
    rules: Callable[[], DrainRules]
    clock: Clock
    provider_deletions: ProviderDeletions
    on_evicted: Callable[[Pod], None] = field(default=lambda _: None)


class DeletionBatch:
    """Departures that were begun together. `on_end` hears of each one's end."""

    def __init__(
        self,
        departures: Sequence[NodeDeletion],
        *,
        hands: DeletionDependencies,
        options: ScaleDown,
        pacing: Pacing,
        on_end: Callable[[NodeDeletion], None],
    ) -> None:
        self.deletions = tuple(departures)
        self._hands = hands
        self._options = options
        self._pacing = pacing
        self._on_end = on_end
        self._writer = NodeWriter(hands.client, clock=hands.clock, pacing=pacing)
        self._drainer = Drainer(hands.client, hands.pods, clock=hands.clock, pacing=pacing, on_evicted=hands.on_evicted)

    async def carry_out(self) -> None:
        try:
            if await self._mark_all():
                await self._hands.clock.sleep(self._pacing.after_taint_s)
                await (self._leave_whole() if self.deletions[0].removal.atomic else self._leave())
        except asyncio.CancelledError:
            await self._undo_in_time()
            raise

    # ---- the mark

    async def _mark_all(self) -> bool:
        """So many at a time; a failure undoes all of them."""
        for first in range(0, len(self.deletions), _MARKED_AT_ONCE):
            some = self.deletions[first : first + _MARKED_AT_ONCE]
            async with asyncio.TaskGroup() as group:
                marking = [group.create_task(self._mark(node_deletion)) for node_deletion in some]
            failed = next((reason for task in marking if (reason := task.result()) is not None), None)
            if failed is not None:
                setback = DeletionFailure(
                    reason=Reason(code=FAILED_TO_MARK, message="not all could be tainted: " + str(failed))
                )
                await self._end_all(setback)
                return False
        return True

    async def _mark(self, departure: NodeDeletion) -> Reason | None:
        departure.is_marked = True
        cordon = self._options.cordon_first
        marked = await add_deletion_taint(self._writer, departure.node, at=departure.began_at, cordon=cordon)
        if isinstance(marked, NodeGone):
            departure.is_marked = False
            await self._end(departure, _gone(departure))
            return None
        if isinstance(marked, Reason):
            return marked
        departure.node = marked
        log.info("removal.marked", node=departure.name, group=departure.removal.group)
        return None

    async def _unmark(self, departure: NodeDeletion) -> None:
        written = await remove_deletion_taint(self._writer, departure.node, uncordon=self._options.cordon_first)
        if isinstance(written, Reason):
            log.warning("removal.mark_left", node=departure.name, problem=written.message)
        else:
            departure.is_marked = False

    async def _undo_in_time(self) -> None:
        """Best effort, all at once, bounded: whoever stops us does not wait for ever."""
        marked = [
            node_deletion
            for node_deletion in self.deletions
            if node_deletion.is_marked and not node_deletion.is_handed and node_deletion.ended is None
        ]
        try:
            async with asyncio.timeout(self._pacing.undo_s), asyncio.TaskGroup() as group:
                for node_deletion in marked:
                    group.create_task(self._unmark(node_deletion))
        except TimeoutError:
            log.warning("removal.undo_overdue", nodes=[deletion.name for deletion in marked])

    # ---- leaving

    @property
    def _staying(self) -> list[NodeDeletion]:
        return [node_deletion for node_deletion in self.deletions if node_deletion.ended is None]

    async def _leave(self) -> None:
        async with asyncio.TaskGroup() as group:
            for node_deletion in self._staying:
                group.create_task(self._leave_one(node_deletion))

    async def _leave_one(self, departure: NodeDeletion) -> None:
        setback = await self._made_ready(departure)
        if setback is None:
            departure.is_handed = True
            group = departure.removal.group
            failure = await self._hands.provider_deletions.delete_soon(group, departure.ref, self._pacing)
            setback = _of_call(failure)
        await self._end(departure, setback)

    async def _leave_whole(self) -> None:
        staying = self._staying
        async with asyncio.TaskGroup() as group:
            preparing = [group.create_task(self._made_ready(one)) for one in staying]
        setbacks = [task.result() for task in preparing]
        first = next((deletion_failure for deletion_failure in setbacks if deletion_failure is not None), None)
        if first is not None:
            whole = Reason(code=ATOMIC_FAILED, message="not all nodes of its group can go", because=(first.reason,))
            for one, own in zip(staying, setbacks, strict=True):
                await self._end(one, own or DeletionFailure(reason=whole))
            return
        if not staying:
            return
        for node_deletion in staying:
            node_deletion.is_handed = True
        group_id = staying[0].removal.group
        results = await self._hands.provider_deletions.delete(group_id, [one.ref for one in staying], self._pacing)
        for deletion in staying:
            await self._end(deletion, _of_call(results[deletion.name]))

    async def _made_ready(self, departure: NodeDeletion) -> DeletionFailure | None:
        """Check once more, drain, and wait for who asked to be waited for."""
        setback = await self._checked(departure)
        if setback is None:
            setback = await self._emptied(departure)
        if setback is None and departure.pods:
            # Draining takes minutes, in which somebody may have changed their mind.
            setback = await self._checked(departure)
        if setback is None:
            setback = await self._delayed(departure)
        return setback

    async def _checked(self, departure: NodeDeletion) -> DeletionFailure | None:
        """The node as it is now, and whether anybody has changed their mind."""
        try:
            current = await self._hands.client.get(Node, departure.name)
        except NotFound:
            return _gone(departure)
        except ApiCallFailed as error:
            return DeletionFailure(reason=Reason(code=FAILED_TO_DELETE, message=f"the node could not be read: {error}"))
        if current.metadata.uid != departure.node.metadata.uid or current.metadata.deletion_timestamp is not None:
            return _gone(departure)
        departure.node = current
        if not has_deletion_taint(current):
            return _kept("somebody took the taint off")
        if current.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
            return _kept("it was annotated scale-down-disabled")
        return None

    async def _emptied(self, departure: NodeDeletion) -> DeletionFailure | None:
        try:
            found = await self._hands.pods.on(departure.name)
        except ApiCallFailed as error:
            return DeletionFailure(reason=Reason(code=FAILED_TO_DELETE, message=f"its pods could not be read: {error}"))
        load = find_pods_to_evict(found, self._hands.rules(), was_empty=departure.removal.is_empty)
        if isinstance(load, Reason):
            return DeletionFailure(reason=load, result=RemovalResult.OVERTAKEN)
        drained = await self._drainer.drain(departure.name, load, self._options)
        departure.pods = drained.pods
        return None if drained.problem is None else DeletionFailure(reason=drained.problem)

    async def _delayed(self, departure: NodeDeletion) -> DeletionFailure | None:
        """Annotations may hold the deletion up, but not for ever."""
        if not self._pacing.deletion_delay_s or not _is_held_up(departure.node):
            return None
        log.info("removal.held_up", node=departure.name)
        looks = Polling(self._hands.clock, self._pacing, for_s=self._pacing.deletion_delay_s)
        setback: DeletionFailure | None = None
        while _is_held_up(departure.node) and await looks.wait():
            setback = await self._checked(departure)
            if setback is not None and setback.result is RemovalResult.OVERTAKEN:
                break
        return setback

    # ---- the end

    async def _end_all(self, setback: DeletionFailure) -> None:
        async with asyncio.TaskGroup() as group:
            for node_deletion in self._staying:
                group.create_task(self._end(node_deletion, setback))

    async def _end(self, departure: NodeDeletion, setback: DeletionFailure | None) -> None:
        if setback is not None and not setback.keeps_mark:
            departure.is_handed = False
            if departure.is_marked and setback.reason.code != NODE_GONE:
                await self._unmark(departure)
        failures = sum(1 for evicted in departure.pods if evicted.failure is not None)
        departure.ended = FinishedRemoval(
            removal=departure.removal,
            result=RemovalResult.REMOVED if setback is None else setback.result,
            reason=None if setback is None else setback.reason,
            evicted=len(departure.pods) - failures,
            failed_evictions=failures,
            seconds=self._hands.clock.monotonic_s() - departure.began_s,
            was_unready=not NodeFlags.of(departure.node).ready,
            pods=departure.pods,
        )
        told = departure.ended
        problem = {} if told.reason is None else {"reason": told.reason.code, "problem": str(told.reason)}
        log.info("removal.ended", node=departure.name, result=told.result.value, evicted=told.evicted, **problem)
        self._on_end(departure)


def _is_held_up(node: Node) -> bool:
    return any(key.startswith(DELAYS_DELETION) for key in node.metadata.annotations)


def _gone(departure: NodeDeletion) -> DeletionFailure:
    reason = Reason(code=NODE_GONE, message=f"node {departure.name} is gone without our doing")
    return DeletionFailure(reason=reason, result=RemovalResult.OVERTAKEN)


def _kept(why: str) -> DeletionFailure:
    return DeletionFailure(reason=Reason(code=NODE_KEPT, message=why), result=RemovalResult.OVERTAKEN)


def _of_call(failure: CallFailed | None) -> DeletionFailure | None:
    if failure is None:
        return None
    is_unknown = failure.kind is FailureKind.UNKNOWN
    code = UNKNOWN_OUTCOME if is_unknown else FAILED_TO_DELETE
    return DeletionFailure(reason=Reason(code=code, message=failure.message), keeps_mark=is_unknown)
