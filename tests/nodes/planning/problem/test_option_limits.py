"""The limits of the cluster: docs/design/nodes.md 5.3, and the design's worked example, 5.4."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.config.policy import Planner, Policy
from plimsoll.nodes.model.snapshot import Snapshot
from plimsoll.nodes.planning.problem import options as candidates
from plimsoll.nodes.planning.state import resource_limits
from plimsoll.objects.api.nodes import Taint
from tests.nodes.planning.builders import (
    GIB,
    amounts,
    group,
    highmem,
    machine,
    nap,
    node,
    pending,
    pod,
    policy,
    snapshot,
    standard,
)

NAP_GROUP = "nodeautoprovisioning_n1-highmem4_1234129"


def worked_example(*, pods: tuple[Any, ...] = (), types: tuple[Any, ...] = ()) -> Snapshot:
    """Main: 2 x n1-standard-2, not autoscaled; as: 1 x n1-standard-16; nap: 2 x n1-highmem-4."""
    nodes = [node(f"main-{index}", standard(2).capacity) for index in range(2)]
    nodes += [node("as-0", standard(16).capacity)]
    nodes += [node(f"nap-{index}", highmem(4).capacity) for index in range(2)]
    groups = (
        group("main", standard(2), target=2, autoscaled=False),
        group("as", standard(16), target=1),
        group(NAP_GROUP, highmem(4), target=2, most=1000, autoprovisioned=True, autoscaled=False),
    )
    return snapshot(*pods, nodes=tuple(nodes), groups=groups, machine_types=types)


def under(max_cpu: int, **options: Any) -> Policy:
    return nap(max_cpu=max_cpu, nodes="0:2:as", **options)


def rooms(max_cpu: int) -> dict[str, int]:
    offered = candidates.find_options(worked_example(), under(max_cpu))
    return {offer.group: offer.room for offer in offered.options}


def test_the_worked_example_uses_28_cores():
    assert resource_limits.measure_usage(worked_example().view).get_total("cpu") == 28_000


def test_at_5_cores_nothing_may_grow_and_the_limit_is_named():
    offered = candidates.find_options(worked_example(pods=(pending("p", pod(), 10),), types=(standard(1),)), under(5))
    assert offered.options == ()
    codes = {(skipped.group or skipped.machine_type): skipped.code for skipped in offered.skipped_groups}
    assert codes == {
        "main": "NotAutoscaled",
        "as": "CpuResourceLimit",
        NAP_GROUP: "CpuResourceLimit",
        "n1-standard-1": "CpuResourceLimit",
    }
    reason = next(skipped.reason for skipped in offered.skipped_groups if skipped.group == "as")
    assert reason == "max cluster cpu limit reached (28 of 5 in use)"


def test_at_32_cores_only_nap_grows_by_one():
    assert rooms(32) == {NAP_GROUP: 1}


def test_at_80_cores_as_grows_by_one_and_nap_by_thirteen():
    assert rooms(80) == {"as": 1, NAP_GROUP: 13}


@pytest.mark.parametrize(("cores", "nodes"), [(1, 4), (2, 2), (4, 1), (8, None)])
def test_at_32_cores_new_groups_of_small_types_get_what_is_left(cores: int, nodes: int | None):
    small = pending("small", pod("500m", "1Gi", selector={"tier": "small"}), 6)
    offered = candidates.find_options(worked_example(pods=(small,), types=(standard(cores),)), under(32))
    assert [offer.room for offer in offered.options if not offer.exists] == ([] if nodes is None else [nodes])


def test_room_is_shared_as_one_row_a_limit():
    world = worked_example()
    offered = candidates.find_options(world, under(80, max_memory=1000, max_nodes_total=9))
    rows = resource_limits.build_limit_matrix(offered.ceilings, offered.options)
    assert [ceiling.code for ceiling in rows.resource_limits] == [
        "CpuResourceLimit",
        "MemoryResourceLimit",
        "MaxNodesTotal",
    ]
    assert rows.room.tolist() == [52_000, 1000 * GIB - int(127 * GIB), 4]
    assert rows.use.tolist() == [[16_000, 60 * GIB, 1], [4_000, 26 * GIB, 1]]
    assert rows.use.dtype == np.int64


def test_nodes_that_leave_and_virtual_kubelets_do_not_count():
    size = amounts(4, 16)
    world = snapshot(
        nodes=(
            node("a", size),
            node("leaving", size, taints=(Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule"),)),
            node("virtual", size, labels={"type": "virtual-kubelet"}),
        )
    )
    usage = resource_limits.measure_usage(world.view)
    assert (len(usage.nodes), usage.get_total("cpu"), usage.get_total("memory")) == (1, 4_000, 16 * GIB)


def test_above_a_maximum_there_is_no_room_rather_than_a_debt():
    [ceiling] = resource_limits.find_limits(
        resource_limits.measure_usage(worked_example().view), under(5), Planner.OPTIMAL
    )
    assert ceiling.room == 0


def test_accelerators_are_limited_by_resource_name_or_by_the_label_of_their_type():
    labels = {"cloud.google.com/gke-accelerator": "nvidia-tesla-k80"}
    gpu_node = node("g", amounts(8, 30, gpu=2), labels=labels)
    usage = resource_limits.measure_usage(snapshot(nodes=(gpu_node, node("n", amounts(4, 16)))).view)
    rules = policy(gpu_total=["nvidia.com/gpu:0:4", "nvidia-tesla-k80:0:3"])
    found = resource_limits.find_limits(usage, rules, Planner.OPTIMAL)
    assert [(limit.resource, limit.room, limit.code) for limit in found] == [
        ("nvidia.com/gpu", 2, "GpuResourceLimit"),
        ("nvidia-tesla-k80", 1, "GpuResourceLimit"),
    ]
    counted = resource_limits.CountedNode.from_node(gpu_node)
    assert resource_limits.count_addable_nodes(found, counted) == 0
    assert [limit.resource for limit in resource_limits.find_exhausted(found, counted)] == ["nvidia-tesla-k80"]


def test_a_zero_or_max_group_needs_room_for_all_of_it():
    kind = machine("m", 4, 16)
    world = snapshot(groups=(group("g", kind, most=5, zero_or_max=True),))
    assert [offer.room for offer in candidates.find_options(world, policy(max_cpu=20)).options] == [5]
    refused = candidates.find_options(world, policy(max_cpu=19))
    assert (refused.options, refused.skipped_groups[0].code) == ((), "CpuResourceLimit")


def test_memory_is_named_when_memory_is_what_is_missing():
    world = snapshot(nodes=(node("n", amounts(8, 30)),), groups=(group("g", standard(4)),))
    refused = candidates.find_options(world, policy(max_memory=40)).skipped_groups
    assert [(skipped.code, skipped.reason) for skipped in refused] == [
        (
            "MemoryResourceLimit",
            "max cluster memory limit reached (30 GiB of 40 GiB in use, too little left for one more node)",
        )
    ]


# ---- the other way


def test_a_node_stays_when_removing_it_would_break_a_minimum():
    world = snapshot(nodes=(node("a", amounts(4, 16)), node("b", amounts(8, 16))))
    floors = resource_limits.find_minimums(resource_limits.measure_usage(world.view), policy(min_cpu=6, min_memory=16))
    four, eight = (
        resource_limits.CountedNode(capacity=amounts(4, 16)),
        resource_limits.CountedNode(capacity=amounts(8, 16)),
    )
    assert resource_limits.find_broken_minimums(floors, four) == ()
    assert [floor.resource for floor in resource_limits.find_broken_minimums(floors, eight)] == ["cpu"]
    after = tuple(floor.subtract_node(four) for floor in floors)
    assert [floor.resource for floor in resource_limits.find_broken_minimums(after, four)] == ["cpu", "memory"]


def test_below_a_minimum_a_node_without_that_resource_may_still_go():
    floors = (resource_limits.MinimumLimit(resource="nvidia.com/gpu", used=0, least=1),)
    assert resource_limits.find_broken_minimums(floors, resource_limits.CountedNode(capacity=amounts(4, 16))) == ()


@settings(max_examples=100, deadline=None)
@given(
    used=st.integers(0, 200),
    most=st.integers(0, 200),
    cores=st.integers(1, 64),
)
def test_growth_is_the_largest_number_of_nodes_that_breaks_nothing(used: int, most: int, cores: int):
    usage = resource_limits.Usage(nodes=(resource_limits.CountedNode(capacity=amounts(used, 0)),))
    found = resource_limits.find_limits(usage, policy(max_cpu=most), Planner.OPTIMAL)
    one = resource_limits.CountedNode(capacity=amounts(cores, 1))
    allowed = resource_limits.count_addable_nodes(found, one)
    assert not resource_limits.find_exhausted(found, one, nodes=allowed)
    assert resource_limits.find_exhausted(found, one, nodes=allowed + 1)
