"""What a pod needs, compared with a naive run of its life: start the init containers one by one, then everything."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidQuantity
from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.verdicts import DoesNotFit, Fits
from tests.scheduling.builders import node, pod


def container(cpu: str = "0", *, sidecar: bool = False, name: str = "c", **resources: Any) -> dict[str, Any]:
    found = {"name": name, "resources": {"requests": {"cpu": cpu}, **resources}}
    return {**found, "restartPolicy": "Always"} if sidecar else found


def cpu(made: Pod) -> int:
    return compute_pod_demand(made)["cpu"]


def test_containers_add_up():
    assert cpu(pod(containers=[container("1"), container("250m")])) == 1250


def test_every_pod_needs_one_of_pods():
    assert dict(compute_pod_demand(pod())) == {"pods": 1}


def test_a_larger_init_container_decides():
    assert cpu(pod(containers=[container("1")], initContainers=[container("3"), container("2")])) == 3000


def test_sidecars_run_beside_the_containers():
    assert cpu(pod(containers=[container("1")], initContainers=[container("2", sidecar=True)])) == 3000


def test_an_init_container_runs_beside_the_sidecars_before_it_only():
    before = pod(containers=[container("0")], initContainers=[container("1", sidecar=True), container("2")])
    after = pod(containers=[container("0")], initContainers=[container("2"), container("1", sidecar=True)])

    assert (cpu(before), cpu(after)) == (3000, 2000)


def test_overhead_comes_on_top():
    assert cpu(pod(containers=[container("1")], initContainers=[container("2")], overhead={"cpu": "100m"})) == 2100


def test_pod_level_requests_replace_the_sum():
    assert cpu(pod(containers=[container("3")], resources={"requests": {"cpu": "2"}}, overhead={"cpu": "1"})) == 3000


def test_pod_level_requests_leave_other_resources_to_the_containers():
    made = pod(
        containers=[{"name": "c", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}],
        resources={"requests": {"cpu": "2"}},
    )

    assert dict(compute_pod_demand(made)) == {"cpu": 2000, "memory": 2**30, "pods": 1}


def test_pod_level_requests_do_not_reach_extended_resources():
    made = pod(requests={"nvidia.com/gpu": "1"}, resources={"requests": {"nvidia.com/gpu": "5"}})

    assert compute_pod_demand(made)["nvidia.com/gpu"] == 1


def test_a_pod_level_limit_counts_where_no_container_requests():
    limited = {"limits": {"cpu": "2", "memory": "1Gi"}}

    assert dict(compute_pod_demand(pod(requests={"cpu": "1"}, resources=limited))) == {
        "cpu": 1000,
        "memory": 2**30,
        "pods": 1,
    }


def test_a_limit_without_a_request_counts_as_the_request():
    made = pod(containers=[{"name": "c", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 1}}}])

    assert dict(compute_pod_demand(made)) == {"cpu": 2000, "pods": 1, "nvidia.com/gpu": 1}


def test_a_request_of_zero_beside_a_limit_stays_zero():
    made = pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "0"}, "limits": {"cpu": "2"}}}])

    assert cpu(made) == 0


def resized(asked: str, allocated: str, acting: str = "0", **condition: str) -> Pod:
    made = msgspec.to_builtins(pod(on="n1", containers=[container(asked)]))
    made["status"] = {
        "containerStatuses": [
            {"name": "c", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": acting}}}
        ],
        "conditions": [condition] if condition else [],
    }
    return msgspec.convert(made, Pod)


@pytest.mark.parametrize(
    ("asked", "allocated", "acting", "held"), [("2", "1", "1", 2000), ("1", "2", "1", 2000), ("1", "1", "3", 3000)]
)
def test_while_resizing_the_largest_of_asked_allocated_and_acting_counts(
    asked: str, allocated: str, acting: str, held: int
):
    assert cpu(resized(asked, allocated, acting)) == held


def test_a_resize_the_node_called_infeasible_is_not_counted():
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}

    assert cpu(resized("9", "1", **condition)) == 1000


@pytest.mark.parametrize(
    ("made", "path"),
    [
        (pod(requests={"cpu": "1.5Mi5"}), "spec.containers[0].resources.requests[cpu]"),
        (pod(initContainers=[container("x")]), "spec.initContainers[0].resources.requests[cpu]"),
        (pod(overhead={"memory": "much"}), "spec.overhead[memory]"),
        (pod(resources={"limits": {"cpu": "?"}}), "spec.resources.limits[cpu]"),
    ],
)
def test_a_bad_quantity_is_refused_by_its_path_and_never_raised(made: Pod, path: str):
    with pytest.raises(InvalidQuantity) as caught:
        compute_pod_demand(made)
    verdict = check_node(made, node(), ClusterView.from_objects([node()]))

    assert caught.value.path == path
    assert isinstance(verdict, DoesNotFit)
    assert verdict.reason.plugin == "NodeResourcesFit"
    assert str(verdict.reason).startswith(f"{path}: ")


def test_a_node_whose_allocatable_cannot_be_read_refuses():
    broken = node(cpu="plenty")
    verdict = check_node(pod(), broken, ClusterView.from_objects([broken]))

    assert isinstance(verdict, DoesNotFit)
    assert str(verdict.reason).startswith("node n1: status.allocatable[cpu]: ")


def test_a_node_holding_a_pod_that_cannot_be_read_refuses():
    view = ClusterView.from_objects([node(), node("n2")], [pod("odd", on="n1", requests={"cpu": "lots"})])

    verdict = check_node(pod(), node(), view)

    assert isinstance(verdict, DoesNotFit)
    assert str(verdict.reason).startswith("pod default/odd: spec.containers[0].resources.requests[cpu]: ")
    assert isinstance(check_node(pod(), node("n2"), view), Fits)


CPUS = st.integers(min_value=0, max_value=5)
INIT = st.lists(st.tuples(CPUS, st.booleans()), max_size=5)


def lived_through(containers: list[int], init: list[tuple[int, bool]]) -> int:
    """The most cpu at any moment, by playing the start of the pod."""
    running = most = 0
    for amount, sidecar in init:
        most = max(most, running + amount)
        running += amount if sidecar else 0
    return max(most, running + sum(containers))


@settings(max_examples=200, deadline=None)
@given(st.lists(CPUS, min_size=1, max_size=4), INIT, CPUS)
def test_the_need_is_the_most_the_pod_ever_takes(containers: list[int], init: list[tuple[int, bool]], overhead: int):
    made = pod(
        containers=[container(str(amount)) for amount in containers],
        initContainers=[container(str(amount), sidecar=sidecar) for amount, sidecar in init],
        overhead={"cpu": overhead},
    )

    assert cpu(made) == 1000 * (lived_through(containers, init) + overhead)


def test_huge_pages_limited_for_the_pod_are_requested_for_the_pod():
    name = "hugepages-2Mi"
    made = pod(requests={name: "4Mi"}, resources={"limits": {name: "100Mi"}})

    assert compute_pod_demand(made)[name] == 100 * 2**20
