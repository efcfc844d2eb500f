"""What the pods on new nodes cost at least, in real money: the yardstick that plans are reported against. Pure.

Only `assembling` asks. A bound leaves rules out, never adds any: it knows what a node by itself takes (resources, its
own rules, host ports, pods that keep each other off a node), and nothing of zones, company, sizes of groups and limits.
What pods were worth when the plan was made is tried first: it shows a bound quickly, whatever became of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.solver.bounds import PROVING, lower_bound
from plimsoll.solver.problems import UNBOUNDED, Packing
from plimsoll.solver.proofs import proven_bound, shown_by

if TYPE_CHECKING:
    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.solver.problems import Effort, Flags, Ints

_APART: Final = 200
"""Of so many classes that keep their pods apart it is asked which of them keep off each other too."""


def least_cost(board: Board, draft: Draft, effort: Effort, cost: float) -> float:
    """No plan for these pods costs less. Once it shows the cost to be good enough, it is not made any better."""
    counts = draft.on_new_nodes(len(board.table))
    chosen = np.flatnonzero(counts)
    if not len(chosen):
        return 0.0
    types = len(board.offers)
    apart = [number for number in chosen.tolist() if _keeps_apart(board, number)]
    problem = Packing(
        requests=board.requests[chosen],
        counts=counts[chosen],
        capacity=board.capacity,
        price=board.prices,
        allowed=board.allowed[:, chosen],
        per_bin=np.where(np.isin(chosen, apart), 1, UNBOUNDED),
        exclusive=_keys(board, chosen, apart),
        available=np.full(types, UNBOUNDED, dtype=np.int64),
        use=np.zeros((types, 0), dtype=np.int64),
        room=np.zeros(0, dtype=np.int64),
    )
    enough = cost / (1 + effort.gap)
    worths = np.array([draft.worths.get(number, 0.0) for number in chosen.tolist()])
    bound = shown_by(problem, worths) if worths.any() else 0.0
    if bound < enough:
        bound = max(bound, lower_bound(problem, effort=effort, enough=enough))
    if effort.rounds < PROVING or bound >= enough:
        return bound
    return proven_bound(problem, effort, known=bound, enough=enough)


def _keeps_apart(board: Board, number: int) -> bool:
    """Whether no node takes two pods of the class: by its own words, or because of a port, a disk or a claim."""
    pods = board.table.classes[number]
    if pods.has_anti_affinity and _avoids(board, number, number):
        return True
    return bool(pods.form.ports or pods.volumes) and board.offer_rules.rules.excludes_itself(number)


def _avoids(board: Board, one: int, other: int) -> bool:
    """Whether pods of these classes never share a node; the words of either are enough."""
    classes, namespaces = board.table.classes, board.snapshot.view.namespaces
    terms = board.rules.terms
    return HOSTNAME in (
        *terms(one).keys_avoiding(classes[other].pod, namespaces),
        *terms(other).keys_avoiding(classes[one].pod, namespaces),
    )


def _keys(board: Board, chosen: Ints, apart: list[int]) -> Flags:
    """[C, K]: classes of which a node takes one pod in all: each avoids itself, and every other of them."""
    cliques: list[list[int]] = []
    avoiding = [number for number in apart if board.table.classes[number].has_anti_affinity]
    for number in avoiding[:_APART]:
        if not _avoids(board, number, number):
            continue
        home = next((one for one in cliques if all(_avoids(board, number, other) for other in one)), None)
        if home is None:
            cliques.append([number])
        else:
            home.append(number)
    keys = [np.isin(chosen, one) for one in cliques if len(one) > 1]
    return np.stack(keys, axis=1) if keys else np.zeros((len(chosen), 0), dtype=np.bool_)
