"""Evicted pods are waited for until they are made again: one new pod stands for one that went."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.actuation.recently_evicted_pods import RecentEvictions
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.pods import Pod, PodSpec, PodStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(uid: str, *, owner: str = "web", age_s: float = 1000, phase: str = "Running", node: str = "n") -> Pod:
    owners: Any = (OwnerReference(kind="ReplicaSet", name=owner, uid=owner, controller=True),) if owner else ()
    meta = ObjectMeta(
        name=uid,
        namespace="default",
        uid=uid,
        owner_references=owners,
        creation_timestamp=NOW - timedelta(seconds=age_s),
    )
    return Pod(metadata=meta, spec=PodSpec(node_name=node), status=PodStatus(phase=phase))


def evicted(*pods: Pod) -> RecentEvictions:
    recent = RecentEvictions()
    for pod in pods:
        recent.note(pod, NOW)
    return recent


def names(recent: RecentEvictions, *pods: Pod, after_s: float = 1) -> list[str]:
    return [pod.metadata.name for pod in recent.find_unreplaced(NOW + timedelta(seconds=after_s), pods, for_s=120)]


def test_pods_without_a_controller_are_not_waited_for():
    assert names(evicted(pod("a", owner=""), pod("b", phase="Succeeded"), pod("c"))) == ["c"]


def test_a_clock_that_is_set_changes_no_wait():
    for hours in (1, -1):
        recent = evicted(pod("a"))
        recent.adjust_clock(timedelta(hours=hours))
        assert names(recent, after_s=hours * 3600 + 119) == ["a"]
        assert names(recent, after_s=hours * 3600 + 121) == []


def test_one_new_pod_stands_for_one_that_went():
    recent = evicted(pod("a"), pod("b"))
    assert names(recent, pod("c", age_s=0)) == ["b"]
    assert names(recent, pod("c", age_s=0)) == ["b"]
    assert names(recent, pod("c", age_s=0), pod("d", age_s=0)) == []


def test_neither_older_pods_nor_pods_of_others_stand_for_one_that_went():
    recent = evicted(pod("a"))
    assert names(recent, pod("a"), pod("old", age_s=5), pod("other", owner="db", age_s=0)) == ["a"]


def test_after_a_while_a_pod_is_given_up():
    recent = evicted(pod("a"))
    assert names(recent, after_s=119) == ["a"]
    assert names(recent, after_s=120) == []


def test_pods_come_back_without_a_node():
    (found,) = evicted(pod("a")).find_unreplaced(NOW, (), for_s=120)
    assert found.spec.node_name == ""


@settings(deadline=None)
@given(went=st.integers(0, 8), came=st.integers(0, 8))
def test_as_many_are_missing_as_went_and_did_not_come(went: int, came: int):
    recent = evicted(*(pod(f"went-{number}") for number in range(went)))
    new = [pod(f"came-{number}", age_s=-1) for number in range(came)]
    assert len(names(recent, *new, after_s=2)) == max(went - came, 0)
