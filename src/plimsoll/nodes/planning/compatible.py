"""One group at a time, as Cluster Autoscaler does it: estimate every group alone, let the expander choose one.

`--planner=compatible` (specs/nodes.md 6.6). Each group is filled first fit decreasing with the pods that may be on it;
pods that look at other pods are placed by the same code as in the mixed planner, on that one group. What the chosen
group does not help waits for the next loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.planning.assembling import assembled
from plimsoll.nodes.planning.balancing import balanced
from plimsoll.nodes.planning.drafts import Batch, Draft
from plimsoll.nodes.planning.expanders import Circumstances, Option, choose
from plimsoll.nodes.planning.gpus import gpu_count
from plimsoll.nodes.planning.placing import Doubts, Means, place
from plimsoll.nodes.planning.prices import prices_are_known
from plimsoll.nodes.planning.tiers import Served, serve
from plimsoll.solver.problems import UNBOUNDED, Effort, Packing
from plimsoll.solver.single_types import estimate

if TYPE_CHECKING:
    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.meetings import Meetings
    from plimsoll.nodes.planning.results import ScaleUp
    from plimsoll.solver.problems import Flags, Ints

_EFFORT = Effort(value_vectors=1, rounds=0)


def plan_compatible(board: Board, meetings: Meetings, doubts: Doubts) -> ScaleUp:
    """The best single option of this loop."""
    nothing: Flags = np.zeros(len(board.offers), dtype=np.bool_)
    here = serve(board, lambda demand, onto: place(board, meetings, demand, Means(usable=nothing, doubts=doubts), onto))
    tried = {offer: _grown(board, meetings, here, (offer, doubts)) for offer in range(len(board.offers))}
    options = {
        offer: _option(board, served, here, offer) for offer, served in tried.items() if _nodes(served, offer, board)
    }
    known = prices_are_known(board.snapshot, board.policy.overlay)
    chain = board.policy.choosing.effective_expanders(prices_are_known=known)
    around = Circumstances(
        cluster_nodes=len(board.arrays), priorities=board.policy.priorities, seed=board.policy.choosing.random_seed
    )
    best = choose(list(options.values()), chain, around)
    served = next((tried[offer] for offer, option in options.items() if option is best), here)
    even = replace(served, draft=balanced(board, served.draft, meetings))
    return assembled(board, even, usable=~nothing, effort=_EFFORT)


def _grown(board: Board, meetings: Meetings, here: Served, option: tuple[int, Doubts]) -> Served:
    """Everybody who has no place yet, on nodes of one group."""
    offer, doubts = option
    only: Flags = np.arange(len(board.offers)) == offer
    if not doubts.one_by_one and not _looks_out(board, offer):
        before = here.draft
        return serve(
            board,
            lambda demand, onto: _estimated(board, demand, onto if onto and not onto.is_empty else before, offer),
        )
    means = Means(effort=_EFFORT, usable=only, doubts=doubts)
    return serve(board, lambda demand, onto: place(board, meetings, demand, means, onto))


def _looks_out(board: Board, offer: int) -> bool:
    interacts = board.rules.interacts
    return bool((interacts & board.allowed[offer]).any()) or board.snapshot.view.has_anti_affinity


def _estimated(board: Board, demand: Ints, draft: Draft, offer: int) -> Draft:
    left = np.maximum(demand - draft.placed(len(board.table)), 0)
    chosen = np.flatnonzero((left > 0) & board.allowed[offer])
    if not len(chosen):
        return draft
    use = board.limits.use[offer]
    limited = use > 0
    limits = (draft.room_left(board)[limited] // use[limited]).min(initial=UNBOUNDED)
    room = int(board.available[offer] - draft.nodes_of(len(board.offers))[offer])
    answer = estimate(_problem(board, left, chosen, offer), 0, nodes=int(min(room, limits)))
    batches = [
        Batch(
            offer=offer,
            nodes=one.bins,
            content={int(chosen[index]): items for index, items in zip(one.classes, one.items, strict=True)},
        )
        for one in answer.fillings
    ]
    return Draft(existing=draft.existing, batches=(*draft.batches, *batches), refused=draft.refused)


def _problem(board: Board, left: Ints, chosen: Ints, offer: int) -> Packing:
    return Packing(
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


def _nodes(served: Served, offer: int, board: Board) -> int:
    return int(served.draft.nodes_of(len(board.offers))[offer])


def _option(board: Board, served: Served, here: Served, offer: int) -> Option:
    one = board.offers[offer]
    pods = served.draft.on_new_nodes(len(board.table))
    total = pods @ board.requests
    nodes = _nodes(served, offer, board)
    return Option(
        offer=one,
        nodes=one.max_size - one.size if one.zero_or_max else nodes,
        pods=sum(served.pods) - sum(here.pods),
        requests=ResourceVector(dict(zip(board.names, total.tolist(), strict=True))),
        gpus=gpu_count(one.capacity),
    )
