"""What a scenario drives besides the simulated cluster: the node autoscaler, and controllers of single objects.

Without a loop, `{loop: …}` only advances the clock and warns. Without a reconciler, `{reconcile: …}` is an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.local.cloud.api import SimulatedCloud
    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service


class Loop(Protocol):
    """One instance of the node autoscaler. A new one is built after a crash."""

    def list_services(self) -> Sequence[Service]:
        """Services that run with it; in a live world also its own timer."""
        ...

    async def run_loop(self) -> dict[str, Any]:
        """Run one loop; returns its entry of `loops` without the time."""
        ...

    def get_metrics(self) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDependencies:
    """What an autoscaler is built from. `{set: …}` changes `options`."""

    components: Components
    cloud: SimulatedCloud
    clock: Clock
    options: dict[str, Any]
    is_live: bool
    is_timed: bool
    knows_owner: Callable[[str], bool] = lambda _uid: True
    """Whether the owner with this uid exists here: scenarios have pods whose controllers are not described."""
    on_loop: Callable[[str, dict[str, Any]], None] = lambda _time, _loop: None
    """Called for every loop that an autoscaler runs by itself, with its time and its entry of `loops`."""


MakeLoop = Callable[[LoopDependencies], Loop]
Reconcile = Callable[[str, str], Awaitable[None]]
"""Reconciles the object of a namespace and a name once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """The controllers of this build. `reconcilers` are by kind."""

    make_loop: MakeLoop | None = None
    reconcilers: dict[str, Reconcile] = field(default_factory=dict)
