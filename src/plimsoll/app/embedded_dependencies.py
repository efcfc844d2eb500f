"""What the parts of an embedded cluster run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.nodes.plan_runner import run_in_thread

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.transport import Transport
    from plimsoll.nodes.plan_runner import PlanRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedDependencies:
    """`transport` carries calls of the administrator to the API server; `run_planner` has a thread, or none."""

    transport: Transport
    clock: Clock
    entropy: Entropy
    journal: Journal
    run_planner: PlanRunner = run_in_thread
