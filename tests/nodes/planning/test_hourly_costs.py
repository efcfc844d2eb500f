"""What a cluster costs per hour, and what its pods need at least."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.snapshot import MachineType
from plimsoll.nodes.planning.hourly_costs import compute_hourly_costs
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.nodes import Node, NodeStatus
from plimsoll.objects.api.pods import Container, Pod, PodSpec, PodStatus, ResourceRequirements


def build_node(name: str, *, cpu: str = "4", kind: str = "small", group: str = "workers") -> Node:
    labels = {"node.kubernetes.io/instance-type": kind, "cloud.plimsoll.io/node-group": group}
    amounts: dict[str, str | int | float] = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(capacity=amounts, allocatable=amounts))


def build_pod(name: str, node: str, *, cpu: str = "1", owner: str = "", phase: str = "Running") -> Pod:
    owners = (OwnerReference(kind=owner, name="o", uid="u", controller=True),) if owner else ()
    container = Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu, "memory": "1Gi"}))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", owner_references=owners),
        spec=PodSpec(node_name=node, containers=(container,)),
        status=PodStatus(phase=phase),
    )


def build_type(name: str, cpu: str, price: float | None) -> MachineType:
    amounts = ResourceVector.from_quantities({"cpu": cpu, "memory": "16Gi", "pods": 110})
    return MachineType(name=name, capacity=amounts, allocatable=amounts, price_per_hour=price)


SMALL = build_type("small", "4", 0.2)


def test_cost_is_the_price_of_the_nodes_by_group():
    costs = compute_hourly_costs([build_node("a"), build_node("b"), build_node("c", group="batch")], [], [SMALL])
    assert costs.groups == {"workers": 0.4, "batch": 0.2}
    assert (round(costs.cost, 9), costs.bound, costs.estimated) == (0.6, 0.0, 0)
    assert costs.prices == {"a": 0.2, "b": 0.2, "c": 0.2}


def test_pods_that_need_two_machines_cannot_be_had_for_one():
    nodes = [build_node(name) for name in "abcd"]
    pods = [build_pod(f"p{number}", "abcd"[number % 4], cpu="1500m") for number in range(4)]
    costs = compute_hourly_costs(nodes, pods, [SMALL])
    assert 0.3 <= costs.bound <= 0.4 + 1e-9 < costs.cost


def test_what_has_ended_or_comes_with_each_machine_needs_nothing():
    pods = [
        build_pod("done", "a", phase="Succeeded"),
        build_pod("daemon", "a", owner="DaemonSet"),
        build_pod("waiting", ""),
        build_pod("odd", "a", cpu="no number"),
    ]
    assert compute_hourly_costs([build_node("a")], pods, [SMALL]).bound == 0.0


def test_a_node_without_a_known_price_is_estimated():
    costs = compute_hourly_costs([build_node("a", kind="unknown")], [build_pod("p", "a")], [SMALL])
    assert costs.estimated == 1
    assert 0 < costs.bound <= costs.cost


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4_000)), max_size=12), st.floats(0.01, 2))
def test_the_bound_is_never_above_the_cost(pods: list[tuple[int, int]], price: float):
    nodes = [build_node(f"n{number}") for number in range(4)]
    placed = [build_pod(f"p{index}", f"n{node}", cpu=f"{milli}m") for index, (node, milli) in enumerate(pods)]
    costs = compute_hourly_costs(nodes, placed, [build_type("small", "4", price), build_type("large", "16", 3 * price)])
    assert 0 <= costs.bound <= costs.cost + 1e-12
