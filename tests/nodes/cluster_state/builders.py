"""Small worlds for tests of the cluster state: nodes of one group at given ages, instances, a registry."""

from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.nodes.cluster_state.observed import ObservedCluster, ScaleUpError
from plimsoll.nodes.cluster_state.observed import ObservedGroup as Group
from plimsoll.nodes.cluster_state.observed import ObservedInstance as Instance
from plimsoll.nodes.cluster_state.registry import ClusterState
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STOCKOUT = ScaleUpError(error_class=ErrorClass.OUT_OF_RESOURCES, code="STOCKOUT", message="no more of these")
REFUSED = ScaleUpError(code="PERMISSIONS", message="not allowed")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def node(
    name: str,
    *,
    ready: bool = True,
    age_s: float = 3600,
    now_s: float = 0,
    taints: tuple[str, ...] = (),
    conditions: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, Any] | None = None,
    **spec: Any,
) -> Node:
    """`age_s` before `now_s` it was created and took the readiness it has."""
    born = at(now_s - age_s)
    statuses = {"Ready": "True" if ready else "False", **(conditions or {})}
    return Node(
        metadata=ObjectMeta(name=name, creation_timestamp=born, labels=labels or {}),
        spec=NodeSpec(provider_id=f"cloud://{name}", taints=tuple(Taint(key=key) for key in taints), **spec),
        status=NodeStatus(
            allocatable=allocatable or {"cpu": "4", "memory": "16Gi", "pods": "110"},
            conditions=tuple(
                NodeCondition(type=kind, status=status, last_transition_time=born) for kind, status in statuses.items()
            ),
        ),
    )


def instance(name: str, **fields: Any) -> Instance:
    return Instance(id=f"cloud://{name}", **fields)


def stillborn(name: str, error: ScaleUpError = STOCKOUT) -> Instance:
    return instance(name, state=InstanceState.CREATING, error=error)


def group(target: int, instances: tuple[Instance, ...] = (), **fields: Any) -> Group:
    return Group(**{"id": "g", "max_size": 100, "target_size": target, "instances": instances, **fields})


def world(target: int, *nodes: Node, waiting: tuple[Instance, ...] = (), **fields: Any) -> ObservedCluster:
    """One group `g` with these nodes, a machine behind each, and machines that are no nodes yet."""
    machines = (*(instance(node.metadata.name) for node in nodes), *waiting)
    return ObservedCluster(
        nodes=nodes,
        group_of={node.metadata.name: "g" for node in nodes},
        groups=(group(target, machines, **fields),),
    )


def ready_nodes(count: int, start: int = 0) -> tuple[Node, ...]:
    return tuple(node(f"n{number}") for number in range(start, start + count))


def state(**options: Any) -> ClusterState:
    return ClusterState(read_options({name.replace("_", "-"): value for name, value in options.items()}))
