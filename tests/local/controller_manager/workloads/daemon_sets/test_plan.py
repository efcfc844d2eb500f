"""The daemon set planner under any history of nodes and pods: one pod a node, never more down than allowed, an end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import REVISION_LABEL
from plimsoll.local.controller_manager.workloads.daemon_sets.plan import (
    DaemonPlan,
    DaemonView,
    compute_daemon_set_status,
    plan_daemon_set,
)
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeSpec, Taint
from plimsoll.objects.api.pods import Pod, PodCondition, PodSpec, PodStatus, is_pod_ready
from plimsoll.objects.api.workloads import DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _pod(number: int, node: str, *, revision: str = "new", phase: str = "Running", ready: bool = True) -> Pod:
    condition = PodCondition(type="Ready", status="True" if ready else "False", last_transition_time=NOW)
    made = NOW - timedelta(hours=1) + timedelta(seconds=number)
    metadata = ObjectMeta(
        name=f"p{number}", uid=f"u{number}", labels={REVISION_LABEL: revision}, creation_timestamp=made
    )
    return Pod(metadata=metadata, spec=PodSpec(node_name=node), status=PodStatus(phase=phase, conditions=(condition,)))


def _node(name: str, *, effect: str = "") -> Node:
    taints = (Taint(key="k", effect=effect),) if effect else ()
    return Node(metadata=ObjectMeta(name=name), spec=NodeSpec(taints=taints))


def _view(nodes: list[Node], pods: list[Pod], *, surge: int = 0, unavailable: Any = 1) -> DaemonView:
    rolling = RollingUpdateDaemonSet(max_surge=surge, max_unavailable=unavailable)
    strategy = DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling)
    daemon_set = DaemonSet(metadata=ObjectMeta(name="d", uid="d"), spec=DaemonSetSpec(update_strategy=strategy))
    return DaemonView(daemon_set=daemon_set, nodes=tuple(nodes), pods=tuple(pods), revision="new", now=NOW)


_NODES = st.lists(st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"]), max_size=5)
_PODS = st.lists(
    st.tuples(
        st.integers(0, 6), st.sampled_from(["new", "old"]), st.sampled_from(["Running", "Failed"]), st.booleans()
    ),
    max_size=8,
)


def _world(nodes: list[str], pods: list[tuple[int, str, str, bool]]) -> tuple[list[Node], list[Pod]]:
    made = [_node(f"n{number}", effect=effect) for number, effect in enumerate(nodes)]
    return made, [
        _pod(number, f"n{node}", revision=revision, phase=phase, ready=ready)
        for number, (node, revision, phase, ready) in enumerate(pods)
        if node < len(nodes)
    ]


@given(nodes=_NODES, pods=_PODS, surge=st.integers(0, 2))
@settings(max_examples=120, deadline=None)
def test_any_world_comes_to_rest_with_one_new_pod_on_each_node_that_is_fit(
    nodes: list[str], pods: list[tuple[int, str, str, bool]], surge: int
):
    there, here = _world(nodes, pods)
    number = len(pods)
    for _ in range(40):
        view = _view(there, here, surge=surge, unavailable=0 if surge else 1)
        plan = plan_daemon_set(view)
        assert plan_daemon_set(view) == plan
        if plan == DaemonPlan() and all(map(is_pod_ready, here)):
            break
        gone = {pod.metadata.name for pod in plan.delete}
        here = [_now_ready(pod) for pod in here if pod.metadata.name not in gone]
        here += [_pod(number + offset, name, ready=False) for offset, name in enumerate(plan.create_on)]
        number += len(plan.create_on)
    else:
        raise AssertionError("it never came to rest")
    fit = [node.metadata.name for node, effect in zip(there, nodes, strict=True) if effect in {"", "PreferNoSchedule"}]
    new = sorted(pod.spec.node_name for pod in here if pod.metadata.labels[REVISION_LABEL] == "new")
    assert set(fit) <= set(new)
    assert len(new) == len(set(new))
    status = compute_daemon_set_status(_view(there, here, surge=surge))
    assert status.desired_number_scheduled == status.current_number_scheduled == status.updated_number_scheduled


def _now_ready(pod: Pod) -> Pod:
    """What a kubelet does in the meantime."""
    condition = PodCondition(type="Ready", status="True", last_transition_time=NOW)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=(condition,)))


@given(states=st.lists(st.tuples(st.sampled_from(["new", "old"]), st.booleans()), max_size=6), limit=st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_an_update_takes_no_more_down_than_is_allowed(states: list[tuple[str, bool]], limit: int):
    nodes = [_node(f"n{number}") for number in range(len(states))]
    pods = [
        _pod(number, f"n{number}", revision=revision, ready=ready) for number, (revision, ready) in enumerate(states)
    ]
    plan = plan_daemon_set(_view(nodes, pods, unavailable=limit))
    down = sum(not is_pod_ready(pod) for pod in pods)
    taken = sum(is_pod_ready(pod) for pod in plan.delete)
    assert not taken or down + taken <= limit
    assert all(pod.metadata.labels[REVISION_LABEL] == "old" for pod in plan.delete)


def test_percentages_are_rounded_up():
    nodes = [_node(f"n{number}") for number in range(5)]
    pods = [_pod(number, f"n{number}", revision="old") for number in range(5)]
    assert len(plan_daemon_set(_view(nodes, pods, unavailable="30%")).delete) == 2


def test_a_percentage_of_more_digits_than_a_number_has_means_one():
    nodes = [_node(f"n{number}") for number in range(5)]
    pods = [_pod(number, f"n{number}", revision="old") for number in range(5)]
    assert len(plan_daemon_set(_view(nodes, pods, unavailable="9" * 5_000 + "%")).delete) == 1
