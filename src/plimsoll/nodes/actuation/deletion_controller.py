"""`NodeDeletionController`: carries removals out beside the loop, and knows which nodes are on their way.

The loop begins what a turn decided and asks each turn what is under way and what has ended. Live, `run()` is a service
that owns all the work: cancelling it is how removals are stopped. In a stepped scenario nobody runs it:
`wait_until_idle()` carries out what was begun, within the turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from plimsoll.core.plans import Reason
from plimsoll.nodes.actuation.deletion_batch import NODE_GONE, DeletionBatch, DeletionDependencies, NodeDeletion
from plimsoll.nodes.actuation.evicted_pods import RecentEvictions
from plimsoll.nodes.actuation.provider_deletions import ProviderDeletions
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.model.results import FinishedRemoval, RemovalResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
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
    """What a remover works with. `rules`: the drain rules with budgets and controllers as they are known now."""

    client: Client
    provider: Provider
    pods: PodsOnNodes
    rules: Callable[[], DrainRules]
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionsInProgress:
    """For `planning.removal_candidates.Known`."""

    nodes: frozenset[str] = frozenset()
    """Those that are being removed, and those that the provider has taken and that are still there."""
    by_group: Mapping[str, int] = field(default_factory=dict)
    """Removals that a group's target size does not know of yet."""
    removals: int = 0
    """That are not with the provider yet: what may go on at once is counted by these."""
    drains: int = 0


@dataclass(frozen=True, slots=True)
class _Handed:
    """A node that the provider has taken."""

    uid: str
    group: str
    at_s: float


class NodeDeletionController:
    """`policy` and `pacing` may be set anew each turn; what was begun goes on under those it began with."""

    def __init__(self, tools: ActuationDependencies, pacing: Pacing) -> None:
        self.policy = Policy()
        self.pacing = pacing
        self._tools = tools
        self._evictions = RecentEvictions()
        deletions = ProviderDeletions(tools.provider, clock=tools.clock)
        self._hands = DeletionDependencies(
            client=tools.client,
            pods=tools.pods,
            rules=tools.rules,
            clock=tools.clock,
            provider_deletions=deletions,
            on_evicted=lambda pod: self._evictions.note(pod, tools.clock.now()),
        )
        self._departures: dict[str, NodeDeletion] = {}
        self._handed: dict[str, _Handed] = {}
        self._ended: list[FinishedRemoval] = []
        self._begun: list[DeletionBatch] = []
        self._wake = asyncio.Event()
        self._at_rest = asyncio.Event()
        self._at_rest.set()

    # ---- what the loop says

    def start(self, removals: Sequence[NodeRemoval], nodes: Mapping[str, Node], now: datetime) -> None:
        """Start removing. A node that is leaving already, or is not among `nodes`, is not begun.

        What is tainted together: a group that goes whole; empty nodes; nodes to drain.
        """
        together: dict[tuple[str, bool], list[NodeDeletion]] = {}
        for node_removal in removals:
            departure = self._departure(node_removal, nodes, now)
            if departure is not None:
                key = (node_removal.group, True) if node_removal.atomic else ("", node_removal.is_empty)
                together.setdefault(key, []).append(departure)
        self._begun += [self._batch(departures) for departures in together.values()]
        if self._begun:
            self._at_rest.clear()
            self._wake.set()

    def _departure(self, removal: NodeRemoval, nodes: Mapping[str, Node], now: datetime) -> NodeDeletion | None:
        name = removal.node
        if name in self._departures or name in self._handed:
            log.warning("removal.begun_twice", node=name)
            return None
        if name not in nodes:
            reason = Reason(code=NODE_GONE, message=f"node {name} is gone without our doing")
            self._ended.append(FinishedRemoval(removal=removal, result=RemovalResult.OVERTAKEN, reason=reason))
            return None
        began_s = self._tools.clock.monotonic_s()
        departure = NodeDeletion(removal=removal, node=nodes[name], began_at=now, began_s=began_s)
        self._departures[name] = departure
        return departure

    def _batch(self, departures: Sequence[NodeDeletion]) -> DeletionBatch:
        return DeletionBatch(
            departures,
            hands=self._hands,
            options=self.policy.scale_down,
            pacing=self.pacing,
            on_end=self._on_end,
        )

    def forget_deleted(self, nodes: Mapping[str, Node], has_instance: Mapping[str, bool]) -> None:
        """Forget nodes that are gone, and those that should be gone for so long that their deletion is stuck."""
        now_s = self._tools.clock.monotonic_s()
        for name, handed in list(self._handed.items()):
            node = nodes.get(name)
            if node is None or node.metadata.uid != handed.uid:
                del self._handed[name]
                continue
            has_machine = has_instance.get(name, True)
            patience_s = self.pacing.provider_stuck_s if has_machine else self.pacing.kubernetes_stuck_s
            if now_s - handed.at_s >= patience_s:
                log.warning("removal.stuck", node=name, group=handed.group, has_machine=has_machine)
                del self._handed[name]

    # ---- what the loop asks

    @property
    def in_progress(self) -> DeletionsInProgress:
        going = self._departures.values()
        return DeletionsInProgress(
            nodes=frozenset((*self._departures, *self._handed)),
            by_group=Counter(node_deletion.removal.group for node_deletion in going),
            removals=len(going),
            drains=sum(1 for node_deletion in going if not node_deletion.removal.is_empty),
        )

    def take_finished(self) -> tuple[FinishedRemoval, ...]:
        """What has come to an end since this was last asked."""
        told, self._ended = tuple(self._ended), []
        return told

    def adjust_clock(self, by: timedelta) -> None:
        self._evictions.adjust_clock(by)

    def recently_evicted(self, now: datetime, pods: Iterable[Pod] = ()) -> tuple[Pod, ...]:
        """Pods that were evicted lately and that none of `pods`, all that there are, has replaced."""
        return self._evictions.find_unreplaced(now, pods, for_s=self.policy.scale_down.eviction_time_s)

    # ---- the work

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for batch in self._taken():
                    group.create_task(self._carry_out(batch), name=f"remove {batch.deletions[0].name} and others")
                self._wake.clear()
                await self._wake.wait()

    async def wait_until_idle(self) -> None:
        """Until everything that was begun has ended; what nobody has taken up yet is carried out here."""
        async with asyncio.TaskGroup() as group:
            for batch in self._taken():
                group.create_task(self._carry_out(batch))
        await self._at_rest.wait()

    def _taken(self) -> list[DeletionBatch]:
        batches, self._begun = self._begun, []
        return batches

    async def _carry_out(self, batch: DeletionBatch) -> None:
        try:
            await batch.carry_out()
        finally:
            # Only after a cancellation, or a mistake of ours, is anybody left: nodes that `cleaning` looks after.
            for node_deletion in batch.deletions:
                self._forget(node_deletion)
            if not self._departures:
                self._at_rest.set()

    def _on_end(self, departure: NodeDeletion) -> None:
        assert departure.ended is not None
        self._forget(departure)
        self._ended.append(departure.ended)
        if departure.is_handed:
            self._handed[departure.name] = _Handed(
                departure.node.metadata.uid, departure.removal.group, self._tools.clock.monotonic_s()
            )

    def _forget(self, departure: NodeDeletion) -> None:
        """The node may be on its way again since, with others."""
        if self._departures.get(departure.name) is departure:
            del self._departures[departure.name]
