"""Cancels scale-ups of ProvisioningRequests that were deleted before their nodes came (docs/design/nodes.md 3.8).

Deleting a request cancels it. Nodes that the cloud provider has not created yet and no other request was given are not
waited for. The tracker only knows what this process observed: after a crash such nodes come, and are scaled down like
any unneeded node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import Unreachable
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.requests.booking.idle_nodes import count_idle_upcoming_nodes, is_upcoming_node
from plimsoll.nodes.requests.intents import count_added_before
from plimsoll.nodes.requests.model import Phase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.providers.ports import Group, Provider
    from plimsoll.nodes.requests.booking.booking import BookingResult
    from plimsoll.nodes.requests.model import RequestView

log = structlog.get_logger(__name__)

_SCALING_UP: Final = (Phase.HELD, Phase.ARRIVING, Phase.INTENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledRequest:
    """A deleted request, and the nodes that were requested for it."""

    request: str
    nodes: Mapping[str, int] = field(default_factory=dict)


class CancellationTracker:
    """Tracks requests with nodes under way and notices when they are deleted."""

    def __init__(self, provider: Provider, deleter: InstanceDeleter) -> None:
        self._provider = provider
        self._deleter = deleter
        self._known: dict[str, CancelledRequest] = {}
        """By uid: requests with a scale-up under way, as last observed."""
        self._gone: list[CancelledRequest] = []

    def has_deleted(self, requests: Iterable[RequestView]) -> bool:
        """Whether a request with nodes under way was deleted since the last observation."""
        return not self._known.keys() <= {request.request.metadata.uid for request in requests}

    def observe(self, requests: Iterable[RequestView], booked: BookingResult, sizes: Mapping[str, int]) -> None:
        """Record all current requests. A request with nodes under way that is gone was cancelled."""
        now = {request.request.metadata.uid: request for request in requests}
        self._gone += [cancelled for uid, cancelled in self._known.items() if uid not in now]
        upcoming = {
            uid: _count_upcoming_nodes(request, booked, sizes)
            for uid, request in now.items()
            if request.phase in _SCALING_UP
        }
        self._known = {uid: cancelled for uid, cancelled in upcoming.items() if any(cancelled.nodes.values())}

    async def release(self, snapshot: Snapshot, taken: Collection[str]) -> dict[str, int]:
        """Stop waiting for the nodes of cancelled requests; returns them by group.

        `taken`: nodes that others were given.
        """
        gone, self._gone = self._gone, []
        if not gone:
            return {}
        idle = count_idle_upcoming_nodes(snapshot, taken)
        found: dict[str, int] = {}
        try:
            groups = {group.id: group for group in await self._provider.node_groups()}
            for cancelled in gone:
                for name, nodes in cancelled.nodes.items():
                    most = min(nodes, idle.get(name, 0))
                    if most and name in groups:
                        given = await self._lower(groups[name], most)
                        idle[name] -= given
                        found[name] = found.get(name, 0) + given
        except Unreachable as error:
            log.warning("provreq.not_given_back", problem=str(error))
            self._gone = gone
        return {name: nodes for name, nodes in found.items() if nodes}

    async def _lower(self, group: Group, most: int) -> int:
        """Lower the target by what the provider has not created; running machines stay."""
        target = await group.target_size()
        running = sum(instance.state is not InstanceState.CREATING for instance in await group.nodes())
        by = min(most, target - running)
        if by <= 0:
            return 0
        failure = await self._deleter.lower_target(group, by, expected=target)
        if failure is not None:
            log.warning("provreq.not_given_back", group=group.id, nodes=by, problem=failure.message)
            return 0
        log.info("provreq.given_back", group=group.id, nodes=by)
        return by


def _count_upcoming_nodes(view: RequestView, booked: BookingResult, sizes: Mapping[str, int]) -> CancelledRequest:
    """Upcoming nodes that its pods would run on; those shared with others stay."""
    if view.phase is Phase.INTENDED:
        return CancelledRequest(request=view.name, nodes=count_added_before(view, sizes))
    snapshot = booked.snapshot
    coming = Counter(
        snapshot.group_of[name] for name in booked.by_request.get(view.name, ()) if is_upcoming_node(name, snapshot)
    )
    return CancelledRequest(request=view.name, nodes=coming)
