"""One group at a time, as Cluster Autoscaler does it: estimate every group alone, let the expander choose one.

`--planner=compatible` (specs/nodes.md 6.6). Pods that fit on existing nodes go there in line; everybody else is
estimated on each group, first fit decreasing: the largest first, whatever their priority. Pods that look at other pods
are placed by the same code as in the mixed planner, on that one group. Who is not helped by the group that is chosen,
but may be by one that can still grow, waits for a later loop, and is told so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.gpus import gpu_count
from plimsoll.nodes.model.prices import prices_are_known
from plimsoll.nodes.planning.explain.unschedulable import ASKED, few_names, may_interact, refused_beside
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions
from plimsoll.nodes.planning.packing.place import place
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement
from plimsoll.nodes.planning.problem.served import Served, served_at_once
from plimsoll.nodes.planning.scaleup.balancing import balanced, similar_offers
from plimsoll.nodes.planning.scaleup.expanders import Circumstances, Option, choose
from plimsoll.nodes.planning.scaleup.priorities import serve_by_priority
from plimsoll.nodes.planning.scaleup.result_builder import assembled
from plimsoll.nodes.planning.state.resource_limits import MAX_NODES_PER_SCALEUP
from plimsoll.solver.packing.first_fit import estimate
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Flags, Ints

AWAITS_A_LATER_LOOP: Final = "AwaitsLaterLoop"
_EFFORT = Effort(value_vectors=1, rounds=0)


def plan_compatible(board: ScaleUpProblem, meetings: PodRelations, doubts: FailedClasses) -> ScaleUpPlan:
    """The best single option of this loop."""
    nothing: Flags = np.zeros(len(board.offers), dtype=np.bool_)
    here = serve_by_priority(
        board, lambda demand, onto: place(board, meetings, demand, PackingOptions(usable=nothing, doubts=doubts), onto)
    )
    growing = _Growing(board=board, meetings=meetings, here=here, doubts=doubts, families=similar_offers(board))
    tried = {offer: growing.by(offer) for offer in range(len(board.offers))}
    options = {offer: _option(board, served, here, offer) for offer, served in tried.items() if _nodes(board, served)}
    known = prices_are_known(board.snapshot, board.policy.overlay)
    chain = board.policy.planning.effective_expanders(prices_are_known=known)
    around = Circumstances(
        cluster_nodes=len(board.arrays),
        priorities=board.policy.priorities,
        seed=board.policy.planning.random_seed,
        answers=board.policy.expander_answers,
    )
    best = choose(list(options.values()), chain, around)
    served = next((tried[offer] for offer, option in options.items() if option is best), here)
    waits = {} if best is None else _await_later(board, served, tried)
    return assembled(board, replace(served, waits=waits), usable=~nothing, effort=_EFFORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growing:
    """Everybody who has no place yet, on nodes of one group and of groups similar to it."""

    board: ScaleUpProblem
    meetings: PodRelations
    here: Served
    doubts: FailedClasses
    families: Sequence[Sequence[int]]

    def by(self, offer: int) -> Served:
        board = self.board
        if self.doubts.one_by_one or _looks_out(board, offer):
            return self._placed(offer)
        family = next((one for one in self.families if offer in one), (offer,))
        similar = [one for one in family if (board.allowed[one] >= board.allowed[offer]).all()]
        # Similar groups are one to the estimate; that holds if the nodes can be dealt out among them afterwards.
        shared = self._dealt(self._estimated(offer, similar))
        if (shared.nodes_of(len(board.offers)) > board.available).any():
            shared = self._dealt(self._estimated(offer, [offer]))
        return served_at_once(board, shared)

    def _dealt(self, draft: Placement) -> Placement:
        return balanced(self.board, draft, self.meetings, self.families)

    def _estimated(self, offer: int, together: Sequence[int]) -> Placement:
        """First fit decreasing; `together` are the groups whose rooms add up."""
        board, before = self.board, self.here.draft
        left = self._left()
        chosen = np.flatnonzero((left > 0) & board.allowed[offer])
        if not len(chosen):
            return before
        use = board.limits.use[list(together)].max(axis=0)
        limited = use > 0
        limits = (board.limits.room[limited] // use[limited]).min(initial=UNBOUNDED)
        room = min(int(board.available[list(together)].sum()), int(limits))
        answer = estimate(_problem(board, left, chosen, offer), 0, nodes=room)
        batches = [
            NodeBatch(
                offer=offer,
                nodes=pattern.bins,
                content={
                    int(chosen[index]): items for index, items in zip(pattern.classes, pattern.items, strict=True)
                },
            )
            for pattern in answer.fillings
        ]
        return replace(before, batches=(*before.batches, *batches))

    def _placed(self, offer: int) -> Served:
        """On top of what has a place, or all anew, if that helps more: who is where may be in the way of others."""
        board = self.board
        only: Flags = np.arange(len(board.offers)) == offer
        means = PackingOptions(effort=_EFFORT, usable=only, doubts=self.doubts)
        starts: list[tuple[Ints, Placement | None]] = [(board.table.counts, None)]
        if not self.here.draft.is_empty:
            starts.insert(0, (self._left(), self.here.draft))
        drafts = [place(board, self.meetings, demand, means, onto) for demand, onto in starts]
        return max(
            (served_at_once(board, self._dealt(placement)) for placement in drafts), key=lambda served: sum(served.pods)
        )

    def _left(self) -> Ints:
        """[C]: pods without a place on existing nodes."""
        counts = self.board.table.counts
        left: Ints = np.maximum(counts - self.here.draft.placed(len(counts)), 0)
        return left


def _looks_out(board: ScaleUpProblem, offer: int) -> bool:
    interacts = board.rules.interacts
    return bool((interacts & board.allowed[offer]).any()) or board.snapshot.view.has_anti_affinity


def _problem(board: ScaleUpProblem, left: Ints, chosen: Ints, offer: int) -> PackingProblem:
    return PackingProblem(
        requests=board.requests[chosen],
        counts=left[chosen],
        capacity=board.capacity[[offer]],
        price=board.prices[[offer]],
        allowed=np.ones((1, len(chosen)), dtype=np.bool_),
        per_bin=np.full(len(chosen), UNBOUNDED, dtype=np.int64),
        exclusive=np.zeros((len(chosen), 0), dtype=np.bool_),
        available=board.available[[offer]],
        use=np.zeros((1, 0), dtype=np.int64),
        room=np.zeros(0, dtype=np.int64),
    )


def _nodes(board: ScaleUpProblem, served: Served) -> int:
    return int(served.draft.nodes_of(len(board.offers)).sum())


def _option(board: ScaleUpProblem, served: Served, here: Served, offer: int) -> Option:
    one = board.offers[offer]
    pods = served.draft.on_new_nodes(len(board.table))
    total = pods @ board.requests
    return Option(
        offer=one,
        nodes=one.max_size - one.size if one.zero_or_max else _nodes(board, served),
        pods=sum(served.pods) - sum(here.pods),
        requests=ResourceVector(dict(zip(board.names, total.tolist(), strict=True))),
        gpus=gpu_count(one.capacity),
        helped=() if board.policy.expander_answers is None else _helped(board, pods),
    )


def _helped(board: ScaleUpProblem, pods: Ints) -> tuple[tuple[Pod, int], ...]:
    """Only an expander outside looks at pods."""
    return tuple((board.table.classes[number].pod, int(pods[number])) for number in np.flatnonzero(pods).tolist())


# ---- who waits


def _await_later(board: ScaleUpProblem, served: Served, tried: dict[int, Served]) -> dict[int, Reason]:
    """By class: pods without a place that a group which can still grow afterwards would take."""
    found: dict[int, Reason] = {}
    growing = np.flatnonzero(_can_grow(board, served.draft)).tolist()
    placed = served.draft.placed(len(board.table))
    helped = {offer: tried[offer].draft.on_new_nodes(len(board.table)) > 0 for offer in growing}
    for number in np.flatnonzero(placed < board.table.counts).tolist():
        # Who looks at others may be refused by all that a node does not know: only what was seen to help counts.
        plain = not board.rules.interacts[number]
        groups = [one for one in growing if board.allowed[one, number] and (plain or helped[one][number])]
        if groups and may_interact(board, number):
            beside = refused_beside(board, served.draft, number, groups)
            groups = [*(one for one, refusals in beside if not refusals), *groups[ASKED:]]
        if groups:
            names = few_names([board.offers[group].group for group in groups])
            told = f"one group grows at a time; a later loop may help ({names})"
            found[number] = Reason(code=AWAITS_A_LATER_LOOP, message=told, facts={"groups": len(groups)})
    return found


def _can_grow(board: ScaleUpProblem, draft: Placement) -> Flags:
    """[T]: by one more node, or whole, in the next loop. What is granted to one loop alone does not bind it."""
    nodes = draft.nodes_of(len(board.offers))
    step = np.array(
        [option.max_size - option.size if option.zero_or_max else 1 for option in board.offers], dtype=np.int64
    )
    lasting = np.array(
        [resource_limit.code != MAX_NODES_PER_SCALEUP for resource_limit in board.limits.ceilings], dtype=np.bool_
    )
    left = draft.room_left(board)
    within = ((board.limits.use * step[:, None])[:, lasting] <= left[None, lasting]).all(axis=1)
    sizes = np.array([option.max_size - option.size for option in board.offers], dtype=np.int64)
    return np.asarray(within & (nodes + step <= sizes), dtype=np.bool_)
