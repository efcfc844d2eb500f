"""Who is served when not all can be: as they stand in line (`waiting_lines`), bundles whole (specs/nodes.md 8.2).

Money comes second: one old big pod is not dropped to help three young small ones. As long as everybody gets a place
nobody is ranked, and all are planned together; otherwise as many of the first in line as can be are planned together,
and the rest one after the other on top of that.

Who stands where in line: requests and ordinary pods by one key (specs/nodes.md 4.2, 4.5 and 8.2). Pure.

Asked by `tiers` (who is served when not all can be), by `placing` and `verifying` (who is placed first), and by
`request_shares` (whose a node is). Nothing is served here.

A request stands by its rank, the highest priority of its pod sets, its creation and its name. Ordinary pods of one
priority are one unit that stands where the oldest of them would; inside it they stand by their own age and name. So no
young request waits for ever behind ordinary pods that come and come, none of low priority goes before them because it
is a request, and at the same instant the request goes first, as it is all or nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.problem.placement import Placement
from plimsoll.nodes.planning.problem.served import Served, Try, Unit, demand_of, queue_units, serve_units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints

    Place = Callable[[Ints, Placement | None], Placement]
    """Pods by class [C] on top of a draft; None: on nothing, and nobody will come after them."""


def serve_by_priority(board: ScaleUpProblem, place: Place) -> Served:
    """All together if that works; else in line."""
    line = queue_units(board)
    together = place(demand_of(board, line), None)
    if not _somebody_could_go(board, line, together):
        return serve_units(board, line, together)
    draft = Placement()
    first = _longest_prefix(board, line, place)
    accepted = list(line[:first])
    tries: dict[int, Try] = {}
    if accepted:
        draft = place(demand_of(board, accepted), draft)
    for unit in line[first:]:
        tried = place(demand_of(board, [unit]), draft)
        if not unit.is_whole or _is_served(board, unit, draft, tried):
            draft = tried
            accepted.append(unit)
        else:
            tries |= dict.fromkeys(unit.entries, _nearest(board, unit, draft, tried))
    draft = _with_company(board, accepted, draft, place)
    in_line = replace(serve_units(board, accepted, draft), tries=tries)
    # Who wants the company of somebody further back is helped only together with them.
    at_once = serve_units(board, line, together)
    return at_once if _ranked(line, at_once) > _ranked(line, in_line) and _is_whole(board, line, at_once) else in_line


def _with_company(board: ScaleUpProblem, accepted: Sequence[Unit], draft: Placement, place: Place) -> Placement:
    """Who wants company and stood in line before it is asked once more when it is there."""
    left = demand_of(board, accepted) - draft.placed(len(board.table))
    left[[not pod_class.has_affinity for pod_class in board.table]] = 0
    return place(left, draft) if left.any() else draft


def _ranked(line: Sequence[Unit], served: Served) -> list[int]:
    """Pods served of each unit, the first in line first: more for somebody goes before more for all behind."""
    return [sum(served.pods[index] for index in unit.entries) for unit in line]


def _is_whole(board: ScaleUpProblem, line: Sequence[Unit], served: Served) -> bool:
    """Whether no bundle is served in part."""
    pending = board.table.pending
    counts = [[(served.pods[index], pending[index].count) for index in unit.entries] for unit in line if unit.is_whole]
    return all(all(got == wanted for got, wanted in unit) or not any(got for got, _ in unit) for unit in counts)


def _nearest(board: ScaleUpProblem, unit: Unit, before: Placement, tried: Placement) -> Try:
    classes = len(board.table)
    demand = demand_of(board, [unit])
    placed = np.minimum(tried.placed(classes) - before.placed(classes), demand)
    short = tuple(np.flatnonzero(placed < demand).tolist())
    return Try(draft=tried, placed=int(placed.sum()), pods=int(demand.sum()), short=short)


def _is_complete(board: ScaleUpProblem, units: Sequence[Unit], draft: Placement) -> bool:
    return bool((draft.placed(len(board.table)) >= demand_of(board, units)).all())


def _is_served(board: ScaleUpProblem, unit: Unit, before: Placement, tried: Placement) -> bool:
    """Whether all of it came to what was there; who stands before it may have got less than they asked for."""
    classes = len(board.table)
    return bool((tried.placed(classes) - before.placed(classes) >= demand_of(board, [unit])).all())


def _somebody_could_go(board: ScaleUpProblem, line: Sequence[Unit], draft: Placement) -> bool:
    """Whether pods are left that others may have kept out: a bundle in part, or pods that some node would take."""
    left = demand_of(board, line) - draft.placed(len(board.table))
    if not left.any():
        return False
    short = np.flatnonzero(left)
    in_bundles = {int(board.table.class_of[index]) for unit in line if unit.is_whole for index in unit.entries}
    if in_bundles & set(short.tolist()):
        return True
    return len(line) > 1 and any(_has_a_place(board, int(number)) for number in short)


def _has_a_place(board: ScaleUpProblem, number: int) -> bool:
    """Whether some node, there or offered, would take such a pod if nobody else came."""
    if board.allowed[:, number].any():
        return True
    return bool(board.rules.node_predicates.fits(number, board.arrays.free, {}).any())


def _longest_prefix(board: ScaleUpProblem, line: Sequence[Unit], place: Place) -> int:
    """How many of the first in line can all be served together, found by halving."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if _is_complete(board, line[:middle], place(demand_of(board, line[:middle]), Placement())):
            low = middle
        else:
            high = middle - 1
    return low
