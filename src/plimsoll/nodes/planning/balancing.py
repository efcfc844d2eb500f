"""Growth shared out evenly among groups that are as good as each other (`--balance-similar-node-groups`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.drafts import Batch, Draft
from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.similar_groups import Likeness, shared_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.meetings import Meetings


def balanced(board: Board, draft: Draft, meetings: Meetings, families: Sequence[Sequence[int]] | None = None) -> Draft:
    """The same nodes, moved between similar groups until these are as equal as their limits allow."""
    for siblings in similar_offers(board) if families is None else families:
        draft = _shared(board, draft, siblings, meetings)
    return draft


def similar_offers(board: Board) -> list[list[int]]:
    """Families of offers that growth is shared out among; none unless the policy asks for it."""
    rules = board.policy.balancing
    if not rules.enabled:
        return []
    likeness = Likeness(
        memory_ratio=rules.memory_ratio,
        allocatable_ratio=rules.allocatable_ratio,
        free_ratio=rules.free_ratio,
        ignored_labels=frozenset(rules.ignored_labels),
        only_labels=rules.labels,
    )
    found: list[list[int]] = []
    for index, offer in enumerate(board.offers):
        home = next((group for group in found if likeness.holds(board.offers[group[0]], offer)), None)
        if home is None:
            found.append([index])
        elif offer.exists and board.offers[home[0]].exists and not offer.zero_or_max:
            home.append(index)
    return [group for group in found if len(group) > 1]


def _shared(board: Board, draft: Draft, siblings: Sequence[int], meetings: Meetings) -> Draft:
    movable = [one for one in draft.batches if one.offer in siblings and _is_free(board, one, siblings, meetings)]
    nodes = sum(one.nodes for one in movable)
    if not nodes:
        return draft
    fixed = [one for one in draft.batches if one not in movable]
    held = Draft(batches=tuple(fixed)).nodes_of(len(board.offers))
    sizes = [board.offers[one].size + int(held[one]) for one in siblings]
    rooms = [int(board.available[one] - held[one]) for one in siblings]
    given = shared_out(nodes, sizes, rooms)
    if sum(given) < nodes:
        return draft
    even = replace(draft, batches=(*fixed, *_dealt(movable, dict(zip(siblings, given, strict=True)))))
    # Alike is not equal: nodes a little larger may be more than the cluster may have.
    within = (even.nodes_of(len(board.offers)) @ board.limits.use <= board.limits.room).all()
    return even if within else draft


def _dealt(batches: Sequence[Batch], wanted: dict[int, int]) -> list[Batch]:
    found: list[Batch] = []
    for batch in batches:
        left = batch.nodes
        for offer, more in wanted.items():
            step = min(left, more)
            if step:
                found.append(replace(batch, offer=offer, nodes=step))
                wanted[offer] -= step
                left -= step
    return found


def _is_free(board: Board, batch: Batch, siblings: Sequence[int], meetings: Meetings) -> bool:
    """Whether its pods may be in any of the groups: with room there, allowed, and of no concern beyond their node."""
    asked = sum(board.requests[number] * pods for number, pods in batch.content.items())
    if not batch.content or (board.capacity[list(siblings)] < asked).any():
        return False
    return all(
        board.allowed[list(siblings), number].all() and not _concerns_others(board, number, meetings)
        for number in batch.content
    )


def _concerns_others(board: Board, number: int, meetings: Meetings) -> bool:
    """Whether it looks at pods on other nodes, or somebody who waits looks at it."""
    one, party = board.table.classes[number], meetings.party_of[number]
    if any(spread.key != HOSTNAME for spread in board.rules.spreads(number)) or one.has_affinity:
        return True
    avoided = [key for keys in meetings.shunned[party].values() for key in keys]
    if one.has_anti_affinity or board.arrays.neighbours.avoider_rows:
        known = board.rules.companions(number)
        avoided += [*known.avoided_keys, *known.avoiding_keys]
    return (
        any(key != HOSTNAME for key in avoided)
        or any(party in wanted for wanted in meetings.company)
        or any(party in counted for other, counted in enumerate(meetings.counted) if other != party)
    )
