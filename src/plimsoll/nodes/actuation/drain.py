"""Eviction of the pods of one node, tier by tier, until they are gone, after a check that all of them may be evicted.

The check uses the planner's drain rules on the pods that are on the node now, because between plan and taint a pod may
have been scheduled that must not be moved. Pods are evicted through the Eviction API only, so PodDisruptionBudgets
hold. An eviction that is refused or fails is retried for a limited time, and never hits another pod of the same name.
Daemon pods are evicted where flags or annotations say so, but the drain does not wait for them.
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
from plimsoll.nodes.config.drain_tiers import DrainTier, build_drain_tiers, group_by_tier
from plimsoll.nodes.model.pod_traits import is_daemon_pod
from plimsoll.nodes.model.reasons import BLOCKED_BY_POD
from plimsoll.nodes.model.results import EvictedPod
from plimsoll.nodes.planning.scaledown.drainability import DrainOutcome
from plimsoll.scheduling.cluster_view import PodKey

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.actuation.node_pods import PodsOfNode, PodsOnNodes
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
    """The pods that a drain evicts."""

    moving: tuple[Pod, ...] = ()
    """Pods that the drain waits for."""
    daemons: tuple[Pod, ...] = ()
    """Daemon pods, which the drain does not wait for."""


def find_pods_to_evict(
    found: PodsOfNode, rules: DrainRules, *, was_empty: bool, planned: Container[PodKey] | None = None
) -> PodsToEvict | Reason:
    """The pods to evict, or why the node cannot be removed after all.

    `planned` are the pods that the plan found other nodes for: a pod that is not among them has none.
    """
    if found.unreadable:
        return Reason(code=BLOCKED_BY_POD, message=f"{found.unreadable} pods on the node cannot be read")
    moving: list[Pod] = []
    daemons: list[Pod] = []
    for pod in found.pods:
        verdict = rules.check(pod)
        if verdict.blocks_node:
            because = Reason(code=verdict.code, message=verdict.message)
            return Reason(
                code=BLOCKED_BY_POD, message=f"pod {format_pod_name(pod)} blocks the removal", because=(because,)
            )
        if verdict.outcome is DrainOutcome.MOVE and was_empty:
            return Reason(
                code=NEW_PODS, message=f"pod {format_pod_name(pod)} was scheduled since the node was found empty"
            )
        if verdict.outcome is DrainOutcome.MOVE and planned is not None and _get_key(pod) not in planned:
            return Reason(
                code=NEW_PODS, message=f"pod {format_pod_name(pod)} was not on the node when its removal was planned"
            )
        if verdict.outcome is DrainOutcome.SKIP:
            continue
        (daemons if is_daemon_pod(pod) else moving).append(pod)
    if was_empty:
        moving = []
    wanted = rules.options.evict_daemons_of_empty if was_empty else rules.options.evict_daemons_of_occupied
    return PodsToEvict(moving=tuple(moving), daemons=tuple(pod for pod in daemons if _is_evicted(pod, default=wanted)))


def _get_key(pod: Pod) -> PodKey:
    return PodKey(pod.metadata.namespace, pod.metadata.name)


def _is_evicted(daemon: Pod, *, default: bool) -> bool:
    value = daemon.metadata.annotations.get(DAEMON_EVICTION)
    return default if value is None else value == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
    """The result of a drain; `problem` is None if all pods have left."""

    pods: tuple[EvictedPod, ...] = ()
    problem: Reason | None = None


class Drainer:
    """Drains nodes. `on_evicted` is called with every evicted pod that needs another node."""

    def __init__(
        self, client: Client, pods: PodsOnNodes, *, clock: Clock, pacing: Pacing, on_evicted: Callable[[Pod], None]
    ) -> None:
        self._pods = pods
        self._clock = clock
        self._pacing = pacing
        self._on_evicted = on_evicted
        self._evictor = Evictor(client, clock=clock, pacing=pacing)

    async def drain(self, node: str, to_evict: PodsToEvict, options: ScaleDown) -> DrainResult:
        tiers = build_drain_tiers(options)
        daemons = dict(group_by_tier(to_evict.daemons, tiers))
        evicted: list[EvictedPod] = []
        for tier, moving in group_by_tier(to_evict.moving, tiers):
            evicted += await self._evict(tier, moving, daemons[tier])
            stuck = [
                eviction.failure
                for eviction in evicted
                if eviction.failure is not None and not is_daemon_pod(eviction.pod)
            ]
            if stuck:
                message = f"{len(stuck)} pods could not be evicted"
                return DrainResult(pods=tuple(evicted), problem=_build_failure(message, because=tuple(stuck)))
            left = await self._wait_until_gone(node, moving, for_s=tier.grace_s + self._pacing.headroom_s)
            if left:
                names = ", ".join(format_pod_name(pod) for pod in left[:3])
                message = f"{len(left)} pods are still there after {tier.grace_s} s and headroom ({names})"
                return DrainResult(pods=tuple(evicted), problem=_build_failure(message))
        return DrainResult(pods=tuple(evicted))

    async def _evict(self, tier: DrainTier, moving: Sequence[Pod], daemons: Sequence[Pod]) -> list[EvictedPod]:
        async with asyncio.TaskGroup() as group:
            evictions = [group.create_task(self._evict_pod(tier, pod)) for pod in moving]
            evictions += [group.create_task(self._evict_pod(tier, pod, once=True)) for pod in daemons]
        return [task.result() for task in evictions]

    async def _evict_pod(self, tier: DrainTier, pod: Pod, *, once: bool = False) -> EvictedPod:
        evicted = await self._evictor.evict(pod, grace_s=tier.get_grace_s(pod), once=once)
        if evicted.failure is None and not once:
            self._on_evicted(pod)
        return evicted

    async def _wait_until_gone(self, node: str, moving: Iterable[Pod], *, for_s: float) -> list[Pod]:
        """Wait for pods to leave; the pods that are still on the node after that."""
        left = list(moving)
        polling = Polling(self._clock, self._pacing, for_s=for_s)
        while left:
            try:
                there = {pod.metadata.uid for pod in (await self._pods.list_on(node)).pods}
            except ApiCallFailed as error:
                log.warning("drain.blind", node=node, problem=str(error))
            else:
                staying = [pod for pod in left if pod.metadata.uid in there]
                if len(staying) < len(left):
                    polling.note_progress()
                left = staying
            if left and not await polling.wait():
                break
        return left


def _build_failure(message: str, *, because: tuple[Reason, ...] = ()) -> Reason:
    return Reason(code=FAILED_TO_EVICT, message=message, because=because[:5])


EVICTION_BLOCKED: Final = "EvictionBlocked"
EVICTION_FAILED: Final = "EvictionFailed"
_STOPPED: Final = "NotAllowedToAct"


class Evictor:
    """Evicts pods, with retries."""

    def __init__(self, client: Client, *, clock: Clock, pacing: Pacing) -> None:
        self._client = client
        self._clock = clock
        self._pacing = pacing

    async def evict(self, pod: Pod, *, grace_s: int, once: bool = False) -> EvictedPod:
        """Evict a pod with a grace period; a pod that no longer exists counts as evicted."""
        until_s = self._clock.monotonic_s() + (0 if once else self._pacing.eviction_time_s)
        while True:
            failure = await self._attempt(pod, grace_s)
            is_late = self._clock.monotonic_s() + self._pacing.eviction_retry_s >= until_s
            if failure is None or is_late or failure.code == _STOPPED:
                return EvictedPod(pod=pod, failure=failure)
            log.info("eviction.waits", pod=format_pod_name(pod), problem=failure.message)
            await self._clock.sleep(self._pacing.eviction_retry_s)

    async def _attempt(self, pod: Pod, grace_s: int) -> Reason | None:
        meta = pod.metadata
        options = DeleteOptions(uid=meta.uid, grace_s=grace_s)
        try:
            outcome = await self._client.evict(meta.name, namespace=meta.namespace, options=options)
        except NotAllowed as error:
            return Reason(code=_STOPPED, message=f"pod {format_pod_name(pod)}: {error}")
        except ApiCallFailed as error:
            return Reason(code=EVICTION_FAILED, message=f"pod {format_pod_name(pod)}: {error}")
        if isinstance(outcome, Blocked):
            why = "; ".join(outcome.reasons) or outcome.message
            return Reason(code=EVICTION_BLOCKED, message=f"pod {format_pod_name(pod)}: {why}")
        return None


def format_pod_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
