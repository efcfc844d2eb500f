"""How much of a node is asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.planning.scaledown.eligibility import Utilization, UtilizationThresholds, compute_utilization
from plimsoll.nodes.planning.state.node_arrays import NodeArrays
from plimsoll.nodes.planning.state.node_pods import PodsByNode
from plimsoll.scheduling import ClusterView
from tests.nodes.planning.scaledown.builders import NOON, node, pod, policy

if TYPE_CHECKING:
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

MIRROR = {"kubernetes.io/config.mirror": "x"}


def used(on: Node, *pods: Pod, **options: Any) -> Utilization:
    view = ClusterView.from_objects([on], pods)
    arrays = NodeArrays.from_view(view)
    rules = UtilizationThresholds.from_options(arrays, policy(**options).scale_down)
    return compute_utilization(arrays, PodsByNode.from_view(view), rules=rules, now=NOON)


def test_the_larger_of_cpu_and_memory_counts():
    assert used(node("n1"), pod(cpu="1", memory="2Gi")).share.tolist() == [0.25]
    found = used(node("n1"), pod(cpu="1", memory="12Gi"))
    assert (found.share.tolist(), found.resource) == ([0.75], ("memory",))


def test_a_node_at_the_threshold_still_passes():
    assert used(node("n1"), pod(cpu="2")).is_low.tolist() == [True]
    assert used(node("n1"), pod(cpu="2001m")).is_low.tolist() == [False]
    assert used(node("n1"), pod(cpu="2"), scale_down_utilization_threshold=0.4).is_low.tolist() == [False]


def test_an_empty_node_and_one_that_offers_nothing_are_not_used():
    assert used(node("n1")).share.tolist() == [0.0]
    assert used(node("n1", cpu=0, gib=0)).is_low.tolist() == [True]


def test_on_a_gpu_node_only_accelerators_count_against_their_own_threshold():
    gpus = node("n1", **dict[str, Any]({"nvidia.com/gpu": "4"}))
    found = used(gpus, pod(cpu="4", requests={"nvidia.com/gpu": 1}))
    assert (found.share.tolist(), found.is_low.tolist(), found.is_gpu.tolist()) == ([0.25], [True], [True])
    strict = used(gpus, pod(requests={"nvidia.com/gpu": 1}), scale_down_gpu_utilization_threshold=0.2)
    assert strict.is_low.tolist() == [False]


def test_daemon_pods_are_left_out_of_both_sides_when_asked():
    pods = [pod("d", owner="DaemonSet", cpu="2"), pod("w", cpu="1")]
    assert used(node("n1"), *pods).share.tolist() == [0.75]
    assert used(node("n1"), *pods, ignore_daemonsets_utilization=True).share.tolist() == [0.5]


def test_mirror_pods_likewise():
    pods = [pod("m", owner="", annotations=MIRROR, cpu="2"), pod("w", cpu="1")]
    assert used(node("n1"), *pods, ignore_daemonsets_utilization=True).share.tolist() == [0.75]
    assert used(node("n1"), *pods, ignore_mirror_pods_utilization=True).share.tolist() == [0.5]


@pytest.mark.parametrize(("seconds", "share"), [(60, 0.75), (61, 0.25)])
def test_pods_overdue_in_leaving_are_not_counted(seconds: int, share: float):
    when = (NOON - timedelta(seconds=seconds)).isoformat()
    pods = [pod("late", cpu="2", metadata={"deletionTimestamp": when}), pod("w", cpu="1")]
    assert used(node("n1"), *pods).share.tolist() == [share]
