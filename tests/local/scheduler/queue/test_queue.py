"""Which pod is next: priority, time, back-off, what brings a pod back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.local.scheduler.queue.cluster_events import NO_NODE, ClusterEvent
from plimsoll.local.scheduler.queue.queue import SchedulingQueue
from plimsoll.local.scheduler.settings import SchedulerSettings
from plimsoll.scheduling.cluster_view import get_pod_key
from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY
from plimsoll.scheduling.rules.resources_fit import RESOURCES_FIT
from plimsoll.scheduling.rules.volume_binding import VOLUME_BINDING
from tests.scheduling.builders import pod

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

SHORT = frozenset({RESOURCES_FIT})


def queue(*pods: Pod, at_s: float = 0.0) -> SchedulingQueue:
    made = SchedulingQueue(SchedulerSettings())
    for queued in pods:
        made.add(queued, at_s)
    return made


def ranked(name: str, priority: int) -> Pod:
    return pod(name, priority=priority)


def popped(made: SchedulingQueue, now_s: float = 0.0) -> list[str]:
    names = []
    while (queued := made.pop(now_s)) is not None:
        names.append(queued.pod.metadata.name)
    return names


def failed(made: SchedulingQueue, now_s: float = 0.0, refused_by: frozenset[str] = SHORT) -> None:
    queued = made.pop(now_s)
    assert queued is not None
    made.add_unschedulable(queued, refused_by, now_s)


def in_error(made: SchedulingQueue, now_s: float = 0.0) -> None:
    queued = made.pop(now_s)
    assert queued is not None
    made.add_after_error(queued, now_s)


def test_the_highest_priority_comes_first():
    assert popped(queue(ranked("low", 1), ranked("high", 9), ranked("middle", 5))) == ["high", "middle", "low"]


def test_pods_of_one_priority_are_scheduled_in_order_of_arrival():
    made = queue(pod("z"), at_s=1.0)
    made.add(pod("a"), 2.0)

    assert popped(made) == ["z", "a"]


def test_pods_of_one_moment_go_by_age_and_then_by_name():
    old = pod("z")
    old = structs.replace(
        old, metadata=structs.replace(old.metadata, creation_timestamp=datetime(2020, 1, 1, tzinfo=UTC))
    )

    young = datetime(2021, 1, 1, tzinfo=UTC)
    others = [
        structs.replace(item, metadata=structs.replace(item.metadata, creation_timestamp=young))
        for item in (pod("b"), pod("a"))
    ]

    assert popped(queue(*others, old)) == ["z", "a", "b"]


def test_a_pod_that_failed_waits_until_something_may_help():
    made = queue(pod("p"))

    failed(made)

    assert made.pop(200.0) is None


@pytest.mark.parametrize(
    ("refused_by", "event", "is_back"),
    [
        ({RESOURCES_FIT}, ClusterEvent.CLAIM_CHANGED, False),
        ({RESOURCES_FIT}, ClusterEvent.POD_PLACED, False),
        ({VOLUME_BINDING}, ClusterEvent.CLAIM_CHANGED, True),
        ({VOLUME_BINDING}, ClusterEvent.POD_LEFT, False),
        ({INTER_POD_AFFINITY}, ClusterEvent.POD_PLACED, True),
        ({RESOURCES_FIT, INTER_POD_AFFINITY}, ClusterEvent.POD_PLACED, True),
        ({NO_NODE}, ClusterEvent.NODE_CHANGED, True),
    ],
)
def test_an_event_requeues_pods_that_a_concerned_plugin_refused(
    refused_by: set[str], event: ClusterEvent, *, is_back: bool
):
    made = queue(pod("p"))
    failed(made, refused_by=frozenset(refused_by))

    made.move_to_active_or_backoff(event, 1.0, helps=lambda _: False)

    assert (made.pop(1.0) is not None) == is_back


@pytest.mark.parametrize("fits", [True, False])
def test_a_node_helps_a_pod_that_it_would_take(*, fits: bool):
    made = queue(pod("p"))
    failed(made)

    made.move_to_active_or_backoff(ClusterEvent.POD_LEFT, 1.0, helps=lambda _: fits)

    assert (made.pop(1.0) is not None) == fits


def test_what_happens_while_a_pod_is_in_hand_is_not_missed():
    made = queue(pod("p"))
    queued = made.pop(0.0)
    assert queued is not None
    made.move_to_active_or_backoff(ClusterEvent.NODE_CHANGED, 0.0, helps=lambda _: True)

    made.add_unschedulable(queued, SHORT, 0.0)

    assert popped(made) == ["p"]


def test_pods_that_back_off_come_after_all_active_ones():
    made = queue(ranked("failed", 9))
    failed(made)
    made.move_to_active_or_backoff(ClusterEvent.NODE_CHANGED, 0.1, helps=lambda _: True)
    made.add(ranked("new", 0), 0.1)

    assert popped(made, 0.1) == ["new", "failed"]


def test_when_its_back_off_is_over_priority_counts_again():
    made = queue(ranked("failed", 9))
    failed(made)
    made.move_to_active_or_backoff(ClusterEvent.NODE_CHANGED, 0.1, helps=lambda _: True)
    made.add(ranked("new", 0), 0.1)

    made.flush(1.0)

    assert popped(made, 1.0) == ["failed", "new"]


def test_back_off_doubles_from_one_second_to_ten():
    made = queue()

    assert [made.compute_backoff_s(failures) for failures in (1, 2, 3, 4, 5, 6, 1_000_000)] == [1, 2, 4, 8, 10, 10, 10]


def test_after_an_error_a_pod_waits_though_nothing_else_is_to_be_done():
    made = queue(pod("p"))
    in_error(made)

    assert made.pop(0.9) is None
    assert made.find_next_flush_s() == 1.0
    made.flush(1.0)
    assert popped(made, 1.0) == ["p"]


def test_after_five_minutes_it_is_tried_anyhow():
    made = queue(pod("p"))
    failed(made)

    assert made.find_next_flush_s() == 300.0
    made.flush(299.9)
    assert made.pop(299.9) is None
    made.flush(300.0)

    assert popped(made, 300.0) == ["p"]


def test_the_clock_looks_at_the_pod_that_has_waited_for_the_longest_only(monkeypatch: pytest.MonkeyPatch):
    made = queue(*(pod(f"p{number}") for number in range(100)))
    for number in range(100):
        failed(made, now_s=float(number))
    looked_at = []

    class RecordingDict(dict[Any, Any]):
        def values(self) -> Any:
            for item in super().values():
                looked_at.append(item)
                yield item

        def items(self) -> Any:
            for item in super().items():
                looked_at.append(item)
                yield item

    monkeypatch.setattr(made, "_unschedulable", RecordingDict(made._unschedulable))
    made.flush(now_s=100.0)
    assert made.find_next_flush_s() == 300.0
    assert len(looked_at) == 2


def test_a_changed_pod_is_tried_again():
    made = queue(pod("p"))
    failed(made)

    made.add(pod("p", labels={"is": "new"}), 5.0)

    assert popped(made, 5.0) == ["p"]


def test_a_pod_that_is_dropped_while_in_hand_does_not_come_back():
    made = queue(pod("p"))
    queued = made.pop(0.0)
    assert queued is not None
    made.delete(get_pod_key(queued.pod))

    made.add_unschedulable(queued, SHORT, 0.0)
    made.flush(1_000.0)

    assert made.pop(1_000.0) is None


def test_for_one_go_every_pod_is_there_in_order():
    made = queue(ranked("waiting", 5))
    failed(made)
    made.add(ranked("new", 1), 0.0)
    made.add(ranked("urgent", 9), 0.0)

    assert [item.pod.metadata.name for item in made.list_in_order()] == ["urgent", "waiting", "new"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers(0, 3)),
        st.tuples(st.just("try"), st.booleans(), st.booleans()),
        st.tuples(st.just("event"), st.booleans(), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 5), st.just(0)),
    ),
    max_size=40,
)


@given(steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_no_pod_is_lost_and_none_is_in_hand_twice(steps: list[tuple[str, int, int]]):
    """Whatever happens, every pod that was not dropped is tried again within the flush and the longest back-off."""
    made = queue()
    there: set[str] = set()
    now_s = 0.0
    for what, step, other in steps:
        now_s += 0.5
        made.flush(now_s)
        if what == "put":
            made.add(ranked(f"p{step}", other), now_s)
            there.add(f"p{step}")
        elif what == "drop":
            made.delete(get_pod_key(pod(f"p{step}")))
            there.discard(f"p{step}")
        elif what == "event":
            made.move_to_active_or_backoff(ClusterEvent.NODE_CHANGED, now_s, helps=lambda _, step=step: bool(step))  # type: ignore[misc]
        elif (queued := made.pop(now_s)) is not None:
            assert queued.pod.metadata.name in there
            made.add_unschedulable(queued, SHORT, now_s) if step else made.add_after_error(queued, now_s)

    made.flush(now_s + 400.0)

    assert sorted(popped(made, now_s + 400.0)) == sorted(there)
