"""The recorder against a whole API server: what stands there, what was dropped, and that no caller waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.errors import AnswerLost, NotSent
from plimsoll.kube.recorder import CorrelationSettings, EventRecorder, EventType, RecorderSettings, build_reference
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.api.meta import ObjectMeta, ObjectReference
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.registry import KINDS
from plimsoll.runtime.backoff import Backoff
from tests.faults import Answer5xx, Fault, Flaky, LoseAnswers
from tests.kube.embedded_api import EmbeddedApi
from tests.local.apiserver.builders import GUEST

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from plimsoll.kube.client import Client

POD = ObjectReference(api_version="v1", kind="Pod", namespace="here", name="p", uid="u1")
SOURCE = EventSource(component="plimsoll-nodes", host="host-1")
TALKATIVE = CorrelationSettings(burst=10_000)


class RecorderHarness:
    """A recorder at work on a server."""

    def __init__(self, *, through: Fault | None = None, client: Client | None = None, **settings: Any) -> None:
        self.world = EmbeddedApi(through=(through or Fault()).wrap)
        self._client = client
        self._settings = RecorderSettings(**settings)

    def __enter__(self) -> Self:
        self.world.__enter__()
        self.world.namespace("here")
        self.recorder = self.new_recorder(self._client or self.world.client)
        self.running = self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.world.__exit__(*error)

    def new_recorder(self, client: Client) -> EventRecorder:
        world = self.world
        return EventRecorder(client, SOURCE, clock=world.clock, entropy=world.entropy, settings=self._settings)

    def start(self) -> asyncio.Task[None]:
        return self.world.run.spawn(self.recorder.run())

    def emit(self, message: str = "m", *, about: ObjectReference = POD, reason: str = "Scaled", **more: Any) -> None:
        self.recorder.record(about, EventType.NORMAL, reason=reason, message=message, **more)

    def events(self, namespace: str = "here") -> list[dict[str, Any]]:
        items = self.world.ask("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
        return sorted(items, key=lambda item: item["metadata"]["name"])

    @property
    def counts(self) -> list[int]:
        return [event["count"] for event in self.events()]


@pytest.fixture
def harness() -> Iterator[RecorderHarness]:
    with RecorderHarness() as harness:
        yield harness


def test_an_event_names_object_reason_time_and_reporter(harness: RecorderHarness):
    harness.recorder.record(POD, EventType.WARNING, reason="ScaleUpFailed", message="no machine", action="ScaleUp")
    harness.world.run.settle()
    (event,) = harness.events()
    assert event["metadata"]["name"] == f"p.{1767225600 * 10**9:x}"
    del event["metadata"]
    assert event == {
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "here", "name": "p", "uid": "u1"},
        "type": "Warning",
        "reason": "ScaleUpFailed",
        "message": "no machine",
        "action": "ScaleUp",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "eventTime": None,
        "source": {"component": "plimsoll-nodes", "host": "host-1"},
        "reportingComponent": "plimsoll-nodes",
        "reportingInstance": "host-1",
    }


def test_the_same_again_counts_up_the_same_object(harness: RecorderHarness):
    for _ in range(3):
        harness.emit()
        harness.world.run.advance_by(60)
    (event,) = harness.events()
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        3,
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:02:00Z",
    )


def test_similar_ones_are_combined_and_keep_the_last_message(harness: RecorderHarness):
    for number in range(12):
        harness.emit(f"m{number}")
    harness.world.run.settle()
    assert sorted(harness.counts) == [1] * 9 + [3]
    (combined,) = [event for event in harness.events() if event["count"] == 3]
    assert combined["message"] == "(combined from similar events): m11"


def test_an_object_without_a_namespace_has_its_events_in_default(harness: RecorderHarness):
    resource = KINDS.find_by_struct(Node)
    assert resource is not None
    harness.emit(about=build_reference(resource, Node(metadata=ObjectMeta(name="n1", uid="n"))))
    harness.world.run.settle()
    (event,) = harness.events("default")
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n"}


def test_texts_that_are_too_long_are_cut(harness: RecorderHarness):
    harness.emit("ü" * 2000, reason="R" * 200, action="A" * 200)
    harness.world.run.settle()
    (event,) = harness.events()
    assert event["message"] == "ü" * 512
    assert (len(event["reason"]), len(event["action"])) == (128, 128)


def test_recording_waits_for_nothing_and_fails_for_nothing(harness: RecorderHarness):
    harness.running.cancel()
    harness.world.run.settle()
    harness.emit("\ud800", about=ObjectReference())
    assert harness.recorder.status.pending == 1


def test_an_event_the_server_forgot_is_made_anew_with_its_count(harness: RecorderHarness):
    harness.emit()
    harness.emit()
    harness.world.run.settle()
    (event,) = harness.events()
    harness.world.ask("DELETE", f"/api/v1/namespaces/here/events/{event['metadata']['name']}")
    harness.emit()
    harness.world.run.settle()
    assert harness.counts == [3]


def test_more_than_the_queue_holds_pushes_the_oldest_out():
    with RecorderHarness(queued=3, correlation=TALKATIVE) as harness:
        for number in range(5):
            harness.emit(f"m{number}")
        harness.world.run.settle()
        assert [event["message"] for event in harness.events()] == ["m2", "m3", "m4"]
        assert harness.recorder.status.dropped == {"overflow": 2}


def test_what_waits_and_is_repeated_is_written_once_with_its_count():
    with RecorderHarness(through=Answer5xx(1, times=3, error=lambda _: NotSent("refused"))) as harness:
        harness.emit("first")
        harness.world.run.settle()
        for _ in range(1000):
            harness.emit("again")
            harness.world.run.advance_by(0.0011)
        assert harness.recorder.status.pending == 1000
        harness.world.run.advance_by(60)
        event = next(event for event in harness.events() if event["message"] == "again")
        assert event["count"] == 1000
        assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")
        assert harness.recorder.status.written == 1001


def test_a_flood_pushes_out_neither_what_is_the_same_nor_what_others_report(harness: RecorderHarness):
    harness.emit("lonely", reason="Lonely")
    for _ in range(5000):
        harness.emit("same", reason="Same")
    for number in range(5000):
        harness.emit(f"m{number}", reason="Different")
    harness.world.run.settle()
    assert harness.recorder.status.dropped == {}
    counts = {(event["reason"], event["message"]): event["count"] for event in harness.events()}
    assert counts == {
        ("Lonely", "lonely"): 1,
        ("Same", "same"): 5000,
        **{("Different", f"m{number}"): 1 for number in range(9)},
        ("Different", "(combined from similar events): m4999"): 4991,
    }


def test_chatter_is_dropped_and_counted(harness: RecorderHarness):
    for _ in range(30):
        harness.emit()
        harness.world.run.settle()
    assert harness.counts == [25]
    assert harness.recorder.status.dropped == {"chatter": 5}


def test_what_we_may_not_write_is_dropped_and_the_rest_goes_on(harness: RecorderHarness):
    guest = harness.new_recorder(harness.world.new_client(token=GUEST))
    harness.world.run.spawn(guest.run())
    for number in range(3):
        guest.record(POD, EventType.NORMAL, reason="R", message=f"m{number}")
    harness.world.run.settle()
    assert guest.status.dropped == {"refused": 3}
    assert harness.events() == []


def test_an_event_in_a_namespace_that_is_gone_is_dropped(harness: RecorderHarness):
    harness.emit(about=ObjectReference(kind="Pod", namespace="elsewhere", name="p"))
    harness.emit()
    harness.world.run.settle()
    assert harness.recorder.status.dropped == {"refused": 1}
    assert harness.counts == [1]


def test_last_words_of_a_namespace_that_goes_are_no_warning(harness: RecorderHarness):
    harness.world.made("/api/v1/namespaces", {"metadata": {"name": "going"}})
    harness.world.ask("DELETE", "/api/v1/namespaces/going")
    with structlog.testing.capture_logs() as logs:
        for namespace in ("going", "gone"):
            harness.emit(about=ObjectReference(kind="Pod", namespace=namespace, name="p"))
        harness.world.run.settle()
    dropped = [
        (log_entry["namespace"], log_entry["log_level"]) for log_entry in logs if log_entry["event"] == "event.dropped"
    ]
    assert dropped == [("going", "debug"), ("gone", "debug")]


def test_events_we_may_not_write_are_warned_of_once(harness: RecorderHarness):
    guest = harness.new_recorder(harness.world.new_client(token=GUEST))
    with structlog.testing.capture_logs() as logs:
        harness.world.run.spawn(guest.run())
        for number in range(2):
            guest.record(POD, EventType.NORMAL, reason="R", message=f"m{number}")
        harness.world.run.settle()
    assert [log_entry["log_level"] for log_entry in logs if log_entry["event"] == "event.dropped"] == ["warning"]


def test_a_server_that_comes_back_gets_the_event():
    with RecorderHarness(through=Answer5xx(1, times=30, error=lambda _: NotSent("refused"))) as harness:
        harness.emit()
        harness.world.run.advance_by(120)
        assert harness.counts == [1]


def test_an_unreachable_server_is_given_up_after_twelve_tries():
    with RecorderHarness(through=Answer5xx(1, times=10_000, error=lambda _: AnswerLost("no answer"))) as harness:
        harness.emit()
        harness.world.run.advance_by(80)
        assert harness.recorder.status.dropped == {}
        harness.world.run.advance_by(120)
        assert harness.recorder.status.dropped == {"unreachable": 1}


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_answer_makes_neither_a_second_event_nor_a_second_count(lost: int):
    with RecorderHarness(through=LoseAnswers(lost, error=lambda: AnswerLost("lost"))) as harness:
        for _ in range(3):
            harness.emit()
            harness.world.run.advance_by(60)
        assert harness.counts == [3]


def test_an_event_of_the_same_name_by_another_component_is_left_alone(harness: RecorderHarness):
    other = harness.new_recorder(harness.world.client)
    harness.world.run.spawn(other.run())
    harness.emit("mine")
    other.record(POD, EventType.NORMAL, reason="Scaled", message="theirs")
    harness.world.run.settle()
    assert sorted(event["message"] for event in harness.events()) == ["mine", "theirs"]


# ---- shutdown


def test_what_waits_is_written_on_shutdown(harness: RecorderHarness):
    harness.world.run.settle()
    for number in range(5):
        harness.emit(f"m{number}")
    harness.running.cancel()
    harness.world.run.settle()
    assert harness.running.cancelled()
    assert harness.counts == [1] * 5


def test_shutdown_takes_no_longer_than_its_grace_and_counts_the_rest():
    with RecorderHarness(through=Answer5xx(1, times=10_000, error=lambda _: NotSent("refused")), grace_s=5) as harness:
        for number in range(3):
            harness.emit(f"m{number}")
        harness.world.run.settle()
        harness.running.cancel()
        harness.world.run.advance_by(4.9)
        assert not harness.running.done()
        harness.world.run.advance_by(0.2)
        assert harness.running.cancelled()
        assert harness.recorder.status.dropped == {"stopped": 3}


def test_a_recorder_that_is_started_again_goes_on_counting(harness: RecorderHarness):
    harness.emit()
    harness.running.cancel()
    harness.world.run.settle()
    harness.emit()
    harness.start()
    harness.world.run.settle()
    assert harness.counts == [2]


# ---- nothing is lost without being counted


@settings(max_examples=40, deadline=None)
@given(
    story=st.lists(st.tuples(st.sampled_from("abcdefghijklm"), st.sampled_from("pq"), st.integers(0, 30)), max_size=30),
    seed=st.integers(0, 1_000),
)
def test_counts_on_the_server_and_drops_add_up_to_what_was_recorded(story: list[tuple[str, str, int]], seed: int):
    flaky = Flaky(seed, share=0.3, error=lambda: AnswerLost("lost"))
    retry = Backoff(initial_s=1, factor=1, jitter=0, max_attempts=50)
    tight = CorrelationSettings(burst=8, similar=4)
    with RecorderHarness(through=flaky, queued=4, retry=retry, correlation=tight) as harness:
        for message, name, after_s in story:
            harness.emit(message, about=ObjectReference(kind="Pod", namespace="here", name=name))
            harness.world.run.advance_by(after_s)
        harness.world.run.advance_by(10_000)
        status = harness.recorder.status
        assert status.pending == 0
        assert sum(harness.counts) + sum(status.dropped.values()) == status.recorded == len(story)
