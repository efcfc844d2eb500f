"""The last check of consolidation: removals that are about to start, replayed by the plain rules. Pure.

Consolidation moves pods by counts per domain and by the solver; what is carried out is first simulated with the rules
of `plimsoll.scheduling`, each pod on the node it was planned for, else on any other that takes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import build_drain_rules, build_no_place_reason, find_receiving_nodes
from plimsoll.nodes.planning.scaledown.problem import ScaleDownProblem
from plimsoll.nodes.planning.scaledown.simulator import VERIFICATION_EFFORT, RemovalSimulator, Unplaceable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRemovals:
    """Removals whose pods all have places by the plain rules, and why the other nodes stay."""

    removals: tuple[NodeRemoval, ...] = ()
    refused: Mapping[str, Reason] = field(default_factory=dict)


def verify_removals(
    snapshot: Snapshot,
    policy: Policy,
    removals: Sequence[NodeRemoval],
    *,
    now: datetime,
    state: ScaleDownState | None = None,
    cache: PlannerCache | None = None,
) -> VerifiedRemovals:
    """The removals that hold, all nodes gone at once. A node that fails stays, and receives pods like any other."""
    known = state or ScaleDownState()
    problem = ScaleDownProblem.from_snapshot(snapshot, build_drain_rules(snapshot, policy, known, now), cache=cache)
    refused: dict[str, Reason] = {}
    while True:
        going = [removal for removal in removals if removal.node not in refused]
        simulator = RemovalSimulator(
            problem,
            receives=find_receiving_nodes(problem, known),
            removed=[problem.arrays.row_of[removal.node] for removal in going],
            hints={move.pod: move.target for removal in going for move in removal.moves},
            effort=VERIFICATION_EFFORT,
        )
        verified: list[NodeRemoval] = []
        for removal in going:
            moves = () if removal.is_empty else simulator.simulate_removal(problem.arrays.row_of[removal.node])
            if isinstance(moves, Unplaceable):
                refused[removal.node] = build_no_place_reason(moves.pod)
                break
            verified.append(replace(removal, moves=moves))
        else:
            return VerifiedRemovals(removals=tuple(verified), refused=refused)
