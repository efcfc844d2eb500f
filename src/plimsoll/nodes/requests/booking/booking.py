"""Bookings: capacity that ProvisioningRequests were given, reserved for them (docs/design/nodes.md 4.3). Pure.

`book` places the pods that a request still has to bring on nodes as if they ran there, on existing or upcoming nodes:
nothing else plans with that room, and the nodes do not count as empty. Pods of the request that run already are not
booked again. `BookingHints`, the result of earlier loops, only say which nodes to try first: a new process packs from
scratch. Bookings that the hints repeat come before pods that are not booked yet: a request keeps its booking even if an
older request lacks room.

`answer_checks` finds room for requests that only check capacity.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.model.planner_cache import PlannerCache
from plimsoll.nodes.planning.requests.check_capacity import QueuedRequest, check_queued_requests
from plimsoll.nodes.planning.requests.reservations import ReservedNode, reserve
from plimsoll.nodes.planning.scaleup.nominations import merge_places, place_nominated
from plimsoll.nodes.planning.state.placeholder_pods import PlaceholderPods
from plimsoll.nodes.requests.booking.consumption import Consumption, PodSetMatcher, count_consumption
from plimsoll.nodes.requests.booking.idle_nodes import is_upcoming_node
from plimsoll.nodes.requests.model import ClassKind

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.nodes.planning.requests.check_queue import CheckResult
    from plimsoll.nodes.requests.model import RequestView

    NodePlacements = Mapping[str, Mapping[str, int]]
    """By node: pods by key of their pending entry, NAMESPACE/NAME/INDEX."""


class _Known:
    """Caches. They change how long a booking takes, never its result."""

    def __init__(self) -> None:
        self.memory = PlannerCache()
        self.placeholders = PlaceholderPods()
        self.matches = PodSetMatcher()


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingHints:
    """Where pods of requests were last booked or planned."""

    fillings: tuple[ReservedNode, ...] = ()
    """No node occurs twice."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """By key: the uid of its request; a new request of the same name does not inherit the hints."""
    known: _Known = field(default_factory=_Known, compare=False, repr=False)

    def with_plan(
        self,
        requests: Iterable[RequestView],
        *,
        existing: NodePlacements | None = None,
        scaled_up: Iterable[tuple[str, int, GroupScaleUp]] = (),
        group_of: Mapping[str, str] | None = None,
    ) -> BookingHints:
        """The hints with what a loop found for these requests: room on nodes, and nodes that were added.

        `scaled_up`: provider group, nodes added, and the planned scale-up they belong to.
        """
        owners = {pending.key: view.request.metadata.uid for view in requests for pending in view.pods}
        added = {node: mine for node, pods in (existing or {}).items() if (mine := _select_pods(pods, owners))}
        reserved = {filling.node: filling for filling in self.fillings if filling.node}
        for node, pods in added.items():
            before = reserved[node].pods if node in reserved else {}
            group = reserved[node].group if node in reserved else (group_of or {}).get(node, "")
            reserved[node] = ReservedNode(group=group, node=node, pods=merge_places({node: before}, {node: pods})[node])
        coming = [filling for filling in self.fillings if not filling.node]
        patterns: dict[int, Iterator[Mapping[str, int]]] = {}
        for group, nodes, scale_up in scaled_up:
            of_nodes = patterns.setdefault(id(scale_up), _list_node_pods(scale_up))
            fillings = [_select_pods(next(of_nodes, {}), owners) for _ in range(nodes)]
            coming += [ReservedNode(group=group, pods=pods) for pods in fillings if pods]
        return replace(self, fillings=(*reserved.values(), *coming), owners={**self.owners, **owners})

    def without_upcoming(self, snapshot: Snapshot) -> BookingHints:
        """The hints without upcoming nodes: what was to go there is packed again."""
        return replace(
            self,
            fillings=tuple(
                filling for filling in self.fillings if filling.node and not is_upcoming_node(filling.node, snapshot)
            ),
        )

    def select_for(self, requests: Iterable[RequestView]) -> tuple[ReservedNode, ...]:
        """The part of the hints that belongs to these requests."""
        uids = {pending.key: view.request.metadata.uid for view in requests for pending in view.pods}
        if all(uids.get(key) == uid for key, uid in self.owners.items()):
            return self.fillings
        mine = {key for key, uid in uids.items() if self.owners.get(key) == uid}
        left = (replace(filling, pods=_select_pods(filling.pods, mine)) for filling in self.fillings)
        return tuple(filling for filling in left if filling.pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingResult:
    """The cluster with bookings, and the booking of each request."""

    snapshot: Snapshot
    by_request: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By request: pods by node."""
    unbookable: Mapping[str, int] = field(default_factory=dict)
    """By request: pods without room; requests with room for all are absent."""
    consumed: frozenset[str] = frozenset()
    """Names of requests whose pods all run."""
    consumption: Mapping[str, Consumption] = field(default_factory=dict)
    hints: BookingHints = field(default_factory=BookingHints)

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for pods in self.by_request.values() for node in pods)


def book(snapshot: Snapshot, held: Sequence[RequestView], hints: BookingHints, policy: Policy) -> BookingResult:
    """Book the capacity of requests that have theirs, the oldest answer first."""
    if not held:
        return BookingResult(snapshot=snapshot)
    run = count_consumption(snapshot.view, held, hints.known.matches)
    consumed = frozenset(name for name, consumption in run.items() if consumption.is_complete)
    booking = [request for request in held if request.name not in consumed and request.parameters.reserves]
    wanted = [pods for request in booking for pods in _list_remaining(request, run[request.name])]
    # Room nominated for ordinary pods is planned with later: it is not free.
    taken = place_nominated(snapshot)
    places = reserve(taken, policy, wanted, before=hints.select_for(booking), cache=hints.known.memory)
    view = hints.known.placeholders.add_to(snapshot.view, places.by_node, wanted)
    return BookingResult(
        snapshot=replace(snapshot, view=view),
        by_request=_group_by_request(places.by_node, wanted),
        unbookable=_sum_by_request(places.unplaced, wanted),
        consumed=consumed,
        consumption=run,
        hints=_build_hints(hints, places.by_node, booking, snapshot.group_of),
    )


def answer_checks(
    snapshot: Snapshot, queue: Sequence[RequestView], policy: Policy
) -> tuple[Snapshot, dict[str, CheckResult]]:
    """Whether requests that only check capacity have room, and the snapshot with what they reserve.

    `queue`: all requests that wait for an answer. Requests that may add nodes and stand further in front take room on
    existing nodes first.
    """
    unanswered = [
        QueuedRequest(
            name=request.name,
            pods=request.pods,
            can_scale_up=request.class_kind is ClassKind.ATOMIC,
            reserves=request.parameters.reserves,
        )
        for request in queue
        if request.pods and request.problem is None and request.class_kind is not ClassKind.REGISTERED
    ]
    return check_queued_requests(snapshot, policy, unanswered)


def _list_remaining(view: RequestView, run: Consumption) -> list[PendingPods]:
    return [replace(pending, count=left) for pending, left in zip(view.pods, run.remaining, strict=False) if left]


def _group_by_request(places: NodePlacements, wanted: Iterable[PendingPods]) -> dict[str, dict[str, int]]:
    request_of = {pending.key: pending.bundle for pending in wanted}
    found: dict[str, dict[str, int]] = {}
    for node, pods in places.items():
        for key, count in pods.items():
            nodes = found.setdefault(request_of[key], {})
            nodes[node] = nodes.get(node, 0) + count
    return found


def _sum_by_request(short: Mapping[str, int], wanted: Iterable[PendingPods]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pending in wanted:
        if left := short.get(pending.key, 0):
            found[pending.bundle] = found.get(pending.bundle, 0) + left
    return found


def _build_hints(
    hints: BookingHints, places: NodePlacements, booking: Iterable[RequestView], group_of: Mapping[str, str]
) -> BookingHints:
    """Only current bookings; finished and deleted requests leave no trace."""
    fillings = tuple(ReservedNode(group=group_of.get(node, ""), node=node, pods=pods) for node, pods in places.items())
    owners = {pending.key: view.request.metadata.uid for view in booking for pending in view.pods}
    return replace(hints, fillings=fillings, owners=owners)


def _list_node_pods(scale_up: GroupScaleUp) -> Iterator[Mapping[str, int]]:
    return (pattern.pods for pattern in scale_up.patterns for _ in range(pattern.nodes))


def _select_pods(pods: Mapping[str, int], keys: Container[str]) -> dict[str, int]:
    return {key: count for key, count in pods.items() if key in keys}
