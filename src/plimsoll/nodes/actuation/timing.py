"""How long each step of a removal waits. Only `Polling` waits itself.

Live, the times come from flags and from Cluster Autoscaler's constants. In a stepped scenario a loop iteration takes no
time: what happens at once is polled a limited number of times, and what would take time counts as failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from plimsoll.nodes.planning.scaledown.drainability import TERMINATION_HEADROOM_S

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.nodes.config.policy import Policy

_POLLS_WITHOUT_PROGRESS: Final = 1_000
"""A kubelet in the same process ends pods one by one, each within some dozens of event loop iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Waiting times in seconds: `Pacing.from_policy(policy)`, or `Pacing.STEPPED` for scenarios."""

    after_taint_s: float = 5.0
    eviction_retry_s: float = 10.0
    eviction_time_s: float = 120.0
    """How long evictions are retried; the first attempt is always made."""
    headroom_s: float = TERMINATION_HEADROOM_S
    """The time that pods get beyond their grace period."""
    poll_s: float = 5.0
    """The interval at which pods, annotations and instances are polled."""
    deletion_delay_s: float = 120.0
    """How long annotations can delay the deletion of a node."""
    batch_s: float = 0.0
    """Nodes of one group that are ready within this time are deleted by one call."""
    conflict_s: float = 0.05
    """The wait after a write conflict; longer after each one."""
    provider_stuck_s: float = 300.0
    kubernetes_stuck_s: float = 180.0
    undo_s: float = 5.0
    """The time for removing taints when the process stops."""
    is_stepped: bool = False

    STEPPED: ClassVar[Pacing]

    @classmethod
    def from_policy(cls, policy: Policy) -> Pacing:
        options = policy.scale_down
        return cls(
            after_taint_s=options.delay_after_taint_s,
            eviction_time_s=options.eviction_time_s,
            deletion_delay_s=options.deletion_delay_timeout_s,
            batch_s=options.batcher_interval_s,
        )


Pacing.STEPPED = Pacing(
    after_taint_s=0.0,
    eviction_retry_s=0.0,
    eviction_time_s=0.0,
    headroom_s=0.0,
    poll_s=0.0,
    deletion_delay_s=0.0,
    batch_s=0.0,
    conflict_s=0.0,
    is_stepped=True,
)


class Polling:
    """Waits between polls, up to a limit: `while not done: ... if not await polling.wait(): break`."""

    def __init__(self, clock: Clock, pacing: Pacing, *, for_s: float) -> None:
        self._clock = clock
        self._pacing = pacing
        self._until_s = clock.monotonic_s() + for_s
        self._left = _POLLS_WITHOUT_PROGRESS

    async def wait(self) -> bool:
        """Wait until the next poll; False when the limit is reached."""
        if self._pacing.is_stepped:
            self._left -= 1
            await self._clock.sleep(0)
            return self._left > 0
        left_s = self._until_s - self._clock.monotonic_s()
        if left_s <= 0:
            return False
        await self._clock.sleep(min(self._pacing.poll_s, left_s))
        return True

    def note_progress(self) -> None:
        """Start counting polls again, because something changed."""
        self._left = _POLLS_WITHOUT_PROGRESS
