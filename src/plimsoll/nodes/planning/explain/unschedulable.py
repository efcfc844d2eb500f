"""What other pods leave of the nodes of a plan to pods without a place: affinity, anti-affinity and spread. Pure.

The reference rules are asked about one more pod, with everything where the draft puts it: on one more empty node of
some offers, and on some of the nodes that the draft adds. Only the words of an answer rest on it (`why_left`), and
whether a later loop can help (`compatible`); no pod is placed by it. A large draft is looked at in part: one node of
each batch, with one pod of each class, which is all that affinity and anti-affinity ask for.

Why pods stay without a place: everything that stood in their way, group by group, in few sentences.

The words for daemon sets that leave too little of a new node for a pod that would fit without them. Pure.

To a rule a daemon pod is one that runs there, and "Insufficient cpu" is all it says; the node looks large enough, and
nobody finds the reason. Here the daemon sets are named, and what they take of what. Only words rest on it: `why_left`,
`refused_types` and `explaining` ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_templates import planned_node
from plimsoll.nodes.model.reasons import MAX_SIZE_REACHED
from plimsoll.nodes.planning.explain.daemon_overhead import beside_daemons
from plimsoll.nodes.planning.explain.rejected_types import refused_types
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod
from plimsoll.scheduling.feasibility import prepared
from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY
from plimsoll.scheduling.rules.topology_spread import TOPOLOGY_SPREAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.nodes.planning.state.resource_limits import ResourceLimit
    from plimsoll.scheduling.cluster_view import ClusterView
    from plimsoll.scheduling.verdicts import Refusal
    from plimsoll.solver.problem import Flags


ASKED: Final = 8
"""So many offers, and so many planned nodes, are asked about."""
_WHOLE: Final = 1_000
"""Placements of a draft that are all looked at."""


def may_interact(board: ScaleUpProblem, number: int) -> bool:
    """Whether other pods can be what keeps such a pod off a node."""
    table = board.table
    return (
        not table.classes[number].is_simple
        or board.snapshot.view.has_anti_affinity
        or any(pod_class.has_anti_affinity for pod_class in table)
    )


def refused_beside(
    board: ScaleUpProblem, draft: Placement, number: int, offers: Sequence[int]
) -> Iterator[tuple[int, tuple[Refusal, ...]]]:
    """(offer, what refuses), for one more empty node of each of the first offers; nothing refuses where one fits."""
    filled = _Filled.of(board, draft)
    for offer in offers[:ASKED]:
        yield offer, filled.refusals(number, filled.empty_node(offer))


def refused_on_planned(
    board: ScaleUpProblem, draft: Placement, number: int
) -> Iterator[tuple[int, tuple[Refusal, ...]]]:
    """(offer, what refuses), for nodes the draft adds where nothing but other pods is in the way."""
    filled = _Filled.of(board, draft)
    for offer, place in filled.planned[:ASKED]:
        refusals = filled.refusals(number, place)
        if refusals and all(refusal.plugin in {INTER_POD_AFFINITY, TOPOLOGY_SPREAD} for refusal in refusals):
            yield offer, refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filled:
    """The cluster as the draft would leave it."""

    board: ScaleUpProblem
    view: ClusterView
    planned: tuple[tuple[int, NodeState], ...]
    """Of each batch one node, and the offer it is of."""
    is_whole: bool

    @classmethod
    def of(cls, board: ScaleUpProblem, draft: Placement) -> _Filled:
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
                empty = NodeState(node).with_pods(PlacedPod(pod) for pod in board.offers[batch.offer].daemons)
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
        return tuple(refusal for refusal in found if self.is_whole or refusal.plugin != TOPOLOGY_SPREAD)


def _classes(draft: Placement) -> set[int]:
    contents = (*draft.existing.values(), *(batch.content for batch in draft.batches))
    return {number for content in contents for number in content}


def _pods(
    samples: Mapping[int, PlacedPod], content: Mapping[int, int], node: str, *, whole: bool
) -> Iterable[PlacedPod]:
    for number, pods in content.items():
        for index in range(pods if whole else 1):
            yield samples[number].named(f"{node}#{number}#{index}")


NO_GROUPS: Final = "NoNodeGroups"
NO_ROOM: Final = "NoRoom"
MAX_NEW_GROUPS: Final = "MaxAutoprovisionedNodeGroupCount"
_NAMED: Final = 3
_LISTED: Final = 40
"""So many are in the facts, for whoever asks about one pod; every pod of a journal carries them."""


def why_left(board: ScaleUpProblem, draft: Placement, number: int, usable: Flags) -> tuple[Reason, ...]:
    """In the order of how much they tell: the pods themselves, the plan, the groups, the cluster's limits."""
    one = board.table.classes[number]
    if one.problem is not None:
        return (Reason(code=one.problem.code, message=str(one.problem)),)
    found = [
        *_impossible(board, number),
        *draft.refused.get(number, ()),
        *_refused_by_rules(board, number),
        *_refused_types(board, number),
        *_full(board, draft, number, usable),
        *_not_offered(board),
    ]
    if not draft.refused.get(number) and may_interact(board, number):
        found += _refused_beside_others(board, draft, number, usable)
    if not found and _lacks_a_group(board, number):
        # A group could be made for them, were others not made before.
        return (Reason(code=MAX_NEW_GROUPS, message="no more node groups may be made now"),)
    if not found:
        told = "no node group can be grown and no machine type is offered" if not board.offers else "no room is left"
        found = [Reason(code=NO_GROUPS if not board.offers else NO_ROOM, message=told)]
    return tuple({(reason.code, reason.message): reason for reason in found}.values())


def _lacks_a_group(board: ScaleUpProblem, number: int) -> bool:
    """Auto-provisioning may make groups, and offers none that this class may use."""
    return board.policy.nap.enabled and bool(board.offered.new_groups_left) and not board.allowed[:, number].any()


def _impossible(board: ScaleUpProblem, number: int) -> list[Reason]:
    keys = [board.table.pending[member.pending].key for member in board.table.classes[number].members]
    return [board.offered.impossible[key] for key in keys if key in board.offered.impossible]


def _refused_by_rules(board: ScaleUpProblem, number: int) -> list[Reason]:
    """Of groups that are there and whose empty nodes would not take such a pod."""
    rules = board.offer_rules
    codes = rules.node_predicates.codes(number, rules.arrays.free, {})
    groups: dict[str, list[str]] = {}
    codes_of: dict[str, str] = {}
    for offer in (one for one in np.flatnonzero(codes).tolist() if board.offers[one].exists):
        one = board.offers[offer]
        demand = board.table.classes[number].demand
        [refusal] = beside_daemons([rules.refusal(int(codes[offer]))], demand, one.free, one.daemons)
        told = ", ".join(refusal.messages)
        groups.setdefault(told, []).append(_name(board, offer))
        codes_of[told] = refusal.code
    return [_reason(codes_of[told], told, names) for told, names in groups.items()]


def _refused_types(board: ScaleUpProblem, number: int) -> list[Reason]:
    """Of machine types that would not take such a pod, even labelled for it; nothing if another type would."""
    if any(not board.offers[one].exists for one in np.flatnonzero(board.allowed[:, number]).tolist()):
        return []
    types: dict[str, list[str]] = {}
    codes_of: dict[str, str] = {}
    for kind, refusals in refused_types(board, number):
        told = ", ".join(dict.fromkeys(message for refusal in refusals for message in refusal.messages))
        types.setdefault(told, []).append(kind.name)
        codes_of[told] = refusals[0].code
    return [_reason(codes_of[told], told, names) for told, names in types.items()]


def _full(board: ScaleUpProblem, draft: Placement, number: int, usable: Flags) -> list[Reason]:
    """Of groups that would take such a pod, but can grow no further with this plan."""
    nodes = draft.nodes_of(len(board.offers))
    left = draft.room_left(board)
    full: list[str] = []
    capped: list[str] = []
    limits: dict[int, list[str]] = {}
    for offer in np.flatnonzero(board.allowed[:, number]).tolist():
        if not usable[offer]:
            capped.append(_name(board, offer))
        for limit in np.flatnonzero(board.limits.use[offer] > left).tolist():
            limits.setdefault(limit, []).append(_name(board, offer))
        if nodes[offer] >= board.offers[offer].max_size - board.offers[offer].size:
            full.append(_name(board, offer))
    found = [
        Reason(code=ceiling.code, message=_used_up(ceiling, board, draft, limit))
        for limit in sorted(limits)
        for ceiling in [board.limits.ceilings[limit]]
    ]
    if full:
        found.append(_reason(MAX_SIZE_REACHED, "max size reached", full))
    if capped:
        found.append(_reason(MAX_NEW_GROUPS, "no more node groups may be made", capped))
    return found


def _refused_beside_others(board: ScaleUpProblem, draft: Placement, number: int, usable: Flags) -> list[Reason]:
    """Of groups that could grow, and whose next node would not take such a pod because of where others are."""
    nodes = draft.nodes_of(len(board.offers))
    left = draft.room_left(board)
    rules = board.offer_rules
    suited = (
        rules.node_predicates.fits(number, rules.arrays.free, {})
        & usable
        & (board.limits.use <= left[None, :]).all(axis=1)
    )
    growing = [
        offer
        for offer in np.flatnonzero(suited).tolist()
        if nodes[offer] < board.offers[offer].max_size - board.offers[offer].size
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    asked = (*refused_beside(board, draft, number, growing), *refused_on_planned(board, draft, number))
    for offer, refusals in asked:
        for refusal in refusals:
            groups.setdefault((refusal.code, ", ".join(refusal.messages)), []).append(_name(board, offer))
    return [_reason(code, told, names) for (code, told), names in groups.items()]


def _used_up(ceiling: ResourceLimit, board: ScaleUpProblem, draft: Placement, limit: int) -> str:
    planned = int(draft.nodes_of(len(board.offers)) @ board.limits.use[:, limit])
    return f"{ceiling}" if not planned else f"{ceiling.with_more(planned)}"


def _not_offered(board: ScaleUpProblem) -> list[Reason]:
    groups: dict[tuple[str, str], list[str]] = {}
    for not_offered in board.offered.not_offered:
        groups.setdefault((not_offered.code, not_offered.reason), []).append(
            not_offered.group or not_offered.machine_type
        )
    return [_reason(code, told, names) for (code, told), names in groups.items()]


def _name(board: ScaleUpProblem, offer: int) -> str:
    one = board.offers[offer]
    return one.group if one.exists else one.machine_type


def _reason(code: str, told: str, names: Iterable[str]) -> Reason:
    listed = [name for name in dict.fromkeys(names) if name]
    message = f"{told} ({few_names(listed)})" if listed else told
    facts: dict[str, object] = {"groups": len(listed)}
    if len(listed) > _NAMED:
        facts["names"] = listed[:_LISTED]
    return Reason(code=code, message=message, facts=facts)


def few_names(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
