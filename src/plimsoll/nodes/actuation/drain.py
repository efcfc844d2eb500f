"""Empties one node: checks once more that everything on it may go, evicts it tier by tier, waits until it is gone.

Daemons' pods are told to go too where that is wanted, but nobody waits for them. The check is the planner's own rules,
asked about what is on the node now: between plan and taint a pod may have come that must not be moved.

Pods of a node in the order in which they are evicted: by priority, if the operator says so. Pure.

`--drain-priority-config=PRIORITY:SECONDS,...` makes tiers, drained from the lowest priority up, each with its own
longest grace period; without it all pods go at once, under `--max-graceful-termination-sec`.

Asks pods to leave, one by one, through the Eviction API: disruption budgets have the last word.

An eviction that is refused, or fails, is tried again for as long as the pacing allows. It never deletes a pod by any
other way, and never one that merely has the same name.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import ApiCallFailed, NotAllowed
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.kube.subresources import Blocked
from plimsoll.nodes.actuation.timing import Polling
from plimsoll.nodes.config.drain_tiers import DrainTier, drain_tiers, group_by_tier
from plimsoll.nodes.model.pod_traits import is_daemon_pod
from plimsoll.nodes.model.reasons import BLOCKED_BY_POD
from plimsoll.nodes.model.results import EvictedPod
from plimsoll.nodes.planning.scaledown.drainability import DrainOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.actuation.node_pods import NodePods, PodsOnNodes
    from plimsoll.nodes.actuation.timing import Pacing
    from plimsoll.nodes.config.policy import ScaleDown
    from plimsoll.nodes.planning.scaledown.drainability import DrainRules
    from plimsoll.objects.api.pods import Pod


log = structlog.get_logger(__name__)

DAEMON_EVICTION: Final = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
NEW_PODS: Final = "NewPodsScheduled"
FAILED_TO_EVICT: Final = "FailedToEvictPods"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsToEvict:
    """What a node carries, as its drain sees it."""

    moving: tuple[Pod, ...] = ()
    """To be evicted, and waited for."""
    daemons: tuple[Pod, ...] = ()
    """To be evicted if they are there; nobody waits for them."""


def find_pods_to_evict(found: NodePods, rules: DrainRules, *, was_empty: bool) -> PodsToEvict | Reason:
    """What has to leave; or why the node cannot go after all."""
    if found.unreadable:
        return Reason(code=BLOCKED_BY_POD, message=f"{found.unreadable} pods on it cannot be read")
    moving: list[Pod] = []
    daemons: list[Pod] = []
    for pod in found.pods:
        verdict = rules.check(pod)
        if verdict.blocks_node:
            because = Reason(code=verdict.code, message=verdict.message)
            return Reason(code=BLOCKED_BY_POD, message=f"pod {pod_name(pod)} keeps it", because=(because,))
        if verdict.outcome is DrainOutcome.MOVE and was_empty:
            return Reason(code=NEW_PODS, message=f"pod {pod_name(pod)} has come since it was found empty")
        if verdict.outcome is DrainOutcome.SKIP:
            continue
        (daemons if is_daemon_pod(pod) else moving).append(pod)
    if was_empty:
        moving = []
    wanted = rules.options.evict_daemons_of_empty if was_empty else rules.options.evict_daemons_of_occupied
    return PodsToEvict(moving=tuple(moving), daemons=tuple(pod for pod in daemons if _is_wanted(pod, default=wanted)))


def _is_wanted(daemon: Pod, *, default: bool) -> bool:
    said = daemon.metadata.annotations.get(DAEMON_EVICTION)
    return default if said is None else said == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
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

    async def drain(self, node: str, load: PodsToEvict, options: ScaleDown) -> DrainResult:
        tiers = drain_tiers(options)
        daemons = dict(group_by_tier(load.daemons, tiers))
        told: list[EvictedPod] = []
        for tier, moving in group_by_tier(load.moving, tiers):
            told += await self._evict(tier, moving, daemons[tier])
            stuck = [
                evicted.failure for evicted in told if evicted.failure is not None and not is_daemon_pod(evicted.pod)
            ]
            if stuck:
                message = f"{len(stuck)} pods could not be evicted"
                return DrainResult(pods=tuple(told), problem=_failed(message, because=tuple(stuck)))
            left = await self._left_on(node, moving, for_s=tier.grace_s + self._pacing.headroom_s)
            if left:
                names = ", ".join(pod_name(pod) for pod in left[:3])
                message = f"{len(left)} pods are still there after {tier.grace_s} s and headroom ({names})"
                return DrainResult(pods=tuple(told), problem=_failed(message))
        return DrainResult(pods=tuple(told))

    async def _evict(self, tier: DrainTier, moving: Sequence[Pod], daemons: Sequence[Pod]) -> list[EvictedPod]:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._told(tier, pod)) for pod in moving]
            asked += [group.create_task(self._told(tier, pod, once=True)) for pod in daemons]
        return [task.result() for task in asked]

    async def _told(self, tier: DrainTier, pod: Pod, *, once: bool = False) -> EvictedPod:
        told = await self._evictor.evict(pod, grace_s=tier.grace_of(pod), once=once)
        if told.failure is None and not once:
            self._on_evicted(pod)
        return told

    async def _left_on(self, node: str, moving: Iterable[Pod], *, for_s: float) -> list[Pod]:
        """Those that are on the node still when there is nothing left to wait for."""
        left = list(moving)
        looks = Polling(self._clock, self._pacing, for_s=for_s)
        while left:
            try:
                there = {pod.metadata.uid for pod in (await self._pods.on(node)).pods}
            except ApiCallFailed as error:
                log.warning("drain.blind", node=node, problem=str(error))
            else:
                staying = [pod for pod in left if pod.metadata.uid in there]
                if len(staying) < len(left):
                    looks.note_progress()
                left = staying
            if left and not await looks.wait():
                break
        return left


def _failed(message: str, *, because: tuple[Reason, ...] = ()) -> Reason:
    return Reason(code=FAILED_TO_EVICT, message=message, because=because[:5])


EVICTION_BLOCKED: Final = "EvictionBlocked"
EVICTION_FAILED: Final = "EvictionFailed"
_STOPPED: Final = "NotAllowedToAct"


class Evictor:
    """One drain's evictions."""

    def __init__(self, client: Client, *, clock: Clock, pacing: Pacing) -> None:
        self._client = client
        self._clock = clock
        self._pacing = pacing

    async def evict(self, pod: Pod, *, grace_s: int, once: bool = False) -> EvictedPod:
        """Tell it to go within its grace period; a pod that is gone already has gone."""
        until_s = self._clock.monotonic_s() + (0 if once else self._pacing.eviction_time_s)
        while True:
            failure = await self._attempt(pod, grace_s)
            is_late = self._clock.monotonic_s() + self._pacing.eviction_retry_s >= until_s
            if failure is None or is_late or failure.code == _STOPPED:
                return EvictedPod(pod=pod, failure=failure)
            log.info("eviction.waits", pod=pod_name(pod), problem=failure.message)
            await self._clock.sleep(self._pacing.eviction_retry_s)

    async def _attempt(self, pod: Pod, grace_s: int) -> Reason | None:
        meta = pod.metadata
        options = DeleteOptions(uid=meta.uid, grace_s=grace_s)
        try:
            outcome = await self._client.evict(meta.name, namespace=meta.namespace, options=options)
        except NotAllowed as error:
            return Reason(code=_STOPPED, message=f"pod {pod_name(pod)}: {error}")
        except ApiCallFailed as error:
            return Reason(code=EVICTION_FAILED, message=f"pod {pod_name(pod)}: {error}")
        if isinstance(outcome, Blocked):
            why = "; ".join(outcome.reasons) or outcome.message
            return Reason(code=EVICTION_BLOCKED, message=f"pod {pod_name(pod)}: {why}")
        return None


def pod_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
