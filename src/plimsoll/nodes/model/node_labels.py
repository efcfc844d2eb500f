"""Well-known labels of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.gpus import GPU_LABELS
from plimsoll.objects.api.simulated_cloud import CAPACITY_TYPE_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
LEAVING: Final = "autoscaling.x-k8s.io/being-removed"
"""On nodes of a snapshot that are being removed; no real node has it."""
MACHINE_TYPE_ALIAS: Final = "machine_type"
MACHINE_TYPE_KEYS: Final = frozenset({INSTANCE_TYPE, "beta.kubernetes.io/instance-type", MACHINE_TYPE_ALIAS})
ZONE_KEYS: Final = frozenset({ZONE, "failure-domain.beta.kubernetes.io/zone"})
CAPACITY_TYPE_KEYS: Final = frozenset(
    {
        CAPACITY_TYPE_LABEL,
        "karpenter.sh/capacity-type",
        "eks.amazonaws.com/capacityType",
        "cloud.google.com/gke-spot",
        "cloud.google.com/gke-preemptible",
        "kubernetes.azure.com/scalesetpriority",
    }
)
KARPENTER_POOL_KEYS: Final = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
"""On nodes that Karpenter created and removes, since version 0.32 and before it."""
NODE_GROUP_KEYS: Final = frozenset(
    {
        "cloud.plimsoll.io/node-group",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name",
        *KARPENTER_POOL_KEYS,
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
        "agentpool",
        "kops.k8s.io/instancegroup",
    }
)
"""Labels with the name of the node group, which clouds set on its nodes."""
SYSTEM_KEYS: Final = (
    frozenset(
        {
            REGION,
            "failure-domain.beta.kubernetes.io/region",
            ARCH,
            "beta.kubernetes.io/arch",
            OS,
            "beta.kubernetes.io/os",
        }
    )
    | {HOSTNAME}
    | ZONE_KEYS
    | CAPACITY_TYPE_KEYS
    | frozenset(GPU_LABELS)
    | (MACHINE_TYPE_KEYS - {MACHINE_TYPE_ALIAS})
)
"""Labels that a machine or its location sets by itself; auto-provisioning never puts them on a group."""


def find_karpenter_pool(labels: Mapping[str, str]) -> str:
    """The NodePool of Karpenter that a node belongs to; empty: the node is not Karpenter's."""
    return next((labels[key] for key in KARPENTER_POOL_KEYS if labels.get(key)), "")
