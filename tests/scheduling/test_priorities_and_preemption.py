from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.objects.api.pods import Pod, PodStatus
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.messages import NotSchedulable, compute_scheduling_outcome
from plimsoll.scheduling.priorities import (
    get_priority,
    is_expendable,
    may_preempt,
    outranks,
    resolve_priority,
    sort_by_importance,
)
from tests.scheduling.builders import node, node_affinity, pod, required, term

if TYPE_CHECKING:
    from collections.abc import Iterable


def created(name: str, day: int, priority: int | None = None) -> Pod:
    raw = msgspec.to_builtins(pod(name, priority=priority))
    raw["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
    return msgspec.convert(raw, Pod)


def names(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


@pytest.mark.parametrize(("priority", "expendable"), [(-11, True), (-10, False), (0, False), (None, False)])
def test_only_pods_with_a_priority_below_the_cutoff_are_expendable(priority: int | None, expendable: bool):
    assert is_expendable(pod(priority=priority)) is expendable


def test_the_cutoff_can_be_moved():
    assert is_expendable(pod(priority=-1), below=0)


def test_no_priority_counts_as_zero_when_comparing():
    assert get_priority(pod()) == 0
    assert outranks(pod(priority=1), pod())
    assert not outranks(pod(), pod(priority=0))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"priority": 7, "priorityClassName": "high"}, 7),
        ({"priorityClassName": "high"}, 1000),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
        ({"priorityClassName": "nobody-made-it"}, None),
        ({}, 5),
    ],
)
def test_priorities_are_resolved_as_admission_does(spec: dict[str, Any], expected: int | None):
    assert resolve_priority(pod(**spec), {"high": 1000}, default=5) == expected


def test_importance_goes_by_priority_then_running_time():
    def started(name: str, day: int, priority: int = 0) -> Pod:
        status = msgspec.convert({"startTime": f"2026-01-{day:02}T00:00:00Z"}, PodStatus)
        return msgspec.structs.replace(pod(name, priority=priority), status=status)

    assert names(sort_by_importance([started("late", 3), started("early", 1), started("vip", 9, 1)])) == [
        "vip",
        "early",
        "late",
    ]


def test_preemption_policy_never():
    assert may_preempt(pod())
    assert may_preempt(pod(preemptionPolicy="PreemptLowerPriority"))
    assert not may_preempt(pod(preemptionPolicy="Never"))


def outcome(made: Pod, view: ClusterView) -> NotSchedulable:
    found = compute_scheduling_outcome(made, view)
    assert isinstance(found, NotSchedulable)
    return found


def test_as_few_victims_as_possible_and_the_most_important_are_spared():
    running = [
        pod("small", on="n1", requests={"cpu": "1"}, priority=1),
        pod("large", on="n1", requests={"cpu": "2"}, priority=0),
        pod("vip", on="n1", requests={"cpu": "1"}, priority=100),
    ]
    found = outcome(pod(requests={"cpu": "2"}, priority=50), ClusterView.from_objects([node()], running))

    assert found.preempt is not None
    assert names(found.preempt.victims) == ["large"]


def test_pods_are_spared_together_only_if_there_is_room_for_all_of_them():
    sizes = {"a": "1", "b": "1", "c": "2"}
    running = [pod(name, on="n1", requests={"cpu": size}) for name, size in sizes.items()]

    found = outcome(pod(requests={"cpu": "3"}, priority=1), ClusterView.from_objects([node()], running))

    assert found.preempt is not None
    assert names(found.preempt.victims) == ["b", "c"]


def test_the_node_whose_victims_matter_least_is_chosen():
    running = [
        pod("x", on="n1", requests={"cpu": "4"}, priority=5),
        pod("y", on="n2", requests={"cpu": "4"}, priority=1),
        pod("z1", on="n3", requests={"cpu": "2"}, priority=1),
        pod("z2", on="n3", requests={"cpu": "2"}, priority=1),
    ]
    view = ClusterView.from_objects([node("n1"), node("n2"), node("n3")], running)

    found = outcome(pod(requests={"cpu": "3"}, priority=50), view)

    assert found.preempt is not None
    assert found.preempt.node == "n2"


def test_where_even_all_victims_do_not_make_room_the_rest_of_the_reason_is_reported():
    keeper = pod("keeper", on="n1", requests={"cpu": "3"}, priority=100)
    low = pod("low", on="n1", requests={"cpu": "1"}, priority=0)

    found = outcome(pod(requests={"cpu": "2"}, priority=50), ClusterView.from_objects([node()], [keeper, low]))

    assert found.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Insufficient cpu."
    )


def test_a_victim_may_be_one_that_keeps_the_pod_away():
    resentful = pod("resentful", on="n1", priority=0, **required(term({"app": "web"})))

    found = outcome(pod(labels={"app": "web"}, priority=1), ClusterView.from_objects([node()], [resentful]))

    assert found.preempt is not None
    assert names(found.preempt.victims) == ["resentful"]


def leaving(reason: str) -> Pod:
    raw = msgspec.to_builtins(pod("victim", on="n1", requests={"cpu": "4"}, priority=0))
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    raw["status"] = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]}
    return msgspec.convert(raw, Pod)


def nominated(cpu: str) -> Pod:
    return msgspec.structs.replace(pod(requests={"cpu": cpu}, priority=9), status=PodStatus(nominated_node_name="n1"))


def test_a_pod_waits_for_the_victims_it_already_has():
    found = outcome(nominated("2"), ClusterView.from_objects([node()], [leaving("PreemptionByScheduler")]))

    assert found.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")


def test_a_pod_that_leaves_for_another_reason_is_not_waited_for():
    found = outcome(nominated("2"), ClusterView.from_objects([node()], [leaving("EvictionByEvictionAPI")]))

    assert found.preempt is not None


def test_victims_on_a_node_that_can_never_fit_are_not_waited_for():
    found = outcome(nominated("5"), ClusterView.from_objects([node()], [leaving("PreemptionByScheduler")]))

    assert found.message.endswith("1 Preemption is not helpful for scheduling.")


def test_among_equal_victims_the_youngest_goes():
    def since(name: str, on: str, day: int) -> Pod:
        status = msgspec.convert({"startTime": f"2026-01-{day:02}T00:00:00Z"}, PodStatus)
        return msgspec.structs.replace(pod(name, on=on, requests={"cpu": "4"}), status=status)

    running = [since("old", "n1", 1), since("young", "n2", 2)]
    found = outcome(pod(requests={"cpu": "2"}, priority=1), ClusterView.from_objects([node("n1"), node("n2")], running))

    assert found.preempt is not None
    assert names(found.preempt.victims) == ["young"]


def test_counts_are_sorted_as_text():
    nodes = [*(node(f"small-{index}", cpu="1") for index in range(10)), node("cordoned", unschedulable=True)]

    found = outcome(pod(requests={"cpu": "2"}), ClusterView.from_objects([*nodes, node("also", unschedulable=True)]))

    assert found.message.startswith(
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable. no new claims"
    )


def by_name(*wanted: str) -> dict[str, Any]:
    return node_affinity(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in wanted]}
    )


def test_nodes_that_affinity_does_not_name_are_not_asked():
    view = ClusterView.from_objects([node("n1", cpu="1"), node("n2"), node("n3")])

    assert outcome(pod(requests={"cpu": "2"}, **by_name("n1")), view).message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_terms_that_name_different_nodes_conflict():
    assert outcome(pod(**by_name("n1", "n2")), ClusterView.from_objects([node()])).message == (
        "0/1 nodes are available: pod affinity terms conflict. not found"
    )
