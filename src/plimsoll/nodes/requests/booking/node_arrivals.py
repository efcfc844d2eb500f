"""Whether the nodes of ProvisioningRequests arrived and still exist (docs/design/nodes.md 3.4, 4.3). Pure.

Cluster state reports failed scale-ups by group, not by request. Failed nodes are attributed to the requests that were
answered last, as far as their capacity is incomplete. Capacity that is missing for several loops in a row without
upcoming nodes is lost; once all nodes were there, upcoming nodes do not count as an explanation. The state kept:
failures not yet attributed, requests that were complete, and for how many loops a booking found no room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.requests.booking.idle_nodes import is_upcoming_node
from plimsoll.nodes.requests.lifecycle import compute_expiry_time
from plimsoll.nodes.requests.model import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from plimsoll.nodes.cluster_state.changes import Changes, FailedScaleUp
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.requests.booking.booking import BookingResult
    from plimsoll.nodes.requests.model import RequestView

_LOST_AFTER: Final = 3
"""Consecutive loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingCapacity:
    """A request whose capacity does not come or is gone. `failure` None: the cause is unknown."""

    view: RequestView
    message: str
    failure: FailedScaleUp | None = None


class NodeArrivals:
    """Tracks the arrival of nodes across loops."""

    def __init__(self) -> None:
        self._failed: list[FailedScaleUp] = []
        self._short: dict[str, int] = {}
        """By uid: consecutive loops in which the booking found too little room."""
        self._complete: set[str] = set()
        """Uids of requests whose nodes were once all there."""

    def record(self, changes: Changes) -> None:
        """Record the changes of every loop that read the cloud provider, even if it ends before requests are served."""
        self._failed += changes.failed

    def find_missing(self, held: Sequence[RequestView], booked: BookingResult, now: datetime) -> list[MissingCapacity]:
        """The requests of `held` whose capacity is missing; consumes the recorded failures."""
        failed, self._failed = self._failed, []
        waiting = [view for view in held if _is_waiting(view, booked)]
        found: dict[str, MissingCapacity] = {}
        for failure in failed:
            for view in _attribute_failure(failure, [view for view in waiting if view.name not in found]):
                found[view.name] = MissingCapacity(view=view, message=failure.reason.message, failure=failure)
        for request in self._find_lost(held, booked):
            found.setdefault(request.name, MissingCapacity(view=request, message=self._explain_loss(request, booked)))
        short = {view.request.metadata.uid for view in waiting}
        self._complete &= short
        self._complete |= {view.request.metadata.uid for view in held} - short
        for request_view in waiting:
            if (
                request_view.phase is Phase.ARRIVING
                and (end := compute_expiry_time(request_view)) is not None
                and now > end
            ):
                message = (
                    f"not all of its nodes have joined within {request_view.parameters.valid_s:g} s of its creation"
                )
                found.setdefault(request_view.name, MissingCapacity(view=request_view, message=message))
        return list(found.values())

    def _find_lost(self, held: Iterable[RequestView], booked: BookingResult) -> list[RequestView]:
        before, self._short = self._short, {}
        lost: list[RequestView] = []
        for request in held:
            uid = request.request.metadata.uid
            if uid not in self._complete and _has_upcoming_nodes(request, booked.snapshot):
                continue
            if not booked.unbookable.get(request.name) and not (
                uid in self._complete and _count_on_upcoming_nodes(request, booked)
            ):
                continue
            self._short[uid] = before.get(uid, 0) + 1
            if self._short[uid] >= _LOST_AFTER:
                lost.append(request)
        return lost

    def _explain_loss(self, view: RequestView, booked: BookingResult) -> str:
        if view.request.metadata.uid in self._complete:
            short = booked.unbookable.get(view.name, 0) + _count_on_upcoming_nodes(view, booked)
            room = f"no room for {short} of {view.total} pods for {_LOST_AFTER} loop iterations"
            return f"nodes that were there are gone: {room}"
        short = booked.unbookable[view.name]
        return f"no room for {short} of {view.total} pods for {_LOST_AFTER} loop iterations, and no node is on its way"


def find_arrived(held: Iterable[RequestView], booked: BookingResult) -> list[RequestView]:
    """Requests that waited for nodes and now have all of them."""
    return [request for request in held if request.phase is Phase.ARRIVING and not _is_waiting(request, booked)]


def _is_waiting(view: RequestView, booked: BookingResult) -> bool:
    """Whether some of its pods have no existing node."""
    nodes = booked.by_request.get(view.name, {})
    return view.name in booked.unbookable or any(is_upcoming_node(name, booked.snapshot) for name in nodes)


def _count_on_upcoming_nodes(view: RequestView, booked: BookingResult) -> int:
    """Its pods that are booked on upcoming nodes."""
    nodes = booked.by_request.get(view.name, {})
    return sum(pods for name, pods in nodes.items() if is_upcoming_node(name, booked.snapshot))


def _has_upcoming_nodes(view: RequestView, snapshot: Snapshot) -> bool:
    """Whether a group scaled up for it has upcoming nodes."""
    groups = {group for group, nodes in view.details.node_groups.items() if nodes}
    return any(group in groups and is_upcoming_node(name, snapshot) for name, group in snapshot.group_of.items())


def _attribute_failure(failure: FailedScaleUp, waiting: Sequence[RequestView]) -> list[RequestView]:
    """The last requests with nodes in the group, until the failed nodes are accounted for."""
    found: list[RequestView] = []
    left = failure.nodes
    for request in reversed(waiting):
        nodes = request.details.node_groups.get(failure.group, 0)
        if nodes and left > 0:
            found.append(request)
            left -= nodes
    return found
