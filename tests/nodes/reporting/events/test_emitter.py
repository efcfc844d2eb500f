"""Events on their way to the recorder: the same once in five minutes, and about the very ConfigMap that is there."""

from datetime import timedelta
from typing import Any

from plimsoll.core.plans import Reason
from plimsoll.kube.recorder import EventRecorder, EventType
from plimsoll.nodes.model.reasons import CONSUMING
from plimsoll.nodes.reporting.events.emitter import EventEmitter
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.api.provisioning_requests import CONSUME_ANNOTATIONS
from tests.kube.embedded_api import EmbeddedApi
from tests.nodes.planning.builders import NOON
from tests.nodes.reporting.loop_results import (
    filtered_pod,
    later,
    loop_result,
    option,
    scale_up,
    scaled_up_loop,
    unschedulable_loop,
    waiting,
)

UNHEALTHY = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached")


class FakeRecorder:
    """A recorder that only listens."""

    def __init__(self) -> None:
        self.events: list[tuple[ObjectReference, str, str]] = []

    def record(self, about: ObjectReference, _type: EventType, *, reason: str, message: str) -> None:
        self.events.append((about, reason, message))


def heard_after(*seconds: float, **options: Any) -> list[int]:
    """How many Events there are in all after turns at these times, each of which says the same."""
    heard, counts = FakeRecorder(), []
    emitter = EventEmitter(heard)
    same = unschedulable_loop(waiting("p"), reasons=(UNHEALTHY,), options=options)
    for second in seconds:
        emitter.emit(later(same, at=NOON + timedelta(seconds=second)))
        counts.append(len(heard.events))
    return counts


def test_every_loop_other_pods_get_the_event_that_they_are_ignored_n10():
    heard, counts = FakeRecorder(), []
    emitter = EventEmitter(heard)
    consuming = (filtered_pod(f"p{number}", CONSUMING, **{CONSUME_ANNOTATIONS[0]: "pr-x"}) for number in range(120))
    same = loop_result(filtered_pods=tuple(consuming))
    for second in (0, 10, 20, 30, 300):
        emitter.emit(later(same, at=NOON + timedelta(seconds=second)))
        counts.append(len(heard.events))
    assert counts == [50, 100, 120, 120, 170]
    assert len({about.name for about, _, _ in heard.events}) == 120


def test_the_same_is_reported_once_in_five_minutes():
    assert heard_after(0, 10, 299, 300, 310) == [1, 1, 1, 2, 2]


def test_unless_the_operator_wants_every_one():
    assert heard_after(0, 10, 20, record_duplicated_events=True) == [1, 2, 3]


def test_another_message_is_another_event():
    heard = FakeRecorder()
    emitter = EventEmitter(heard)
    emitter.emit(unschedulable_loop(waiting("p"), reasons=(UNHEALTHY,)))
    emitter.emit(unschedulable_loop(waiting("p"), reasons=(Reason(code="NoRoom", message="no room is left"),)))

    assert len(heard.events) == 2


def test_events_of_the_whole_are_about_the_config_map_that_is_there():
    heard = FakeRecorder()
    emitter = EventEmitter(heard)
    emitter.status_uid = "uid-of-the-map"
    emitter.emit(scaled_up_loop(scale_up(option("g"), waiting("p")), pending=(waiting("p"),)))

    uids = {about.kind: about.uid for about, _, _ in heard.events}
    assert uids == {"ConfigMap": "uid-of-the-map", "Pod": "uid-of-p"}


def test_events_reach_a_server():
    with EmbeddedApi() as world:
        recorder = EventRecorder(
            world.client, EventSource(component="cluster-autoscaler"), clock=world.clock, entropy=world.entropy
        )
        world.run.spawn(recorder.run())
        EventEmitter(recorder).emit(scaled_up_loop(scale_up(option("g"), waiting("p")), pending=(waiting("p"),)))
        world.run.settle()
        events = world.ask("GET", "/api/v1/events")["items"]

    reasons = sorted(event["reason"] for event in events)
    assert reasons == ["ScaledUpGroup", "ScaledUpGroup", "TriggeredScaleUp"]
