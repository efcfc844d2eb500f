"""Verdicts about whole kinds of pods, kept from turn to turn: who may be taken off its node, and who keeps it.

A cluster has thousands of kinds and asks about each of them every turn, while most rules read nothing that changes. A
verdict is asked for again only where something did: the options, which budgets mean the kind, what is known of its
controller, or the time for the few kinds whose verdict hangs on it. How many pods a budget lets go is looked at every
turn. Gives what `DrainRules.verdict` gives for each kind; part of `Memory`, used by `occupancy`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.planning.scaledown.drainability import MOVE, DrainOutcome
from plimsoll.objects.owners import controller_of

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
    """The verdicts of one turn, by the number of the kind [K]."""

    statuses: tuple[DrainabilityStatus, ...]
    moves: Flags
    blocks: Flags
    """Those that keep their node."""
    by_pdb: Mapping[int, tuple[int, ...]]
    """Disruption budget to the kinds that it means."""


class DrainabilityCache:
    """For kinds numbered by one `PodKinds`; with another one everything is asked anew."""

    def __init__(self) -> None:
        self._numbered_by: PodKinds | None = None
        self._rules: DrainRules | None = None
        self._budgets: tuple[Any, ...] = ()
        self._decided: list[DrainabilityStatus | None] = []
        """What the rules before the budgets say; None: nothing."""
        self._controllers: list[ControllerInfo | None] = []
        self._of_time: list[int] = []
        self._under: dict[int, list[int]] = {}
        self._told: KindDrainability | None = None
        """The last answer without a word of budgets; good as long as nothing that was decided is decided anew."""

    def update(self, homes: PodsByNode, rules: DrainRules) -> KindDrainability:
        self._forget_what_changed(homes, rules)
        for kind in homes.kinds[len(self._decided) :]:
            self._add(kind, rules)
        for number in self._of_time:
            self._decide(number, rules.check_without_pdbs(homes.kinds[number].pod))
        return self._answer(rules)

    def _decide(self, number: int, verdict: DrainabilityStatus | None) -> None:
        if self._decided[number] != verdict:
            self._decided[number] = verdict
            self._told = None

    def _forget_what_changed(self, homes: PodsByNode, rules: DrainRules) -> None:
        budgets = tuple(
            (budget.metadata.namespace, budget.metadata.name, budget.spec.selector) for budget in rules.pdbs.budgets
        )
        before = self._rules
        known = before is not None and self._numbered_by is homes.kind_index and self._budgets == budgets
        # Numbers are only ever added: a turn that knows fewer kinds is an older one.
        if before is None or not known or before.options != rules.options or len(self._decided) > len(homes.kinds):
            self._decided, self._controllers, self._of_time, self._under = [], [], [], {}
            self._told = None
        elif before.controllers is not rules.controllers and before.controllers != rules.controllers:
            self._ask_where_controllers_changed(homes, rules)
        self._numbered_by, self._budgets, self._rules = homes.kind_index, budgets, rules

    def _ask_where_controllers_changed(self, homes: PodsByNode, rules: DrainRules) -> None:
        for number, seen in enumerate(self._controllers):
            now = _controller(homes.kinds[number].pod, rules.controllers)
            if now != seen:
                self._controllers[number] = now
                self._decide(number, rules.check_without_pdbs(homes.kinds[number].pod))

    def _add(self, kind: PodKind, rules: DrainRules) -> None:
        number = len(self._decided)
        self._decided.append(rules.check_without_pdbs(kind.pod))
        self._controllers.append(_controller(kind.pod, rules.controllers))
        meta = kind.pod.metadata
        if meta.deletion_timestamp is not None or meta.namespace == KUBE_SYSTEM:
            self._of_time.append(number)
        for slot in rules.pdbs.matching(kind.pod):
            self._under.setdefault(slot, []).append(number)

    def _answer(self, rules: DrainRules) -> KindDrainability:
        self._told = told = self._tell()
        used_up = {
            number: slot
            for slot in reversed(np.flatnonzero(rules.pdbs.allowed < 1).tolist())
            for number in self._under.get(slot, ())
            if self._decided[number] is None
        }
        if not used_up:
            return told
        verdicts, moves, keeps = list(told.statuses), told.moves.copy(), told.blocks.copy()
        for number, slot in used_up.items():
            verdicts[number] = verdict = rules.pdb_exhausted(slot)
            moves[number], keeps[number] = verdict.outcome is DrainOutcome.MOVE, verdict.blocks_node
        return replace(told, statuses=tuple(verdicts), moves=moves, blocks=keeps)

    def _tell(self) -> KindDrainability:
        """What rules before the budgets say, where it was told before only with kinds that came since."""
        before = self._told
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
            by_pdb={slot: tuple(self._under[slot]) for slot in sorted(self._under)},
        )


def _controller(pod: Pod, known: Mapping[ControllerKey, ControllerInfo]) -> ControllerInfo | None:
    owner = controller_of(pod.metadata)
    return None if owner is None else known.get((pod.metadata.namespace, owner.kind, owner.name))
