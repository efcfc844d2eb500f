"""Small clusters for tests of removals: groups, nodes, owned pods, budgets, and the snapshot of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.model.snapshot import NodeGroup, Snapshot
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.policy import PodDisruptionBudget
from plimsoll.scheduling import ClusterView

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOSTNAME = "kubernetes.io/hostname"


def policy(**options: Any) -> Policy:
    """`max_drain_parallelism=0` is --max-drain-parallelism=0."""
    return read_options({name.replace("_", "-"): value for name, value in options.items()})


def node(
    name: str,
    *,
    cpu: float = 4,
    gib: int = 16,
    group: str = "g",
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> Node:
    """Of group `g`; `taints`, `ready` and resources as they are called on the wire come in `more`."""
    ready = more.pop("ready", True)
    taints = more.pop("taints", [])
    labels = {HOSTNAME: name, "group": group, **more.pop("labels", {})}
    offered = {"cpu": str(cpu), "memory": f"{gib}Gi", "pods": "110", **more}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels, "annotations": annotations or {}},
            "spec": {"taints": taints},
            "status": {
                "allocatable": offered,
                "capacity": offered,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        },
        Node,
    )


def pod(
    name: str = "p",
    *,
    on: str = "n1",
    cpu: str = "1",
    memory: str = "1Gi",
    owner: str = "ReplicaSet",
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> Pod:
    """One of a ReplicaSet called rs; `owner` "" leaves it without. `metadata` and spec fields come in `more`."""
    owners = [{"kind": owner, "name": "rs", "controller": True, "apiVersion": "apps/v1"}] if owner else []
    requests = {"cpu": cpu, "memory": memory, **more.pop("requests", {})}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": labels or {},
        "annotations": annotations or {},
        "ownerReferences": owners,
        **more.pop("metadata", {}),
    }
    status = more.pop("status", {"phase": "Running"})
    spec = {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": requests}}], **more}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def budget(name: str = "b", *, allowed: int, namespace: str = "default", **match: str) -> PodDisruptionBudget:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": match}},
            "status": {"disruptionsAllowed": allowed},
        },
        PodDisruptionBudget,
    )


def group(name: str = "g", *, size: int, least: int = 0, most: int = 100, **more: Any) -> NodeGroup:
    return NodeGroup(
        **{
            "id": name,
            "min_size": least,
            "max_size": most,
            "target_size": size,
            "template": node(f"{name}-template", group=name),
            **more,
        }
    )


def snapshot(
    nodes: list[Node],
    pods: list[Pod] | tuple[Pod, ...] = (),
    *,
    groups: list[NodeGroup] | None = None,
    budgets: tuple[PodDisruptionBudget, ...] = (),
    view: ClusterView | None = None,
) -> Snapshot:
    """Nodes belong to the group their label names; groups that are not given have minimum 0 and the size they have."""
    group_of = {node.metadata.name: node.metadata.labels.get("group", "") for node in nodes}
    group_of = {name: found for name, found in group_of.items() if found}
    sizes = {name: list(group_of.values()).count(name) for name in group_of.values()}
    made = [group(name, size=size) for name, size in sizes.items()] if groups is None else groups
    return Snapshot(
        number=1,
        at=NOON,
        view=view or ClusterView.from_objects(nodes, pods),
        groups=tuple(made),
        group_of=group_of,
        budgets=budgets,
    )
