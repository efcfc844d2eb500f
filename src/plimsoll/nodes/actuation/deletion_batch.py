"""The steps of removals that started together (docs/design/nodes.md 6.8), from the taint to the provider's answer.

    taint all (or none) -> wait -> per node: check again, drain, wait for annotations -> ask the provider to delete
    a step fails: the taint is removed

The nodes of an atomic group are deleted by one call when all of them are ready, and not at all if one of them is not.
Cancellation means that the process stops: taints are removed from nodes that the provider was not asked to delete, as
far as there is time. `cleanup` handles what is left then, and after a crash.
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
from plimsoll.nodes.model.node_labels import find_karpenter_pool
from plimsoll.nodes.model.results import FinishedRemoval, RemovalResult
from plimsoll.nodes.observing.failing_objects import describe_failure, may_be_due_to_object
from plimsoll.nodes.planning.scaledown.selection import ATOMIC_FAILED
from plimsoll.nodes.planning.state.node_pods import SCALE_DOWN_DISABLED, NodeFlags
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.nodes import Node
from plimsoll.scheduling.cluster_view import PodKey
from plimsoll.scheduling.priorities import is_expendable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.actuation.node_pods import PodsOfNode, PodsOnNodes
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
_TAINTED_AT_ONCE: Final = 5


@dataclass(slots=True, kw_only=True, eq=False)
class NodeDeletion:
    """One removal in progress."""

    removal: NodeRemoval
    node: Node
    began_at: datetime
    began_s: float
    is_tainted: bool = False
    """The taint was written, or may have been."""
    is_sent_to_provider: bool = False
    """The provider was asked to delete the node: from here on the taint stays unless the provider refuses."""
    pods: tuple[EvictedPod, ...] = ()
    ended: FinishedRemoval | None = None

    @property
    def name(self) -> str:
        return self.removal.node

    @property
    def ref(self) -> NodeRef:
        return NodeRef.from_node(self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionFailure:
    """Why a removal failed."""

    reason: Reason
    result: RemovalResult = RemovalResult.FAILED
    keeps_taint: bool = False
    """The provider may have deleted the node, so the taint stays until that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionDependencies:
    """What removals work with. `rules` gives the drain rules with current budgets and controllers."""

    client: Client
    pods: PodsOnNodes
    rules: Callable[[], DrainRules]
    clock: Clock
    provider_deletions: ProviderDeletions
    on_evicted: Callable[[Pod], None] = field(default=lambda _: None)


class DeletionBatch:
    """Removals that started together. `on_end` is called when a removal has finished."""

    def __init__(
        self,
        deletions: Sequence[NodeDeletion],
        *,
        dependencies: DeletionDependencies,
        options: ScaleDown,
        expendable_below: int,
        pacing: Pacing,
        on_end: Callable[[NodeDeletion], None],
    ) -> None:
        self._expendable_below = expendable_below
        self.deletions = tuple(deletions)
        self._dependencies = dependencies
        self._options = options
        self._pacing = pacing
        self._on_end = on_end
        self._writer = NodeWriter(dependencies.client, clock=dependencies.clock, pacing=pacing)
        self._drainer = Drainer(
            dependencies.client,
            dependencies.pods,
            clock=dependencies.clock,
            pacing=pacing,
            on_evicted=dependencies.on_evicted,
        )

    async def carry_out(self) -> None:
        try:
            if await self._taint_all():
                await self._dependencies.clock.sleep(self._pacing.after_taint_s)
                await (self._remove_together() if self.deletions[0].removal.atomic else self._remove_each())
        except asyncio.CancelledError:
            await self._undo()
            raise

    # ---- taints

    async def _taint_all(self) -> bool:
        """Taint the nodes in small groups; a failure undoes all of them."""
        for first in range(0, len(self.deletions), _TAINTED_AT_ONCE):
            some = self.deletions[first : first + _TAINTED_AT_ONCE]
            async with asyncio.TaskGroup() as group:
                tainting = [group.create_task(self._taint(deletion)) for deletion in some]
            failed = next((reason for task in tainting if (reason := task.result()) is not None), None)
            if failed is not None:
                failure = DeletionFailure(
                    reason=Reason(code=FAILED_TO_MARK, message="not all nodes could be tainted: " + str(failed))
                )
                await self._end_all(failure)
                return False
        return True

    async def _taint(self, deletion: NodeDeletion) -> Reason | None:
        deletion.is_tainted = True
        cordon = self._options.cordon_first
        tainted = await add_deletion_taint(self._writer, deletion.node, at=deletion.began_at, cordon=cordon)
        if isinstance(tainted, NodeGone):
            deletion.is_tainted = False
            await self._end(deletion, _build_gone_failure(deletion))
            return None
        if isinstance(tainted, Reason):
            return tainted
        deletion.node = tainted
        log.info("removal.tainted", node=deletion.name, group=deletion.removal.group)
        return None

    async def _remove_taint(self, deletion: NodeDeletion) -> None:
        written = await remove_deletion_taint(self._writer, deletion.node, uncordon=self._options.cordon_first)
        if isinstance(written, Reason):
            log.warning("removal.taint_left", node=deletion.name, problem=written.message)
        else:
            deletion.is_tainted = False

    async def _undo(self) -> None:
        """Remove taints in parallel, within a time limit: the process is being stopped."""
        tainted = [
            deletion
            for deletion in self.deletions
            if deletion.is_tainted and not deletion.is_sent_to_provider and deletion.ended is None
        ]
        try:
            async with asyncio.timeout(self._pacing.undo_s), asyncio.TaskGroup() as group:
                for deletion in tainted:
                    group.create_task(self._remove_taint(deletion))
        except TimeoutError:
            log.warning("removal.undo_overdue", nodes=[deletion.name for deletion in tainted])

    # ---- draining and deleting

    @property
    def _unfinished(self) -> list[NodeDeletion]:
        return [deletion for deletion in self.deletions if deletion.ended is None]

    async def _remove_each(self) -> None:
        async with asyncio.TaskGroup() as group:
            for deletion in self._unfinished:
                group.create_task(self._remove_node(deletion))

    async def _remove_node(self, deletion: NodeDeletion) -> None:
        failure = await self._prepare(deletion)
        if failure is None:
            deletion.is_sent_to_provider = True
            group = deletion.removal.group
            answer = await self._dependencies.provider_deletions.delete_soon(group, deletion.ref, self._pacing)
            failure = _build_call_failure(answer)
        await self._end(deletion, failure)

    async def _remove_together(self) -> None:
        unfinished = self._unfinished
        async with asyncio.TaskGroup() as group:
            preparing = [group.create_task(self._prepare(deletion)) for deletion in unfinished]
        found_failures = [task.result() for task in preparing]
        first = next((failure for failure in found_failures if failure is not None), None)
        if first is not None:
            whole = Reason(
                code=ATOMIC_FAILED, message="not all nodes of the group can be removed", because=(first.reason,)
            )
            for deletion, own in zip(unfinished, found_failures, strict=True):
                await self._end(deletion, own or DeletionFailure(reason=whole))
            return
        if not unfinished:
            return
        for deletion in unfinished:
            deletion.is_sent_to_provider = True
        group_id = unfinished[0].removal.group
        results = await self._dependencies.provider_deletions.delete(
            group_id, [deletion.ref for deletion in unfinished], self._pacing, all_or_none=True
        )
        for deletion in unfinished:
            await self._end(deletion, _build_call_failure(results[deletion.name]))

    async def _prepare(self, deletion: NodeDeletion) -> DeletionFailure | None:
        """Make the node ready for its deletion. One that a rule fails on stays, and the others go."""
        try:
            return await self._check_and_drain(deletion)
        except Exception as error:
            if not may_be_due_to_object(error):
                raise
            problem = describe_failure(error)
            log.warning("removal.cannot_be_judged", node=deletion.name, problem=problem)
            return DeletionFailure(reason=Reason(code=FAILED_TO_DELETE, message=problem))

    async def _check_and_drain(self, deletion: NodeDeletion) -> DeletionFailure | None:
        """Check again, drain, and wait for delay-deletion annotations."""
        failure = await self._recheck(deletion)
        if failure is None:
            failure = await self._drain(deletion)
        if failure is None and deletion.pods:
            # A drain takes minutes, and the node may have changed meanwhile.
            failure = await self._recheck(deletion)
        if failure is None:
            failure = await self._wait_for_annotations(deletion)
        return failure

    async def _recheck(self, deletion: NodeDeletion) -> DeletionFailure | None:
        """Read the node again, and check that it may still be removed."""
        try:
            current = await self._dependencies.client.get(Node, deletion.name)
        except NotFound:
            return _build_gone_failure(deletion)
        except ApiCallFailed as error:
            return DeletionFailure(reason=Reason(code=FAILED_TO_DELETE, message=f"the node could not be read: {error}"))
        if current.metadata.uid != deletion.node.metadata.uid or current.metadata.deletion_timestamp is not None:
            return _build_gone_failure(deletion)
        deletion.node = current
        if not has_deletion_taint(current):
            return _build_unremovable_failure("the deletion taint was removed")
        if current.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
            return _build_unremovable_failure("the node has the annotation scale-down-disabled")
        if pool := find_karpenter_pool(current.metadata.labels):
            return _build_unremovable_failure(f"the node is Karpenter's, of NodePool {pool}")
        return None

    async def _drain(self, deletion: NodeDeletion) -> DeletionFailure | None:
        try:
            found = await self._dependencies.pods.list_on(deletion.name)
        except ApiCallFailed as error:
            return DeletionFailure(reason=Reason(code=FAILED_TO_DELETE, message=f"its pods could not be read: {error}"))
        removal = deletion.removal
        planned = self._get_planned(removal, found) if removal.moves else None
        to_evict = find_pods_to_evict(found, self._dependencies.rules(), was_empty=removal.is_empty, planned=planned)
        if isinstance(to_evict, Reason):
            return DeletionFailure(reason=to_evict, result=RemovalResult.OVERTAKEN)
        drained = await self._drainer.drain(deletion.name, to_evict, self._options)
        deletion.pods = drained.pods
        return None if drained.problem is None else DeletionFailure(reason=drained.problem)

    def _get_planned(self, removal: NodeRemoval, found: PodsOfNode) -> frozenset[PodKey]:
        """The pods that the plan moves, and those that no plan counts because they are expendable."""
        expendable = (
            PodKey(pod.metadata.namespace, pod.metadata.name)
            for pod in found.pods
            if is_expendable(pod, below=self._expendable_below)
        )
        return frozenset((*(move.pod for move in removal.moves), *expendable))

    async def _wait_for_annotations(self, deletion: NodeDeletion) -> DeletionFailure | None:
        """Wait while annotations delay the deletion, up to a limit."""
        if not self._pacing.deletion_delay_s or not _is_delayed(deletion.node):
            return None
        log.info("removal.held_up", node=deletion.name)
        polling = Polling(self._dependencies.clock, self._pacing, for_s=self._pacing.deletion_delay_s)
        failure: DeletionFailure | None = None
        while _is_delayed(deletion.node) and await polling.wait():
            failure = await self._recheck(deletion)
            if failure is not None and failure.result is RemovalResult.OVERTAKEN:
                break
        return failure

    # ---- finishing

    async def _end_all(self, failure: DeletionFailure) -> None:
        async with asyncio.TaskGroup() as group:
            for deletion in self._unfinished:
                group.create_task(self._end(deletion, failure))

    async def _end(self, deletion: NodeDeletion, failure: DeletionFailure | None) -> None:
        if failure is not None and not failure.keeps_taint:
            deletion.is_sent_to_provider = False
            if deletion.is_tainted and failure.reason.code != NODE_GONE:
                await self._remove_taint(deletion)
        failures = sum(1 for evicted in deletion.pods if evicted.failure is not None)
        deletion.ended = FinishedRemoval(
            removal=deletion.removal,
            result=RemovalResult.REMOVED if failure is None else failure.result,
            reason=None if failure is None else failure.reason,
            evicted=len(deletion.pods) - failures,
            failed_evictions=failures,
            seconds=self._dependencies.clock.monotonic_s() - deletion.began_s,
            was_unready=not NodeFlags.from_node(deletion.node).ready,
            pods=deletion.pods,
        )
        finished = deletion.ended
        problem = {} if finished.reason is None else {"reason": finished.reason.code, "problem": str(finished.reason)}
        log.info("removal.ended", node=deletion.name, result=finished.result.value, evicted=finished.evicted, **problem)
        self._on_end(deletion)


def _is_delayed(node: Node) -> bool:
    return any(key.startswith(DELAYS_DELETION) for key in node.metadata.annotations)


def _build_gone_failure(deletion: NodeDeletion) -> DeletionFailure:
    reason = Reason(code=NODE_GONE, message=f"node {deletion.name} was deleted by something else")
    return DeletionFailure(reason=reason, result=RemovalResult.OVERTAKEN)


def _build_unremovable_failure(why: str) -> DeletionFailure:
    return DeletionFailure(reason=Reason(code=NODE_KEPT, message=why), result=RemovalResult.OVERTAKEN)


def _build_call_failure(failure: CallFailed | None) -> DeletionFailure | None:
    if failure is None:
        return None
    if failure.kind is FailureKind.HELD:
        return _build_unremovable_failure(failure.message)
    is_unknown = failure.kind is FailureKind.UNKNOWN
    code = UNKNOWN_OUTCOME if is_unknown else FAILED_TO_DELETE
    return DeletionFailure(reason=Reason(code=code, message=failure.message), keeps_taint=is_unknown)
