"""Asks pods to leave, one by one, through the Eviction API: disruption budgets have the last word.

An eviction that is refused, or fails, is tried again for as long as the pacing allows. It never deletes a pod by any
other way, and never one that merely has the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import NotAllowed
from plimsoll.kube.selections import DeleteOptions
from plimsoll.kube.subresources import Blocked
from plimsoll.nodes.acting.kube_trouble import TROUBLE
from plimsoll.nodes.turns import EvictedPod

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.acting.pacing import Pacing
    from plimsoll.objects.pods import Pod

log = structlog.get_logger(__name__)

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
            log.info("eviction.waits", pod=name_of(pod), problem=failure.message)
            await self._clock.sleep(self._pacing.eviction_retry_s)

    async def _attempt(self, pod: Pod, grace_s: int) -> Reason | None:
        meta = pod.metadata
        options = DeleteOptions(uid=meta.uid, grace_s=grace_s)
        try:
            outcome = await self._client.evict(meta.name, namespace=meta.namespace, options=options)
        except NotAllowed as error:
            return Reason(code=_STOPPED, message=f"pod {name_of(pod)}: {error}")
        except TROUBLE as error:
            return Reason(code=EVICTION_FAILED, message=f"pod {name_of(pod)}: {error}")
        if isinstance(outcome, Blocked):
            why = "; ".join(outcome.reasons) or outcome.message
            return Reason(code=EVICTION_BLOCKED, message=f"pod {name_of(pod)}: {why}")
        return None


def name_of(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
