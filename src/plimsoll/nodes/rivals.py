"""Other programs that manage the same nodes: doctor's check `rivals.nodes`, and the lease that Plimsoll shares.

It reads leases, pods with the images of Cluster Autoscaler and Karpenter, NodePools, and what Karpenter leaves on
nodes. The running autoscaler looks for the same (`observing.other_autoscalers`) and does not act beside them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.held_leases import LeaseCheck, check_lease, is_held
from plimsoll.kube.errors import ApiError, NotFound
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.nodes.model.node_labels import find_karpenter_pool
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.observing.other_autoscalers import (
    CLUSTER_AUTOSCALER,
    KARPENTER,
    KARPENTER_LEASE,
    LeaseKey,
    find_contended_lease,
    find_program_of_pod,
    read_command_lines,
)
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import RivalContext

NODE_RIVALS: Final = "rivals.nodes"
_KARPENTER_PREFIX: Final = "karpenter.sh/"
_NODE_POOLS: Final = tuple(f"/apis/karpenter.sh/{version}/nodepools" for version in ("v1", "v1beta1"))
_OWN_LEASE: Final = LeaseKey(KUBE_SYSTEM, AUTOSCALER_LEASE)


async def check_node_rivals(client: Client, context: RivalContext) -> Finding:
    """Whether another program adds or removes nodes, by what can be seen of it."""
    lease = await check_lease(client, build_lease_check(), now=context.now)
    at_work = [*await _check_karpenter_lease(client, context.now), *await _list_pods(client)]
    left = [*await _list_node_pools(client), *await _list_karpenter_nodes(client)]
    warnings = [lease] if lease.level is Level.WARN else []
    if at_work or left:
        warnings.append(_describe_others(at_work, left))
    details: dict[str, Any] = {"holder": None, "renewTime": None, **lease.details, "atWork": at_work, "karpenter": left}
    if not warnings:
        message = f"{lease.message}, and no lease, pod, NodePool or node of another program that manages nodes"
        return Finding(check=NODE_RIVALS, level=Level.OK, message=message, details=details)
    return Finding(
        check=NODE_RIVALS,
        level=Level.WARN,
        message="; ".join(warning.message for warning in warnings),
        fix="; ".join(warning.fix for warning in warnings),
        details=details,
    )


def _describe_others(at_work: list[str], left: list[str]) -> Finding:
    """The warning about programs that do not contend for the lease, or about what Karpenter left."""
    if at_work:
        return Finding(
            check=NODE_RIVALS,
            level=Level.WARN,
            message=f"another program manages nodes of this cluster: {'; '.join([*at_work, *left])}",
            fix="this autoscaler does nothing beside it; scale its Deployment to 0, give Cluster Autoscaler the same "
            "lease, or set --ignore-other-autoscalers if the two manage different nodes for different pods",
        )
    return Finding(
        check=NODE_RIVALS,
        level=Level.WARN,
        message=f"Karpenter is not at work, and left: {'; '.join(left)}",
        fix="its nodes are never removed by this autoscaler; remove them with Karpenter, or drain and delete them",
    )


def build_lease_check(name: str = AUTOSCALER_LEASE, namespace: str = KUBE_SYSTEM) -> LeaseCheck:
    return LeaseCheck(check=NODE_RIVALS, name=name, namespace=namespace, controller="autoscaler", is_shared=True)


async def _check_karpenter_lease(client: Client, now: datetime) -> list[str]:
    try:
        lease = await client.get(Lease, KARPENTER_LEASE, namespace=KUBE_SYSTEM)
    except NotFound:
        return []
    if not is_held(lease, now):
        return []
    return [f"{KARPENTER} holds lease {KUBE_SYSTEM}/{KARPENTER_LEASE} ({lease.spec.holder_identity})"]


async def _list_pods(client: Client) -> list[str]:
    """Workloads that run an autoscaler which does not contend for our lease."""
    found: Counter[str] = Counter()
    async for page in client.iterate_pages(Pod):
        for pod in page.items:
            program = find_program_of_pod(pod)
            if not program:
                continue
            if program == CLUSTER_AUTOSCALER:
                lease = find_contended_lease(await read_command_lines(client, pod))
                if lease == _OWN_LEASE:
                    continue
            found[f"{program} runs as {_name_workload(pod)}"] += 1
    return [f"{text} ({count} {'pod' if count == 1 else 'pods'})" for text, count in found.items()]


def _name_workload(pod: Pod) -> str:
    """The Deployment that a pod belongs to, by the name of its ReplicaSet; else its owner or the pod itself."""
    owner, namespace = find_controller(pod.metadata), pod.metadata.namespace
    if owner is None:
        return f"pod {namespace}/{pod.metadata.name}"
    suffix = pod.metadata.labels.get("pod-template-hash", "")
    if owner.kind == "ReplicaSet" and suffix and owner.name.endswith(f"-{suffix}"):
        return f"Deployment {namespace}/{owner.name.removesuffix(f'-{suffix}')}"
    return f"{owner.kind} {namespace}/{owner.name}"


async def _list_node_pools(client: Client) -> list[str]:
    for path in _NODE_POOLS:
        try:
            listed = await client.get_json(path)
        except NotFound:
            continue
        except ApiError as error:
            return [f"NodePools of Karpenter cannot be listed: {error}"]
        names = [str(item["metadata"]["name"]) for item in listed.get("items") or ()]
        return [f"NodePools {', '.join(sorted(names))}"] if names else []
    return []


async def _list_karpenter_nodes(client: Client) -> list[str]:
    """How many nodes Karpenter owns, and how many others carry its taints or annotations."""
    owned: Counter[str] = Counter()
    marked = 0
    async for page in client.iterate_pages(Node):
        for node in page.items:
            if pool := find_karpenter_pool(node.metadata.labels):
                owned[pool] += 1
            elif _is_marked(node):
                marked += 1
    found = [f"{count} {_format_node_word(count)} of NodePool {pool}" for pool, count in sorted(owned.items())]
    return (
        [*found, f"{marked} {_format_node_word(marked)} with taints or annotations of Karpenter"] if marked else found
    )


def _is_marked(node: Node) -> bool:
    keys = (*(taint.key for taint in node.spec.taints), *node.metadata.annotations, *node.metadata.labels)
    return any(key.startswith(_KARPENTER_PREFIX) and key != "karpenter.sh/capacity-type" for key in keys)


def _format_node_word(count: int) -> str:
    return "node" if count == 1 else "nodes"
