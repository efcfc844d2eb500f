"""The parts of a node autoscaler put together: the same for scenarios, `plimsoll up` and a real cluster.

Who runs it gives a client, informers, a provider and a configuration; `services()` go to a supervisor, and `autoscaler`
is there for whoever takes turns by hand. Nothing here decides.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.journal.last_plans_map import LAST_PLANS_OF_NODES, LastPlansWriter
from plimsoll.nodes.acting.cleaning import Cleaner
from plimsoll.nodes.acting.node_pods import CachedPods, ListedPods
from plimsoll.nodes.acting.node_writes import NodeWriter
from plimsoll.nodes.acting.pacing import Pacing
from plimsoll.nodes.acting.removal_ledger import RemovalLedger
from plimsoll.nodes.acting.removing import RemovalTools, Remover
from plimsoll.nodes.acting.soft_taints import SoftTaints
from plimsoll.nodes.controller import TurnTimer
from plimsoll.nodes.loop import Autoscaler, Parts
from plimsoll.nodes.observing.clusters import Watching
from plimsoll.nodes.observing.profiled_pods import ProfiledPods
from plimsoll.nodes.observing.requests_watched import RequestsWatched
from plimsoll.nodes.planning.disruption_slots import DisruptionSlots
from plimsoll.nodes.planning.drains import DrainRules
from plimsoll.nodes.requests.desk import Desk, DeskTools
from plimsoll.nodes.requests.registered_classes import condition_types_of, registered_classes
from plimsoll.nodes.requests.rolling_back import RollBack
from plimsoll.nodes.requests.writing import RequestWriter
from plimsoll.nodes.shrinking import Hands
from plimsoll.nodes.telling.events import EventEmitter
from plimsoll.nodes.telling.health import Health, Patience
from plimsoll.nodes.telling.status import StatusWriter
from plimsoll.nodes.telling.teller import Teller
from plimsoll.runtime.services import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.shared import Informers
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.nodes.configuring import Configuration
    from plimsoll.nodes.expanding import Asking
    from plimsoll.nodes.loop import Planning
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.scheduler_profiles import Profile
    from plimsoll.objects.pods import Pod

log = structlog.get_logger(__name__)

_FAREWELL_S: Final = 5.0
"""A process that is told to end is not waited for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an autoscaler lives in."""

    client: Client
    informers: Informers
    recorder: EventRecorder
    provider: Provider
    configuration: Configuration
    clock: Clock
    planning: Planning
    journal: Journal | None = None
    expander: Asking | None = None
    measuring: Clock | None = None
    """What measures how long things take, where that is another one than `clock`."""
    stepped: bool = False
    profiles: Sequence[Profile] = ()
    """Of the cluster's scheduler, where it is not the default one."""
    knows_owner: Callable[[str], bool] = lambda _uid: True
    """Whether the owner of this uid would be seen if it were there."""


class NodeAutoscaler:
    """Made before the informers run."""

    def __init__(self, around: Surroundings) -> None:
        policy = around.configuration.wishes().policy
        as_scheduled = ProfiledPods(around.profiles).of if around.profiles else None
        self.watching = Watching(around.informers, knows_owners=around.knows_owner, as_scheduled=as_scheduled)
        pacing = Pacing.STEPPED if around.stepped else Pacing.of(policy)
        self._around = around
        self._pods = CachedPods(self.watching.pods) if around.stepped else ListedPods(around.client)
        self._classes = registered_classes() if policy.requests.enabled else {}
        self.requests = self._requests(as_scheduled) if policy.requests.enabled else None
        self._remover = Remover(self._removal_tools(), pacing)
        writer = NodeWriter(around.client, clock=around.clock, pacing=pacing)
        self.teller = Teller(
            emitter=EventEmitter(around.recorder),
            status=StatusWriter(around.client),
            journal=around.journal,
            last_plans=None if around.stepped else LastPlansWriter(around.client, LAST_PLANS_OF_NODES),
        )
        self.health = Health(Patience.of(policy.operation))
        self._cleaner = Cleaner(writer, around.provider, clock=around.clock)
        namespace = policy.operation.namespace
        self.autoscaler = Autoscaler(
            Parts(
                watching=self.watching,
                provider=around.provider,
                configuration=around.configuration,
                hands=Hands(
                    remover=self._remover,
                    soft_taints=SoftTaints(writer, clock=around.clock),
                    ledger=RemovalLedger(around.client, clock=around.clock, namespace=namespace),
                ),
                cleaner=self._cleaner,
                teller=self.teller,
                clock=around.clock,
                measuring=around.measuring or around.clock,
                planning=around.planning,
                expander=around.expander,
                desk=self._desk(),
                stepped=around.stepped,
            )
        )

    def _removal_tools(self) -> RemovalTools:
        around = self._around
        return RemovalTools(
            client=around.client,
            provider=around.provider,
            pods=self._pods,
            rules=self._drain_rules,
            clock=around.clock,
        )

    def _requests(self, as_scheduled: Callable[[Pod], Pod] | None) -> RequestsWatched:
        around = self._around
        registered = condition_types_of(self._classes)
        return RequestsWatched(around.informers, clock=around.clock, registered=registered, as_scheduled=as_scheduled)

    def _desk(self) -> Desk | None:
        """Where requests are served, if they are."""
        if self.requests is None:
            return None
        around = self._around
        return Desk(
            DeskTools(
                watched=self.requests,
                writer=RequestWriter(around.client),
                roll_back=RollBack(around.provider, self._pods),
                provider=around.provider,
                planning=around.planning,
                classes=self._classes,
            )
        )

    def services(self) -> list[Service]:
        """Its own timer and its removals. A stepped world runs neither: it takes turns."""
        if self._around.stepped:
            return []
        timer = TurnTimer(self.autoscaler, self.watching, self.health, clock=self._around.clock)
        return [
            Service(name="node removals", run=self._remover.run),
            Service(name="node autoscaler", run=timer.run),
        ]

    async def settled(self) -> None:
        """Until every removal that was begun has come to its end."""
        await self._remover.settled()

    async def leave(self) -> None:
        """A clean exit: from now on nobody looks after the status, nor after marks of nodes that may be needed."""
        policy = self._around.configuration.wishes().policy
        await self.teller.leave(policy)
        if policy.operation.dry_run or self.teller.last is None:
            return
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._cleaner.take_off_soft_taints(self.watching.read().nodes, policy.scale_down)
        except TimeoutError:
            log.warning("leaving.overdue", problem="soft taints are left; the next start takes them off")

    def _drain_rules(self) -> DrainRules:
        """As of now: budgets and owners may have changed since a removal was planned."""
        known = self.watching.read_owners()
        return DrainRules(
            options=self._around.configuration.wishes().policy.scale_down,
            now=self._around.clock.now(),
            slots=DisruptionSlots(self.watching.budgets()),
            controllers=known,
        )
