"""What to add so that pods run, at the least cost, and why: `plan_scale_up(snapshot, policy) -> ScaleUp`. Pure.

The main flow: a board of everything that is looked at; a draft for all pods at once, or in line where limits bind; the
answer with names, reasons, cost and bound; the verifier, which replays it with the plain rules. Classes that fail there
are placed pod by pod instead, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.assembling import assembled
from plimsoll.nodes.planning.balancing import balanced
from plimsoll.nodes.planning.boards import Board, Memory
from plimsoll.nodes.planning.compatible import plan_compatible
from plimsoll.nodes.planning.meetings import Meetings
from plimsoll.nodes.planning.placing import Doubts, Means, place
from plimsoll.nodes.planning.results import Result, ScaleUp
from plimsoll.nodes.planning.tiers import Served, serve
from plimsoll.nodes.planning.verifying import verify
from plimsoll.nodes.policy import Planner
from plimsoll.solver.problems import Effort

if TYPE_CHECKING:
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.policy import Policy
    from plimsoll.solver.problems import Flags

_TIDIED_GROUPS: Final = 6
_TIDIED_CLASSES: Final = 100
_TIDIED_NODES: Final = 30
_SAME_MONEY: Final = 1e-9
_ROUNDS: Final = 4
"""So often a refuted plan is mended pod by pod; what is refuted after that is left out of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proposal:
    """A plan that nobody has verified yet, and what is needed to mend it."""

    board: Board
    effort: Effort
    plan: ScaleUp
    doubts: Doubts = field(default_factory=Doubts)


def plan_scale_up(
    snapshot: Snapshot, policy: Policy, *, effort: Effort | None = None, memory: Memory | None = None
) -> ScaleUp:
    return verified(propose(snapshot, policy, effort=effort, memory=memory))


def propose(
    snapshot: Snapshot, policy: Policy, *, effort: Effort | None = None, memory: Memory | None = None
) -> Proposal:
    """The planning step alone: from a snapshot to a finished plan."""
    chosen = effort or Effort(gap=policy.choosing.plan_gap)
    board = Board.of(snapshot, policy, memory)
    return _proposed(board, chosen, Doubts())


def verified(proposal: Proposal) -> ScaleUp:
    """The plan, once the plain rules agree with it; classes they refuse are placed anew, pod by pod, and counted."""
    failures, rounds = 0, 0
    while refuted := verify(proposal.board.snapshot, proposal.plan):
        rounds += 1
        known = proposal.doubts
        classes = _classes_of(proposal.board, {one.key for one in refuted})
        failures += len(classes - known.one_by_one)
        # What fails again is not planned at all: no plan is better than a wrong one. So this comes to an end.
        hopeless = classes if rounds > _ROUNDS else classes & known.one_by_one
        doubts = Doubts(one_by_one=known.one_by_one | classes, given_up=known.given_up | hopeless)
        proposal = _proposed(proposal.board, proposal.effort, doubts)
    return replace(proposal.plan, verification_failures=failures)


def _proposed(board: Board, effort: Effort, doubts: Doubts) -> Proposal:
    if not board.table.pending:
        return Proposal(board=board, effort=effort, plan=ScaleUp(result=Result.NOT_NEEDED))
    if board.planner is Planner.COMPATIBLE:
        plan = plan_compatible(board, Meetings(board.table, board.rules, board.snapshot.view), doubts)
    else:
        plan = _optimal(board, effort, doubts)
    return Proposal(board=board, effort=effort, plan=plan, doubts=doubts)


def _optimal(board: Board, effort: Effort, doubts: Doubts) -> ScaleUp:
    """All groups and machine types at once. Where that would make too many groups, the least useful are left out."""
    meetings = Meetings(board.table, board.rules, board.snapshot.view)
    usable: Flags = np.ones(len(board.offers), dtype=np.bool_)
    while True:
        served = _served_with(board, meetings, Means(effort=effort, usable=usable, doubts=doubts))
        fewer = _with_fewer_groups(board, served.draft, usable)
        if fewer is None:
            break
        usable = fewer
    served = _tidied(board, meetings, served, Means(effort=effort, usable=usable, doubts=doubts))
    even = replace(served, draft=balanced(board, served.draft, meetings))
    return assembled(board, even, usable=usable, effort=effort)


def _served_with(board: Board, meetings: Meetings, means: Means) -> Served:
    return serve(board, lambda demand, onto: place(board, meetings, demand, means, onto))


def _tidied(board: Board, meetings: Meetings, served: Served, means: Means) -> Served:
    """For the same money rather fewer groups than fewer nodes (specs/nodes.md 8.4). Only where trying costs little."""
    made = _made(board, served.draft)
    few = served.draft.nodes_of(len(board.offers)).sum() <= _TIDIED_NODES
    if not few or not 1 < len(made) <= _TIDIED_GROUPS or len(board.table) > _TIDIED_CLASSES:
        return served
    left = means.usable & np.array(
        [one.exists or index in made for index, one in enumerate(board.offers)], dtype=np.bool_
    )
    for index in made:
        without = left.copy()
        without[index] = False
        tried = _served_with(board, meetings, replace(means, usable=without))
        if tried.pods == served.pods and tried.draft.cost(board) <= served.draft.cost(board) * (1 + _SAME_MONEY):
            served, left = tried, without
    return served


def _made(board: Board, draft: Draft) -> list[int]:
    """Offers of new groups that the draft uses, those with the most nodes last: they are given up last."""
    nodes = draft.nodes_of(len(board.offers))
    used = [index for index in np.flatnonzero(nodes).tolist() if not board.offers[index].exists]
    return sorted(used, key=lambda index: (int(nodes[index]), index))


def _with_fewer_groups(board: Board, draft: Draft, usable: Flags) -> Flags | None:
    """Offers without those new groups that are least used, if more would be made than may be; None: all is well."""
    nodes = draft.nodes_of(len(board.offers))
    made = [index for index in np.flatnonzero(nodes).tolist() if not board.offers[index].exists]
    too_many = len(made) - board.offered.new_groups_left
    if too_many <= 0:
        return None
    left = usable.copy()
    # From now on only groups of this plan are made: each try has fewer of them than the one before.
    left &= np.array([offer.exists or index in made for index, offer in enumerate(board.offers)], dtype=np.bool_)
    worth = {index: float(nodes[index] * board.prices[index]) for index in made}
    for index in sorted(made, key=lambda one: (round(worth[one], 9), one)):
        if too_many and _can_spare(board, index, left):
            left[index] = False
            too_many -= 1
    for index in sorted(made, key=lambda one: (round(worth[one], 9), one)):
        if too_many and left[index]:
            left[index] = False
            too_many -= 1
    return left


def _can_spare(board: Board, index: int, usable: Flags) -> bool:
    """Whether everybody who may be on it may be elsewhere too."""
    others = usable.copy()
    others[index] = False
    return bool((board.allowed[others].any(axis=0) | ~board.allowed[index]).all())


def _classes_of(board: Board, keys: set[str]) -> frozenset[int]:
    return frozenset(
        int(board.table.class_of[index]) for index, one in enumerate(board.table.pending) if one.key in keys
    )
