"""The drainability of pod kinds, kept between loop iterations.

A cluster has thousands of kinds, and most drain rules read nothing that changes. A kind is checked again only when its
inputs changed: the options, the budgets that select it, its controller, or the time for the few kinds whose status
depends on it. How many pods a budget allows is read in every iteration. The result equals `DrainRules.check` per kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.planning.scaledown.drainability import MOVE, DrainOutcome
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.planning.scaledown.drainability import (
        ControllerInfo,
        ControllerKey,
        DrainabilityStatus,
        DrainRules,
    )
    from plimsoll.nodes.planning.state.node_pods import PodKind, PodKinds, PodsByNode
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Flags


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KindDrainability:
    """Drainability per pod kind [K] in one loop iteration."""

    statuses: tuple[DrainabilityStatus, ...]
    moves: Flags
    blocks: Flags
    """Kinds that block the removal of their node."""
    by_pdb: Mapping[int, tuple[int, ...]]
    """Disruption budget to the kinds that it selects."""


class DrainabilityCache:
    """Statuses of kinds numbered by one `PodKinds`; with another one everything is checked again."""

    def __init__(self) -> None:
        self._numbered_by: PodKinds | None = None
        self._rules: DrainRules | None = None
        self._budgets: tuple[Any, ...] = ()
        self._decided: list[DrainabilityStatus | None] = []
        """The status by the rules before the budgets; None: no rule applies."""
        self._controllers: list[ControllerInfo | None] = []
        self._time_dependent: list[int] = []
        self._by_pdb: dict[int, list[int]] = {}
        self._latest: KindDrainability | None = None
        """The last result without budgets; valid until a status changes."""

    def update(self, pods_by_node: PodsByNode, rules: DrainRules) -> KindDrainability:
        self._invalidate(pods_by_node, rules)
        for kind in pods_by_node.kinds[len(self._decided) :]:
            self._add(kind, rules)
        for number in self._time_dependent:
            self._decide(number, rules.check_without_pdbs(pods_by_node.kinds[number].pod))
        return self._add_exhausted_pdbs(rules)

    def _decide(self, number: int, status: DrainabilityStatus | None) -> None:
        if self._decided[number] != status:
            self._decided[number] = status
            self._latest = None

    def _invalidate(self, pods_by_node: PodsByNode, rules: DrainRules) -> None:
        budgets = tuple(
            (budget.metadata.namespace, budget.metadata.name, budget.spec.selector) for budget in rules.pdbs.budgets
        )
        before = self._rules
        known = before is not None and self._numbered_by is pods_by_node.kind_index and self._budgets == budgets
        # Kinds are only added: input with fewer kinds is older.
        if (
            before is None
            or not known
            or before.options != rules.options
            or len(self._decided) > len(pods_by_node.kinds)
        ):
            self._decided, self._controllers, self._time_dependent, self._by_pdb = [], [], [], {}
            self._latest = None
        elif before.controllers is not rules.controllers and before.controllers != rules.controllers:
            self._recheck_controllers(pods_by_node, rules)
        self._numbered_by, self._budgets, self._rules = pods_by_node.kind_index, budgets, rules

    def _recheck_controllers(self, pods_by_node: PodsByNode, rules: DrainRules) -> None:
        for number, seen in enumerate(self._controllers):
            now = _find_controller(pods_by_node.kinds[number].pod, rules.controllers)
            if now != seen:
                self._controllers[number] = now
                self._decide(number, rules.check_without_pdbs(pods_by_node.kinds[number].pod))

    def _add(self, kind: PodKind, rules: DrainRules) -> None:
        number = len(self._decided)
        self._decided.append(rules.check_without_pdbs(kind.pod))
        self._controllers.append(_find_controller(kind.pod, rules.controllers))
        meta = kind.pod.metadata
        if meta.deletion_timestamp is not None or meta.namespace == KUBE_SYSTEM:
            self._time_dependent.append(number)
        for pdb in rules.pdbs.find_matching(kind.pod):
            self._by_pdb.setdefault(pdb, []).append(number)

    def _add_exhausted_pdbs(self, rules: DrainRules) -> KindDrainability:
        self._latest = latest = self._build()
        used_up = {
            number: pdb
            for pdb in reversed(np.flatnonzero(rules.pdbs.allowed < 1).tolist())
            for number in self._by_pdb.get(pdb, ())
            if self._decided[number] is None
        }
        if not used_up:
            return latest
        statuses, moves, keeps = list(latest.statuses), latest.moves.copy(), latest.blocks.copy()
        for number, pdb in used_up.items():
            statuses[number] = status = rules.block_for_exhausted_pdb(pdb)
            moves[number], keeps[number] = status.outcome is DrainOutcome.MOVE, status.blocks_node
        return replace(latest, statuses=tuple(statuses), moves=moves, blocks=keeps)

    def _build(self) -> KindDrainability:
        """The drainability without disruption budgets; only kinds added since the last call are computed."""
        before = self._latest
        known = 0 if before is None else len(before.statuses)
        if before is not None and known == len(self._decided):
            return before
        fresh = tuple(MOVE if drainability is None else drainability for drainability in self._decided[known:])
        moves = np.array([drainability.outcome is DrainOutcome.MOVE for drainability in fresh], dtype=np.bool_)
        keeps = np.array([drainability.blocks_node for drainability in fresh], dtype=np.bool_)
        return KindDrainability(
            statuses=fresh if before is None else before.statuses + fresh,
            moves=moves if before is None else np.concatenate((before.moves, moves)),
            blocks=keeps if before is None else np.concatenate((before.blocks, keeps)),
            by_pdb={pdb: tuple(self._by_pdb[pdb]) for pdb in sorted(self._by_pdb)},
        )


def _find_controller(pod: Pod, known: Mapping[ControllerKey, ControllerInfo]) -> ControllerInfo | None:
    owner = find_controller(pod.metadata)
    return None if owner is None else known.get((pod.metadata.namespace, owner.kind, owner.name))
