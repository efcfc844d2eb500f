"""Who waits for a node, who is planned for, and why not the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.model.results import PodState
from plimsoll.nodes.observing.pod_filters import FilteredPods, PodFilter, PodFilterContext
from plimsoll.nodes.observing.pod_store import PodStore
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.pods import Pod, PodCondition, PodSchedulingGate, PodSpec, PodStatus

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
REFUSED = (PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)


def pod(name: str = "p", *, meta: dict[str, Any] | None = None, spec: Any = None, **status: Any) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", creation_timestamp=NOON, **(meta or {})),
        spec=PodSpec(**(spec or {})),
        status=PodStatus(**{"conditions": REFUSED, **status}),
    )


def sort(*pods: Pod, now: datetime = NOON, waits: bool = True, **options: Any) -> FilteredPods:
    cache: WritableCache[Pod] = WritableCache()
    for pod in pods:
        cache.put((pod.metadata.namespace, pod.metadata.name), pod)
    book = PodStore(cache)
    book.renew()
    viewpoint = PodFilterContext(rules=read_options(options).pods, now=now, waits_for_scheduler=waits)
    return PodFilter().filter(book, viewpoint)


def pending(found: FilteredPods) -> list[Pod]:
    return [pod for pod in found.counted.values() if not pod.spec.node_name]


def reasons(*pods: Pod, **options: Any) -> list[str]:
    found = sort(*pods, **options)
    assert not found.pending
    return [set_aside.reason.code for set_aside in found.filtered_out]


def test_a_pod_that_the_scheduler_gave_up_on_is_planned_for():
    assert pending(sort(pod())) == [pod()]


def test_a_pod_that_the_scheduler_has_not_looked_at_is_counted_and_waited_with():
    found = sort(pod(conditions=()))
    assert (found.pending, found.unprocessed) == (0, 1)
    assert found.by_state == {PodState.UNSCHEDULABLE: 0, PodState.UNPROCESSED: 1}


def test_where_no_scheduler_runs_by_itself_every_waiting_pod_counts():
    assert sort(pod(conditions=()), waits=False).pending == 1


def test_a_bypassed_scheduler_need_not_have_looked():
    odd = pod(conditions=(), spec={"scheduler_name": "odd"})
    assert pending(sort(odd, **dict[str, Any]({"bypassed-scheduler-names": "odd"}))) == [odd]


def test_a_nominated_pod_counts_as_placed_there():
    found = sort(pod(nominated_node_name="n1"))
    assert [pod.spec.node_name for pod in found.counted.values()] == ["n1"]


@pytest.mark.parametrize(
    "gone",
    [
        pod(phase="Succeeded"),
        pod(phase="Failed"),
        pod(meta={"deletion_timestamp": NOON}),
        pod(spec={"scheduling_gates": (PodSchedulingGate(name="later"),)}),
    ],
)
def test_what_has_ended_is_leaving_or_is_gated_waits_for_nothing(gone: Pod):
    found = sort(gone)
    assert (dict(found.counted), found.unprocessed, found.filtered_out) == ({}, 0, ())


def test_expendable_pods_neither_wait_nor_hold_a_node():
    low = pod(spec={"priority": -11})
    running = pod("r", spec={"priority": -11, "node_name": "n1"})
    found = sort(low, running)
    assert not found.counted
    assert [ignored.reason.code for ignored in found.filtered_out] == ["Expendable"]


def test_the_cutoff_of_expendable_pods_is_an_option_and_a_pod_without_priority_is_not_expendable():
    assert sort(pod(spec={"priority": -11}), **dict[str, Any]({"expendable-pods-priority-cutoff": -20})).pending == 1
    assert sort(pod()).pending == 1


@pytest.mark.parametrize("prefix", ["autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"])
def test_a_pod_that_consumes_a_provisioning_request_is_left_alone(prefix: str):
    consuming = pod(meta={"annotations": {f"{prefix}/consume-provisioning-request": "pr"}})
    assert reasons(consuming) == ["ConsumesProvisioningRequest"]


def test_no_node_is_added_for_a_daemon_set():
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="d", controller=True)
    assert reasons(pod(meta={"owner_references": (owner,)})) == ["DaemonPod"]


def test_other_schedulers_than_the_allowed_ones_are_not_planned_for():
    assert reasons(pod(spec={"scheduler_name": "odd"}), **{"allowed-scheduler-names": "mine"}) == [
        "SchedulerNotAllowed"
    ]


def test_young_pods_wait_for_the_delay_which_an_annotation_can_only_lengthen():
    longer = pod(meta={"annotations": {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "2m"}})
    shorter = pod("shorter", meta={"annotations": {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "1s"}})
    unreadable = pod(
        "unreadable", meta={"annotations": {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "soon"}}
    )
    after = NOON + timedelta(seconds=61)
    delay: dict[str, Any] = {"new-pod-scale-up-delay": "60s"}
    assert reasons(pod(), now=NOON + timedelta(seconds=59), **delay) == ["PodTooNew"]
    assert sort(pod(), shorter, unreadable, now=after, **delay).pending == 3
    assert reasons(longer, now=after, **delay) == ["PodTooNew"]
