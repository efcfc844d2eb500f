"""Well-known taints of nodes: those of Kubernetes and those of Cluster Autoscaler. Constants only."""

from __future__ import annotations

from typing import Final

BEING_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
REMOVAL_TAINTS: Final = frozenset(
    {BEING_DELETED, "karpenter.sh/disrupted", "karpenter.sh/disruption", "node.kubernetes.io/unschedulable"}
)
"""Taints of nodes that are drained or about to be removed, by any autoscaler or by hand."""
STARTUP_PREFIX: Final = "startup-taint.cluster-autoscaler.kubernetes.io/"
STATUS_PREFIX: Final = "status-taint.cluster-autoscaler.kubernetes.io/"
IGNORED_PREFIX: Final = "ignore-taint.cluster-autoscaler.kubernetes.io/"
CONDITIONS: Final = frozenset(
    {
        *(
            f"node.kubernetes.io/{condition}"
            for condition in (
                "not-ready",
                "unreachable",
                "unschedulable",
                "memory-pressure",
                "disk-pressure",
                "pid-pressure",
                "network-unavailable",
                "out-of-service",
            )
        ),
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)
"""Taints that Kubernetes sets for the current condition of a single node."""
