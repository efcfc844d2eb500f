"""Empties one node: checks once more that everything on it may go, evicts it tier by tier, waits until it is gone.

Daemons' pods are told to go too where that is wanted, but nobody waits for them. The check is the planner's own rules,
asked about what is on the node now: between plan and taint a pod may have come that must not be moved.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.nodes.acting.drain_tiers import by_tier, drain_tiers
from plimsoll.nodes.acting.evictions import Evictor, name_of
from plimsoll.nodes.acting.kube_trouble import TROUBLE
from plimsoll.nodes.acting.pacing import Looks
from plimsoll.nodes.planning.drains import Drain, is_daemon_pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.acting.drain_tiers import DrainTier
    from plimsoll.nodes.acting.node_pods import NodePods, PodsOnNodes
    from plimsoll.nodes.acting.pacing import Pacing
    from plimsoll.nodes.planning.drains import DrainRules
    from plimsoll.nodes.policy import ScaleDown
    from plimsoll.nodes.turns import EvictedPod
    from plimsoll.objects.pods import Pod

log = structlog.get_logger(__name__)

DAEMON_EVICTION: Final = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
NEW_PODS: Final = "NewPodsScheduled"
BLOCKED_BY_POD: Final = "BlockedByPod"
FAILED_TO_EVICT: Final = "FailedToEvictPods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a node carries, as its drain sees it."""

    moving: tuple[Pod, ...] = ()
    """To be evicted, and waited for."""
    daemons: tuple[Pod, ...] = ()
    """To be evicted if they are there; nobody waits for them."""


def load_of(found: NodePods, rules: DrainRules, *, was_empty: bool) -> Load | Reason:
    """What has to leave; or why the node cannot go after all."""
    if found.unreadable:
        return Reason(code=BLOCKED_BY_POD, message=f"{found.unreadable} pods on it cannot be read")
    moving: list[Pod] = []
    daemons: list[Pod] = []
    for pod in found.pods:
        verdict = rules.verdict(pod)
        if verdict.keeps_node:
            because = Reason(code=verdict.code, message=verdict.why)
            return Reason(code=BLOCKED_BY_POD, message=f"pod {name_of(pod)} keeps it", because=(because,))
        if verdict.drain is Drain.MOVE and was_empty:
            return Reason(code=NEW_PODS, message=f"pod {name_of(pod)} has come since it was found empty")
        if verdict.drain is Drain.SKIP:
            continue
        (daemons if is_daemon_pod(pod) else moving).append(pod)
    if was_empty:
        moving = []
    wanted = rules.options.evict_daemons_of_empty if was_empty else rules.options.evict_daemons_of_occupied
    return Load(moving=tuple(moving), daemons=tuple(pod for pod in daemons if _is_wanted(pod, default=wanted)))


def _is_wanted(daemon: Pod, *, default: bool) -> bool:
    said = daemon.metadata.annotations.get(DAEMON_EVICTION)
    return default if said is None else said == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """`problem` None: nothing that had to leave is left."""

    pods: tuple[EvictedPod, ...] = ()
    problem: Reason | None = None


class Drainer:
    """`on_evicted` hears of every pod that was told to go and has to find another place."""

    def __init__(
        self, client: Client, pods: PodsOnNodes, *, clock: Clock, pacing: Pacing, on_evicted: Callable[[Pod], None]
    ) -> None:
        self._pods = pods
        self._clock = clock
        self._pacing = pacing
        self._on_evicted = on_evicted
        self._evictor = Evictor(client, clock=clock, pacing=pacing)

    async def drain(self, node: str, load: Load, options: ScaleDown) -> Drained:
        tiers = drain_tiers(options)
        daemons = dict(by_tier(load.daemons, tiers))
        told: list[EvictedPod] = []
        for tier, moving in by_tier(load.moving, tiers):
            told += await self._evict(tier, moving, daemons[tier])
            stuck = [one.failure for one in told if one.failure is not None and not is_daemon_pod(one.pod)]
            if stuck:
                message = f"{len(stuck)} pods could not be evicted"
                return Drained(pods=tuple(told), problem=_failed(message, because=tuple(stuck)))
            left = await self._left_on(node, moving, for_s=tier.grace_s + self._pacing.headroom_s)
            if left:
                names = ", ".join(name_of(pod) for pod in left[:3])
                message = f"{len(left)} pods are still there after {tier.grace_s} s and headroom ({names})"
                return Drained(pods=tuple(told), problem=_failed(message))
        return Drained(pods=tuple(told))

    async def _evict(self, tier: DrainTier, moving: Sequence[Pod], daemons: Sequence[Pod]) -> list[EvictedPod]:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._told(tier, pod)) for pod in moving]
            asked += [group.create_task(self._told(tier, pod, once=True)) for pod in daemons]
        return [one.result() for one in asked]

    async def _told(self, tier: DrainTier, pod: Pod, *, once: bool = False) -> EvictedPod:
        told = await self._evictor.evict(pod, grace_s=tier.grace_of(pod), once=once)
        if told.failure is None and not once:
            self._on_evicted(pod)
        return told

    async def _left_on(self, node: str, moving: Iterable[Pod], *, for_s: float) -> list[Pod]:
        """Those that are on the node still when there is nothing left to wait for."""
        left = list(moving)
        looks = Looks(self._clock, self._pacing, for_s=for_s)
        while left:
            try:
                there = {pod.metadata.uid for pod in (await self._pods.on(node)).pods}
            except TROUBLE as error:
                log.warning("drain.blind", node=node, problem=str(error))
            else:
                staying = [pod for pod in left if pod.metadata.uid in there]
                if len(staying) < len(left):
                    looks.news()
                left = staying
            if left and not await looks.again():
                break
        return left


def _failed(message: str, *, because: tuple[Reason, ...] = ()) -> Reason:
    return Reason(code=FAILED_TO_EVICT, message=message, because=because[:5])
