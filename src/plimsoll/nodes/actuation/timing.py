"""How long each step of a removal waits. Nothing here waits by itself but `Polling`.

Live, the times are the operator's flags and those of Cluster Autoscaler. In a stepped scenario a turn takes no time:
what the world does at once is waited for by counting looks, and what would take time has failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from plimsoll.nodes.planning.scaledown.drainability import TERMINATION_HEADROOM_S

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.nodes.config.policy import Policy

_LOOKS_WITHOUT_NEWS: Final = 1_000
"""A kubelet of the same process lets one pod after the other go, each within some dozens of turns of the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Seconds. `Pacing.of(policy)` or `Pacing.STEPPED`."""

    after_taint_s: float = 5.0
    eviction_retry_s: float = 10.0
    eviction_time_s: float = 120.0
    """Evictions are tried again so long; the first attempt is made in any case."""
    headroom_s: float = TERMINATION_HEADROOM_S
    """What pods get beyond their grace period."""
    poll_s: float = 5.0
    """How often pods, annotations and machines are looked at while they are waited for."""
    deletion_delay_s: float = 120.0
    """How long annotations may hold a node's deletion up."""
    batch_s: float = 0.0
    """Nodes of one group that are ready within this time are deleted by one call."""
    conflict_s: float = 0.05
    """The pause before a node that somebody else changed is read again; longer each time."""
    provider_stuck_s: float = 300.0
    kubernetes_stuck_s: float = 180.0
    undo_s: float = 5.0
    """What a removal gets for putting things back when the process is stopped."""
    is_stepped: bool = False

    STEPPED: ClassVar[Pacing]

    @classmethod
    def of(cls, policy: Policy) -> Pacing:
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
    """Waits between looks at something, for so long: `while not done: ... if not await looks.again(): break`."""

    def __init__(self, clock: Clock, pacing: Pacing, *, for_s: float) -> None:
        self._clock = clock
        self._pacing = pacing
        self._until_s = clock.monotonic_s() + for_s
        self._left = _LOOKS_WITHOUT_NEWS

    async def wait(self) -> bool:
        """Wait for the next look; False: there shall be none."""
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
        """Something moved: where looks are counted, they are counted anew."""
        self._left = _LOOKS_WITHOUT_NEWS
