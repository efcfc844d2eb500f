"""What other pods leave of the nodes of a plan to pods without a place: affinity, anti-affinity and spread. Pure.

The reference rules are asked about one more pod, with everything where the draft puts it: on one more empty node of
some offers, and on some of the nodes that the draft adds. Only the words of an answer rest on it (`why_left`), and
whether a later loop can help (`compatible`); no pod is placed by it. A large draft is looked at in part: one node of
each batch, with one pod of each class, which is all that affinity and anti-affinity ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.verifying import planned_node
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.feasibility import prepared
from plimsoll.scheduling.interpod import INTER_POD_AFFINITY
from plimsoll.scheduling.spread import TOPOLOGY_SPREAD
from plimsoll.scheduling.view import NodeState, PlacedPod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.scheduling.verdicts import Refusal
    from plimsoll.scheduling.view import ClusterView

ASKED: Final = 8
"""So many offers, and so many planned nodes, are asked about."""
_WHOLE: Final = 1_000
"""Placements of a draft that are all looked at."""


def may_interact(board: Board, number: int) -> bool:
    """Whether other pods can be what keeps such a pod off a node."""
    table = board.table
    return (
        not table.classes[number].is_simple
        or board.snapshot.view.has_anti_affinity
        or any(one.has_anti_affinity for one in table)
    )


def refused_beside(
    board: Board, draft: Draft, number: int, offers: Sequence[int]
) -> Iterator[tuple[int, tuple[Refusal, ...]]]:
    """(offer, what refuses), for one more empty node of each of the first offers; nothing refuses where one fits."""
    filled = _Filled.of(board, draft)
    for offer in offers[:ASKED]:
        yield offer, filled.refusals(number, filled.empty_node(offer))


def refused_on_planned(board: Board, draft: Draft, number: int) -> Iterator[tuple[int, tuple[Refusal, ...]]]:
    """(offer, what refuses), for nodes the draft adds where nothing but other pods is in the way."""
    filled = _Filled.of(board, draft)
    for offer, place in filled.planned[:ASKED]:
        refusals = filled.refusals(number, place)
        if refusals and all(one.plugin in {INTER_POD_AFFINITY, TOPOLOGY_SPREAD} for one in refusals):
            yield offer, refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filled:
    """The cluster as the draft would leave it."""

    board: Board
    view: ClusterView
    planned: tuple[tuple[int, NodeState], ...]
    """Of each batch one node, and the offer it is of."""
    is_whole: bool

    @classmethod
    def of(cls, board: Board, draft: Draft) -> _Filled:
        placements = sum(1 + sum(batch.content.values()) * batch.nodes + batch.nodes for batch in draft.batches)
        placements += sum(1 + sum(content.values()) for content in draft.existing.values())
        whole = placements <= _WHOLE
        samples = {number: PlacedPod(board.table.classes[number].pod) for number in _classes(draft)}
        states: list[NodeState] = []
        for row, content in list(draft.existing.items())[:_WHOLE]:
            state = board.snapshot.view.nodes[board.arrays.names[row]]
            states.append(state.with_pods(_pods(samples, content, state.name, whole=whole)))
        planned: list[tuple[int, NodeState]] = []
        for number, batch in enumerate(draft.batches[:_WHOLE]):
            for index in range(batch.nodes if whole else 1):
                node = planned_node(board.offers[batch.offer], number * _WHOLE + index)
                empty = NodeState(node).with_pods(PlacedPod(one) for one in board.offers[batch.offer].daemons)
                states.append(empty.with_pods(_pods(samples, batch.content, empty.name, whole=whole)))
                if not index:
                    planned.append((batch.offer, states[-1]))
        return cls(board=board, view=board.snapshot.view.with_states(states), planned=tuple(planned), is_whole=whole)

    def empty_node(self, offer: int) -> NodeState:
        one = self.board.offers[offer]
        return NodeState(planned_node(one, -1)).with_pods(PlacedPod(daemon) for daemon in one.daemons)

    def refusals(self, number: int, place: NodeState) -> tuple[Refusal, ...]:
        """Where only a part is looked at, counts of pods say nothing."""
        around = self.view if self.view.node(place.name) is not None else self.view.with_states((place,))
        found = prepared(self.board.table.classes[number].pod, around, profile=DEFAULT_PROFILE).refusals(place)
        return tuple(one for one in found if self.is_whole or one.plugin != TOPOLOGY_SPREAD)


def _classes(draft: Draft) -> set[int]:
    contents = (*draft.existing.values(), *(batch.content for batch in draft.batches))
    return {number for content in contents for number in content}


def _pods(
    samples: Mapping[int, PlacedPod], content: Mapping[int, int], node: str, *, whole: bool
) -> Iterable[PlacedPod]:
    for number, pods in content.items():
        for index in range(pods if whole else 1):
            yield samples[number].named(f"{node}#{number}#{index}")
