"""Whether requests that only ask find room on the nodes that are there: check-capacity (specs/nodes.md 3.2). Pure.

In line, each whole or not at all; who found room keeps it from those behind, unless it asked not to. A no is not just a
bad packing: where little is left, an integer program looks at every assignment (7.6). Nothing is added for a check.

`bookings` asks, run by run of a line of requests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.assembling import assembled
from plimsoll.nodes.planning.boards import Board
from plimsoll.nodes.planning.drafts import Draft, joined
from plimsoll.nodes.planning.meetings import Meetings
from plimsoll.nodes.planning.placing import Doubts, Means, place
from plimsoll.nodes.planning.tiers import Served
from plimsoll.nodes.planning.verifying import verify
from plimsoll.solver.filling import Demand, Standing
from plimsoll.solver.leftovers import Impossible, Placed, Proof, Settled, Unknown, settle, worth_settling
from plimsoll.solver.problems import Effort

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.results import ScaleUp
    from plimsoll.nodes.planning.world import Pending, Snapshot
    from plimsoll.nodes.policy import Policy
    from plimsoll.solver.problems import Ints

NO_CAPACITY: Final = "CapacityIsNotFound"
_PROOFS: Final = {
    Proof.SUMS: "these nodes have less left in all than the pods ask for",
    Proof.SEARCH: "no way to share them out over the nodes exists",
}
_ROUNDS: Final = 4
"""So often a placement that the plain rules refuse is made another way; then there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A request that only asks. `keeps`: the room it finds is kept from those behind it."""

    name: str
    pods: tuple[Pending, ...]
    keeps: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The answer to one; with reasons it is no."""

    name: str
    pods: int
    placed: int
    reasons: tuple[Reason, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """All answers, in line, and the room that is kept for those that found some: node to pods by key."""

    answers: tuple[Checked, ...] = ()
    booked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def check_capacity(snapshot: Snapshot, policy: Policy, checks: Sequence[Check]) -> Checks:
    """On the nodes of the snapshot; what is pending in it is not looked at."""
    if not checks:
        return Checks()
    pending = tuple(one for check in checks for one in check.pods)
    alone = replace(snapshot, pending=pending, groups=(), machine_types=())
    board = Board.of(alone, replace(policy, nap=replace(policy.nap, enabled=False)))
    doubts = Doubts()
    for _ in range(_ROUNDS):
        line = _Line(board, checks, doubts)
        keys = {refuted.key for plan in line.plans() for refuted in verify(alone, plan)}
        if not keys:
            break
        classes = frozenset(line.class_of[key] for key in keys)
        doubts = Doubts(
            one_by_one=doubts.one_by_one | classes, given_up=doubts.given_up | (classes & doubts.one_by_one)
        )
    else:
        line = _Line(board, checks, replace(doubts, given_up=doubts.one_by_one))
    return Checks(answers=tuple(line.answers), booked=line.plans()[0].existing)


# ---- one after the other


class _Line:
    """Checks answered on one board. `answers` are there when it is made."""

    def __init__(self, board: Board, checks: Sequence[Check], doubts: Doubts) -> None:
        self._board = board
        self._meetings = Meetings(board.table, board.rules, board.snapshot.view)
        self._means = Means(usable=np.zeros(0, dtype=np.bool_), doubts=doubts)
        index_of = {one.key: index for index, one in enumerate(board.table.pending)}
        self._entries = {check.name: [index_of[one.key] for one in check.pods] for check in checks}
        self.class_of = {key: int(board.table.class_of[index]) for key, index in index_of.items()}
        self._draft = Draft()
        self._kept: list[Check] = []
        self._loose: list[tuple[Draft, list[Check]]] = []
        self.answers: list[Checked] = []
        first = self._together(checks)
        for check in checks[first:]:
            self._answer(check)

    def plans(self) -> list[ScaleUp]:
        """What is kept, as a plan that can be verified; then what was found and not kept, each beside what was."""
        return [self._plan(self._draft, self._kept), *(self._plan(draft, checks) for draft, checks in self._loose)]

    def _plan(self, draft: Draft, checks: Sequence[Check]) -> ScaleUp:
        pods = [0] * len(self._board.table.pending)
        for check in checks:
            for index in self._entries[check.name]:
                pods[index] = self._board.table.pending[index].count
        return assembled(self._board, Served(draft=draft, pods=tuple(pods)), usable=self._means.usable, effort=Effort())

    def _together(self, checks: Sequence[Check]) -> int:
        """As many of the first as find room all at once, found by halving; each of them keeps it."""
        keepers = next((number for number, one in enumerate(checks) if not one.keeps), len(checks))
        low, high, best = 0, keepers, self._draft
        while low < high:
            middle = (low + high + 1) // 2 if low else high
            tried = self._tried(checks[:middle])
            if self._is_whole(checks[:middle], tried):
                low, best = middle, tried
            else:
                high = middle - 1
        self._draft = best
        for check in checks[:low]:
            self._accept(check)
        return low

    def _accept(self, check: Check) -> None:
        self._kept.append(check)
        self.answers.append(Checked(name=check.name, pods=_size(check), placed=_size(check)))

    def _answer(self, check: Check) -> None:
        tried = self._tried([check])
        settled: Settled = Unknown()
        if not self._is_whole([check], tried):
            settled = self._settled(check, tried)
            if isinstance(settled, Placed):
                tried = self._with(settled)
        if not self._is_whole([check], tried):
            self.answers.append(self._refused(check, tried, settled))
        elif check.keeps:
            self._draft = tried
            self._accept(check)
        else:
            self._loose.append((tried, [*self._kept, check]))
            self.answers.append(Checked(name=check.name, pods=_size(check), placed=_size(check)))

    def _tried(self, checks: Sequence[Check]) -> Draft:
        return place(self._board, self._meetings, self._demand(checks), self._means, self._draft)

    def _demand(self, checks: Sequence[Check]) -> Ints:
        demand = np.zeros(len(self._board.table), dtype=np.int64)
        for check in checks:
            for one in check.pods:
                demand[self.class_of[one.key]] += one.count
        return demand

    def _missing(self, checks: Sequence[Check], tried: Draft) -> Ints:
        """[C]: pods of these checks without a place."""
        classes = len(self._board.table)
        missing: Ints = self._demand(checks) - tried.placed(classes) + self._draft.placed(classes)
        return missing.clip(0)

    def _is_whole(self, checks: Sequence[Check], tried: Draft) -> bool:
        return not self._missing(checks, tried).any()

    # ---- to the end

    def _settled(self, check: Check, tried: Draft) -> Settled:
        """Only for pods that look at nobody: an assignment of them is right on each node by itself."""
        board = self._board
        demand = self._demand([check])
        numbers = np.flatnonzero(demand)
        if self._means.doubts.given_up or board.rules.interacts[numbers].any():
            return Unknown()
        if any(board.table.classes[number].problem is not None for number in numbers.tolist()):
            return Unknown()
        allowed = [board.rules.rules.fits(number, board.arrays.free, {}) for number in numbers.tolist()]
        rows = len(board.arrays)
        asked = Demand(
            requests=board.requests[numbers],
            counts=demand[numbers],
            allowed=np.stack(allowed, axis=1) if rows else np.zeros((0, len(numbers)), dtype=np.bool_),
        )
        if not rows or not worth_settling(asked.counts, self._missing([check], tried)[numbers]):
            return Unknown()
        free = np.maximum(self._draft.free_rows(board), 0)
        found = settle(asked, Standing(free=free, kind=np.arange(rows, dtype=np.int64)), Effort())
        if not isinstance(found, Placed):
            return found
        placements = found.filled.placements.copy()
        placements[:, 1] = numbers[placements[:, 1]]
        return Placed(filled=replace(found.filled, placements=placements))

    def _with(self, settled: Placed) -> Draft:
        existing = dict(self._draft.existing)
        for row, number, pods in settled.filled.placements.tolist():
            at = int(settled.filled.origin[row])
            existing[at] = joined(existing.get(at, {}), {number: pods})
        return replace(self._draft, existing={row: existing[row] for row in sorted(existing)})

    # ---- why not

    def _refused(self, check: Check, tried: Draft, settled: Settled) -> Checked:
        missing = self._missing([check], tried)
        placed = _size(check) - int(missing.sum())
        told = f"{placed} of {_size(check)} pods fit on the nodes that are there, and all are wanted or none"
        reasons = [Reason(code=NO_CAPACITY, message=told, facts={"fit": placed, "pods": _size(check)})]
        if isinstance(settled, Impossible):
            reasons.append(Reason(code=NO_CAPACITY, message=_PROOFS[settled.proof]))
        for number in np.flatnonzero(missing).tolist():
            reasons += self._why_missing(number, tried)
        each_once = {reason.message: reason for reason in reasons}
        return Checked(name=check.name, pods=_size(check), placed=placed, reasons=tuple(each_once.values()))

    def _why_missing(self, number: int, tried: Draft) -> list[Reason]:
        """What each node says to one more such pod when the others are there, in kube-scheduler's words."""
        board = self._board
        problem = board.table.classes[number].problem
        if problem is not None:
            return [Reason(code=problem.code, message=str(problem))]
        free = board.arrays.free.copy()
        for row, content in tried.existing.items():
            for other, pods in content.items():
                free[row] -= board.rules.requests[other] * pods
        codes = board.rules.codes(number, free=free, placed=tried.rows_of(len(board.arrays)))
        words: Counter[str] = Counter()
        for code, nodes in zip(*(each.tolist() for each in np.unique(codes, return_counts=True)), strict=True):
            if code:
                words.update(dict.fromkeys(board.rules.refusal(code).messages, nodes))
        listed = sorted(f"{nodes} {message}" for message, nodes in words.items())
        told = f"0/{len(board.arrays)} nodes are available" + (f": {', '.join(listed)}" if listed else "")
        return [*tried.refused.get(number, ()), Reason(code=NO_CAPACITY, message=told)]


def _size(check: Check) -> int:
    return sum(one.count for one in check.pods)
