"""Everything a turn tells as Events: `events_of(turn)`, pure; and who hands it to the recorder.

The same thing is told once in five minutes, unless the operator wants every one (`--record-duplicated-events`); beyond
that the recorder counts up what is the same within its window, as every controller's does.

One thing told as an Event, and whom it is about. Data and references only; `events` decides what is told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import structs

from plimsoll.kube.recorder import EventType
from plimsoll.nodes.reporting.events.requests import request_events
from plimsoll.nodes.reporting.events.scale_down import scale_down_events
from plimsoll.nodes.reporting.events.scale_up import scale_up_events
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.owners import controller_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.loop_result import LoopResult
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import PodKey


CLUSTER_UNHEALTHY: Final = "ClusterUnhealthy"
_AGAIN_AFTER: Final = timedelta(minutes=5)
_WHATEVER_IS_SAID: Final = frozenset({"ConsumingPodsUnschedulable", "ProvisioningRequestMissing"})
"""Told once of the same thing even if the words differ: they count pods, which come and go."""


def events_of(turn: LoopResult, lately: Container[EventMessage] = ()) -> tuple[EventMessage, ...]:
    """In the order in which things happened. `lately`: what need not be among the few that one turn tells."""
    return (*_health(turn), *scale_up_events(turn, lately), *request_events(turn), *scale_down_events(turn))


def _health(turn: LoopResult) -> Iterator[EventMessage]:
    ended = turn.ended_early
    if ended is not None and ended.code == CLUSTER_UNHEALTHY:
        message = f"Cluster is unhealthy: {ended.message}"
        yield EventMessage(about=status_map(turn.policy), type=WARNING, reason=CLUSTER_UNHEALTHY, message=message)


class Recorder(Protocol):
    """What an emitter needs of `kube.recorder.EventRecorder`."""

    def record(self, about: ObjectReference, event_type: EventType, *, reason: str, message: str) -> None: ...


class EventEmitter:
    """Remembers what was told lately. Times are those of turns."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lately: dict[EventMessage, datetime] = {}
        self.status_uid = ""
        """Of the status ConfigMap, once it is known: `kubectl describe` shows Events of this very object only."""

    def emit(self, turn: LoopResult) -> None:
        status = status_map(turn.policy)
        with_uid = structs.replace(status, uid=self.status_uid)
        for one in self._news(turn):
            about = with_uid if one.about == status else one.about
            self._recorder.record(about, one.type, reason=one.reason, message=one.message)

    def _news(self, turn: LoopResult) -> list[EventMessage]:
        if turn.policy.operation.duplicated_events:
            return list(events_of(turn))
        self._lately = {one: at for one, at in self._lately.items() if turn.at - at < _AGAIN_AFTER}
        news: list[EventMessage] = []
        for one in events_of(turn, self._lately):
            if (key := _same(one)) not in self._lately:
                self._lately[key] = turn.at
                news.append(one)
        return news


def _same(one: EventMessage) -> EventMessage:
    """What is not told twice."""
    return replace(one, message="") if one.reason in _WHATEVER_IS_SAID else one


NORMAL: Final = EventType.NORMAL
WARNING: Final = EventType.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMessage:
    """An Event before it is one."""

    about: ObjectReference
    type: EventType = NORMAL
    reason: str
    message: str


def status_map(policy: Policy) -> ObjectReference:
    """What is true of the whole is told of the status ConfigMap, as Cluster Autoscaler does."""
    return config_map(policy, policy.operation.status_name)


def config_map(policy: Policy, name: str) -> ObjectReference:
    return ObjectReference(api_version="v1", kind="ConfigMap", namespace=policy.operation.namespace, name=name)


def about_pod(pod: Pod, name: str = "") -> ObjectReference:
    """The pod, or one just like it of another name, whose uid nobody knows."""
    meta = pod.metadata
    is_itself = not name or name == meta.name
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=meta.namespace,
        name=name or meta.name,
        uid=meta.uid if is_itself else "",
    )


def about_placed(key: PodKey, node: str, snapshot: Snapshot | None) -> ObjectReference:
    """A pod on a node of the snapshot."""
    state = None if snapshot is None else snapshot.view.node(node)
    placed = None if state is None else state.pods.get(key)
    uid = "" if placed is None else placed.pod.metadata.uid
    return ObjectReference(api_version="v1", kind="Pod", namespace=key.namespace, name=key.name, uid=uid)


def about_node(name: str, snapshot: Snapshot | None) -> ObjectReference:
    state = None if snapshot is None else snapshot.view.node(name)
    uid = "" if state is None else state.node.metadata.uid
    return ObjectReference(api_version="v1", kind="Node", name=name, uid=uid)


def about_owner(pod: Pod) -> ObjectReference | None:
    """The controller of a pod; None for a pod that stands alone."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return None
    return ObjectReference(
        api_version=owner.api_version,
        kind=owner.kind,
        namespace=pod.metadata.namespace,
        name=owner.name,
        uid=owner.uid,
    )
