"""Why pods stay without a place: everything that stood in their way, group by group, in few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.between_pods import may_interact, refused_beside, refused_on_planned
from plimsoll.nodes.planning.candidates import MAX_SIZE_REACHED
from plimsoll.nodes.planning.daemons_in_the_way import beside_daemons
from plimsoll.nodes.planning.refused_types import refused_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.nodes.planning.limits import Ceiling
    from plimsoll.solver.problems import Flags

NO_GROUPS: Final = "NoNodeGroups"
NO_ROOM: Final = "NoRoom"
MAX_NEW_GROUPS: Final = "MaxAutoprovisionedNodeGroupCount"
_NAMED: Final = 3
_LISTED: Final = 40
"""So many are in the facts, for whoever asks about one pod; every pod of a journal carries them."""


def why_left(board: Board, draft: Draft, number: int, usable: Flags) -> tuple[Reason, ...]:
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


def _lacks_a_group(board: Board, number: int) -> bool:
    """Auto-provisioning may make groups, and offers none that this class may use."""
    return board.policy.nap.enabled and bool(board.offered.new_groups_left) and not board.allowed[:, number].any()


def _impossible(board: Board, number: int) -> list[Reason]:
    keys = [board.table.pending[member.pending].key for member in board.table.classes[number].members]
    return [board.offered.impossible[key] for key in keys if key in board.offered.impossible]


def _refused_by_rules(board: Board, number: int) -> list[Reason]:
    """Of groups that are there and whose empty nodes would not take such a pod."""
    rules = board.offer_rules
    codes = rules.rules.codes(number, rules.arrays.free, {})
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


def _refused_types(board: Board, number: int) -> list[Reason]:
    """Of machine types that would not take such a pod, even labelled for it; nothing if another type would."""
    if any(not board.offers[one].exists for one in np.flatnonzero(board.allowed[:, number]).tolist()):
        return []
    types: dict[str, list[str]] = {}
    codes_of: dict[str, str] = {}
    for kind, refusals in refused_types(board, number):
        told = ", ".join(dict.fromkeys(message for one in refusals for message in one.messages))
        types.setdefault(told, []).append(kind.name)
        codes_of[told] = refusals[0].code
    return [_reason(codes_of[told], told, names) for told, names in types.items()]


def _full(board: Board, draft: Draft, number: int, usable: Flags) -> list[Reason]:
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


def _refused_beside_others(board: Board, draft: Draft, number: int, usable: Flags) -> list[Reason]:
    """Of groups that could grow, and whose next node would not take such a pod because of where others are."""
    nodes = draft.nodes_of(len(board.offers))
    left = draft.room_left(board)
    rules = board.offer_rules
    suited = rules.rules.fits(number, rules.arrays.free, {}) & usable & (board.limits.use <= left[None, :]).all(axis=1)
    growing = [
        offer
        for offer in np.flatnonzero(suited).tolist()
        if nodes[offer] < board.offers[offer].max_size - board.offers[offer].size
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    asked = (*refused_beside(board, draft, number, growing), *refused_on_planned(board, draft, number))
    for offer, refusals in asked:
        for one in refusals:
            groups.setdefault((one.code, ", ".join(one.messages)), []).append(_name(board, offer))
    return [_reason(code, told, names) for (code, told), names in groups.items()]


def _used_up(ceiling: Ceiling, board: Board, draft: Draft, limit: int) -> str:
    planned = int(draft.nodes_of(len(board.offers)) @ board.limits.use[:, limit])
    return f"{ceiling}" if not planned else f"{ceiling.with_more(planned)}"


def _not_offered(board: Board) -> list[Reason]:
    groups: dict[tuple[str, str], list[str]] = {}
    for one in board.offered.not_offered:
        groups.setdefault((one.code, one.reason), []).append(one.group or one.machine_type)
    return [_reason(code, told, names) for (code, told), names in groups.items()]


def _name(board: Board, offer: int) -> str:
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
