"""Everything that stands in one pod's way: on nodes that are there, and on every kind of node that could be added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.nodes.planning.boards import Board
from plimsoll.nodes.planning.verifying import planned_node
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.feasibility import prepared
from plimsoll.scheduling.view import ClusterView, NodeState, PlacedPod

if TYPE_CHECKING:
    from plimsoll.nodes.planning.offers import Offer
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.policy import Policy
    from plimsoll.objects.pods import Pod


def explained(snapshot: Snapshot, policy: Policy, key: str) -> dict[str, Any]:
    """Of the pending entry with this key, as plain data."""
    board = Board.of(snapshot, policy)
    index = next(index for index, one in enumerate(snapshot.pending) if one.key == key)
    number = int(board.table.class_of[index])
    one = board.table.classes[number]
    why = board.rules.why_not(number)
    return {
        "key": key,
        "asks": str(one.demand) if one.problem is None else "",
        "problem": str(one.problem) if one.problem is not None else "",
        "nodes": {"total": why.nodes, "fitting": int(board.rules.fits(number).sum()), "message": why.message},
        "offers": [
            _offer(offer, one.pod, snapshot.view, allowed=bool(board.allowed[place, number]))
            for place, offer in enumerate(board.offers)
        ],
        "notOffered": [
            {"group": each.group, "machineType": each.machine_type, "code": each.code, "reason": each.reason}
            for each in board.offered.not_offered
        ],
    }


def _offer(offer: Offer, pod: Pod, view: ClusterView, *, allowed: bool) -> dict[str, Any]:
    node = planned_node(offer, 0)
    place = NodeState(node).with_pods(PlacedPod(daemon) for daemon in offer.daemons)
    around = view.with_node(node)
    reasons = [str(refusal) for refusal in prepared(pod, around, profile=DEFAULT_PROFILE).refusals(place)]
    if not reasons and not allowed:
        reasons = ["made for other pods, or kept for those that ask for it"]
    return {
        "group": offer.group,
        "machineType": offer.machine_type,
        "zone": offer.zone,
        "exists": offer.exists,
        "pricePerHour": offer.price_per_hour,
        "fits": not reasons,
        "reasons": reasons,
    }
