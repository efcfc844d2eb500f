"""`NodeDeletionController`: carries out removals concurrently with the loop, and knows which nodes are being removed.

The loop starts the removals that it decided, and asks in each iteration what is in progress and what has finished.
Live, `run()` is a service that owns all removals: cancelling it stops them. A stepped scenario does not run it;
`wait_until_idle()` carries out the started removals within the loop iteration.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from plimsoll.core.plans import Reason
from plimsoll.nodes.actuation.deletion_batch import NODE_GONE, DeletionBatch, DeletionDependencies, NodeDeletion
from plimsoll.nodes.actuation.provider_deletions import ProviderDeletions
from plimsoll.nodes.actuation.recently_evicted_pods import RecentEvictions
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.model.results import FinishedRemoval, RemovalResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
    from plimsoll.nodes.actuation.node_pods import PodsOnNodes
    from plimsoll.nodes.actuation.timing import Pacing
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.planning.scaledown.drainability import DrainRules
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuationDependencies:
    """What removals work with. `rules` gives the drain rules with current budgets and controllers."""

    client: Client
    provider: Provider
    deleter: InstanceDeleter
    pods: PodsOnNodes
    rules: Callable[[], DrainRules]
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionsInProgress:
    """The removals that have started and not finished."""

    nodes: frozenset[str] = frozenset()
    """Nodes being removed, and nodes that the provider is deleting and that still exist."""
    by_group: Mapping[str, int] = field(default_factory=dict)
    """By group, removals that its target size does not include yet."""
    removals: int = 0
    """Removals that the provider was not asked for yet; parallelism limits count these."""
    drains: int = 0


@dataclass(frozen=True, slots=True)
class _SentDeletion:
    """A node that the provider was asked to delete."""

    uid: str
    group: str
    at_s: float


class NodeDeletionController:
    """`policy` and `pacing` may change between loop iterations; a started removal keeps those it started with."""

    def __init__(self, dependencies: ActuationDependencies, pacing: Pacing) -> None:
        self.policy = Policy()
        self.pacing = pacing
        self._dependencies = dependencies
        self._evictions = RecentEvictions()
        provider_deletions = ProviderDeletions(dependencies.provider, dependencies.deleter, clock=dependencies.clock)
        self._batch_dependencies = DeletionDependencies(
            client=dependencies.client,
            pods=dependencies.pods,
            rules=dependencies.rules,
            clock=dependencies.clock,
            provider_deletions=provider_deletions,
            on_evicted=lambda pod: self._evictions.note(pod, dependencies.clock.now()),
        )
        self._deletions: dict[str, NodeDeletion] = {}
        self._sent_to_provider: dict[str, _SentDeletion] = {}
        self._finished: list[FinishedRemoval] = []
        self._waiting: list[DeletionBatch] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    # ---- starting

    def start(self, removals: Sequence[NodeRemoval], nodes: Mapping[str, Node], now: datetime) -> None:
        """Start removals, except of nodes that are being removed already or are not in `nodes`.

        Each of these is tainted together: an atomic group, the empty nodes, the nodes to drain.
        """
        together: dict[tuple[str, bool], list[NodeDeletion]] = {}
        for removal in removals:
            deletion = self._create_deletion(removal, nodes, now)
            if deletion is not None:
                key = (removal.group, True) if removal.atomic else ("", removal.is_empty)
                together.setdefault(key, []).append(deletion)
        self._waiting += [self._create_batch(deletions) for deletions in together.values()]
        if self._waiting:
            self._idle.clear()
            self._wake.set()

    def _create_deletion(self, removal: NodeRemoval, nodes: Mapping[str, Node], now: datetime) -> NodeDeletion | None:
        name = removal.node
        if name in self._deletions or name in self._sent_to_provider:
            log.warning("removal.begun_twice", node=name)
            return None
        if name not in nodes:
            reason = Reason(code=NODE_GONE, message=f"node {name} was deleted by something else")
            self._finished.append(FinishedRemoval(removal=removal, result=RemovalResult.OVERTAKEN, reason=reason))
            return None
        began_s = self._dependencies.clock.monotonic_s()
        deletion = NodeDeletion(removal=removal, node=nodes[name], began_at=now, began_s=began_s)
        self._deletions[name] = deletion
        return deletion

    def _create_batch(self, deletions: Sequence[NodeDeletion]) -> DeletionBatch:
        return DeletionBatch(
            deletions,
            dependencies=self._batch_dependencies,
            options=self.policy.scale_down,
            expendable_below=self.policy.pods.expendable_below,
            pacing=self.pacing,
            on_end=self._on_end,
        )

    def forget_deleted(self, nodes: Mapping[str, Node], has_instance: Mapping[str, bool]) -> None:
        """Forget nodes that no longer exist, and nodes whose deletion has taken so long that it is stuck."""
        now_s = self._dependencies.clock.monotonic_s()
        for name, sent in list(self._sent_to_provider.items()):
            node = nodes.get(name)
            if node is None or node.metadata.uid != sent.uid:
                del self._sent_to_provider[name]
                continue
            has_machine = has_instance.get(name, True)
            patience_s = self.pacing.provider_stuck_s if has_machine else self.pacing.kubernetes_stuck_s
            if now_s - sent.at_s >= patience_s:
                log.warning("removal.stuck", node=name, group=sent.group, has_machine=has_machine)
                del self._sent_to_provider[name]

    # ---- state

    @property
    def in_progress(self) -> DeletionsInProgress:
        started = self._deletions.values()
        return DeletionsInProgress(
            nodes=frozenset((*self._deletions, *self._sent_to_provider)),
            by_group=Counter(deletion.removal.group for deletion in started),
            removals=len(started),
            drains=sum(1 for deletion in started if not deletion.removal.is_empty),
        )

    def take_finished(self) -> tuple[FinishedRemoval, ...]:
        """The removals that finished since the last call."""
        finished, self._finished = tuple(self._finished), []
        return finished

    def adjust_clock(self, by: timedelta) -> None:
        self._evictions.adjust_clock(by)

    def find_recently_evicted(self, now: datetime, pods: Iterable[Pod] = ()) -> tuple[Pod, ...]:
        """Recently evicted pods that none of `pods`, all pods of the cluster, replaces yet."""
        return self._evictions.find_unreplaced(now, pods, for_s=self.policy.scale_down.eviction_time_s)

    # ---- carrying out

    async def run(self) -> None:
        """Carry out removals until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for batch in self._take_waiting():
                    group.create_task(self._carry_out(batch), name=f"remove {batch.deletions[0].name} and others")
                self._wake.clear()
                await self._wake.wait()

    async def wait_until_idle(self) -> None:
        """Return when every started removal has finished; those that `run` has not taken are carried out here."""
        async with asyncio.TaskGroup() as group:
            for batch in self._take_waiting():
                group.create_task(self._carry_out(batch))
        await self._idle.wait()

    def _take_waiting(self) -> list[DeletionBatch]:
        batches, self._waiting = self._waiting, []
        return batches

    async def _carry_out(self, batch: DeletionBatch) -> None:
        try:
            await batch.carry_out()
        finally:
            # Some are left only after a cancellation or a bug; `cleanup` removes their taints later.
            for deletion in batch.deletions:
                self._forget(deletion)
            if not self._deletions:
                self._idle.set()

    def _on_end(self, deletion: NodeDeletion) -> None:
        assert deletion.ended is not None
        self._forget(deletion)
        self._finished.append(deletion.ended)
        if deletion.is_sent_to_provider:
            self._sent_to_provider[deletion.name] = _SentDeletion(
                deletion.node.metadata.uid, deletion.removal.group, self._dependencies.clock.monotonic_s()
            )

    def _forget(self, deletion: NodeDeletion) -> None:
        """Only this deletion: a later one may be removing the node again."""
        if self._deletions.get(deletion.name) is deletion:
            del self._deletions[deletion.name]
