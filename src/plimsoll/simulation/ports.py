"""What a scenario can drive besides the simulated cluster: the node autoscaler, and controllers of single objects.

Declared here by their user. Where nothing is plugged in, `{loop: …}` only moves the clock (and says so), and
`{reconcile: …}` is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.local.cloud.api import SimulatedCloud
    from plimsoll.local.components import Components
    from plimsoll.runtime.services import Service


class Loop(Protocol):
    """One instance of the node autoscaler. A new one is made after a crash."""

    def services(self) -> Sequence[Service]:
        """What runs beside it: in a live world its own timer too."""
        ...

    async def run_loop(self) -> dict[str, Any]:
        """One turn; gives its entry of `loops` without the time."""
        ...

    def metrics(self) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDependencies:
    """What an autoscaler is built from. `options` changes under it with `{set: …}`."""

    components: Components
    cloud: SimulatedCloud
    clock: Clock
    options: dict[str, Any]
    is_live: bool
    is_timed: bool
    knows_owner: Callable[[str], bool] = lambda _uid: True
    """Whether the owner of this uid is an object here: scenarios have pods of controllers that nobody described."""
    on_loop: Callable[[str, dict[str, Any]], None] = lambda _time, _said: None
    """Hears of every turn that an autoscaler takes by itself: its time, and its entry of `loops`."""


MakeLoop = Callable[[LoopDependencies], Loop]
Reconcile = Callable[[str, str], Awaitable[None]]
"""Looks at the object of a namespace and a name, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """The parts of this build. `reconcilers` are by kind."""

    make_loop: MakeLoop | None = None
    reconcilers: dict[str, Reconcile] = field(default_factory=dict)
