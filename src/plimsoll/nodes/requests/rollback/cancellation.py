"""Cancels scale-ups of ProvisioningRequests that ended before their nodes came (docs/design/nodes.md 3.8).

A request is cancelled when it is deleted, fails, or its booking ends. Nodes that have not joined and that no other
request or pod was given are given back: those that the provider has not created, and machines that are booting. The
tracker only knows what this process observed: after a crash such nodes come, and are scaled down when unneeded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.requests.booking.idle_nodes import count_idle_upcoming_nodes, is_upcoming_node
from plimsoll.nodes.requests.intents import count_added_before
from plimsoll.nodes.requests.model import Phase
from plimsoll.nodes.requests.rollback.recovery import is_rolling_back

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.requests.booking.booking import BookingResult
    from plimsoll.nodes.requests.model import RequestView
    from plimsoll.nodes.requests.rollback.rollback import RollbackContext, RollbackExecutor

_SCALING_UP: Final = (Phase.HELD, Phase.ARRIVING, Phase.INTENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledRequest:
    """A deleted request, and the nodes that were requested for it."""

    request: str
    nodes: Mapping[str, int] = field(default_factory=dict)


class CancellationTracker:
    """Tracks requests with nodes under way and notices when they are deleted, fail, or are over in another way."""

    def __init__(self, executor: RollbackExecutor) -> None:
        self._executor = executor
        self._known: dict[str, CancelledRequest] = {}
        """By uid: requests with a scale-up under way, as last observed."""
        self._gone: list[CancelledRequest] = []

    def has_cancelled(self, requests: Iterable[RequestView]) -> bool:
        """Whether a request with nodes under way was cancelled since the last observation."""
        return not self._known.keys() <= _find_open(requests).keys()

    def observe(self, requests: Iterable[RequestView], booked: BookingResult, sizes: Mapping[str, int]) -> None:
        """Record all current requests, without those that ended in this loop.

        A request with nodes under way that is gone or over was cancelled.
        """
        now = _find_open(requests)
        self._gone += [cancelled for uid, cancelled in self._known.items() if uid not in now]
        upcoming = {
            uid: _count_upcoming_nodes(request, booked, sizes)
            for uid, request in now.items()
            if request.phase in _SCALING_UP and not is_rolling_back(request)
        }
        self._known = {uid: cancelled for uid, cancelled in upcoming.items() if any(cancelled.nodes.values())}

    async def release(self, snapshot: Snapshot, taken: Collection[str], context: RollbackContext) -> Mapping[str, int]:
        """Give back the nodes of cancelled requests that have not joined; returns them by group.

        `taken`: nodes that others were given. What a provider refuses is tried again in the next loop.
        """
        gone, self._gone = self._gone, []
        idle = count_idle_upcoming_nodes(snapshot, taken)
        wanted: Counter[str] = Counter()
        for cancelled in gone:
            wanted.update(cancelled.nodes)
        wanted = Counter({group: min(nodes, idle.get(group, 0)) for group, nodes in wanted.items()})
        if not any(wanted.values()):
            return {}
        released = await self._executor.release_booting(wanted, context)
        if not released.is_done:
            left = {group: nodes - released.nodes.get(group, 0) for group, nodes in wanted.items()}
            names = ", ".join(cancelled.request for cancelled in gone)
            self._gone = [CancelledRequest(request=names, nodes=left)]
        return {group: nodes for group, nodes in released.nodes.items() if nodes}


def _find_open(requests: Iterable[RequestView]) -> dict[str, RequestView]:
    """Requests that are not over, by uid."""
    return {request.request.metadata.uid: request for request in requests if request.phase is not Phase.OVER}


def _count_upcoming_nodes(view: RequestView, booked: BookingResult, sizes: Mapping[str, int]) -> CancelledRequest:
    """Upcoming nodes that its pods would run on; those shared with others stay."""
    if view.phase is Phase.INTENDED:
        return CancelledRequest(request=view.name, nodes=count_added_before(view, sizes))
    snapshot = booked.snapshot
    coming = Counter(
        snapshot.group_of[name] for name in booked.by_request.get(view.name, ()) if is_upcoming_node(name, snapshot)
    )
    return CancelledRequest(request=view.name, nodes=coming)
